//! Files of annotations: any bytes in each format, beside two images of 8 x 6 pixels.
//!
//! The first byte selects the format and whether wrong annotations are refused. The rest is the file.
//! Nothing may panic, and what is counted must agree.

use std::fs;
use std::path::Path;

use featherload::index::FolderOptions;
use featherload::{ObjectOptions, Source};

use super::Target;

/// Names of files, and what `files` of the loader is for each.
pub const FORMATS: [(&str, &str); 9] = [
    ("objects.json", "../objects.json"),
    ("objects.csv", "../objects.csv"),
    ("objects.tsv", "../objects.tsv"),
    (
        "wider_face_train_bbx_gt.txt",
        "../wider_face_train_bbx_gt.txt",
    ),
    ("labels/a.txt", "../labels/{stem}.txt"),
    ("Annotations/a.xml", "../Annotations/{stem}.xml"),
    ("outlines/a.json", "../outlines/{stem}.json"),
    ("data.yaml", "../data.yaml"),
    ("labels/b.txt", "../data.yaml"),
];
/// Set: a wrong annotation is an error.
const STRICT: u8 = 128;

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for name in ["images", "labels", "Annotations", "outlines"] {
        fs::create_dir(path.join(name)).expect("a folder");
    }
    for name in ["a", "b"] {
        let pixels = [b"P6\n8 6\n255\n".to_vec(), vec![7; 3 * 8 * 6]].concat();
        fs::write(path.join(format!("images/{name}.ppm")), pixels).expect("an image");
    }
    Box::new(move |data| run(folder.path(), data))
}

fn run(folder: &Path, data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let (file, files) = FORMATS[usize::from(choice & !STRICT) % FORMATS.len()];
    if files == "../data.yaml" && file != "data.yaml" {
        let yaml = "path: .\ntrain: images\nnames: {0: cat, 1: dog}\n";
        fs::write(folder.join("data.yaml"), yaml).expect("a file");
    }
    let path = folder.join(file);
    fs::write(&path, text).expect("a file");
    let files = folder.join("images").join(files).display().to_string();
    let options = ObjectOptions::new(files).strict(choice & STRICT != 0);
    let surveyed = options.survey(
        Source::Folder(folder.join("images"), FolderOptions::default()),
        true,
    );
    fs::remove_file(&path).expect("it is there");
    let _ = fs::remove_file(folder.join("data.yaml"));
    let Ok(survey) = surveyed else {
        return;
    };
    let sizes = survey.sizes;
    let all = sizes.small + sizes.medium + sizes.large + sizes.unknown;
    assert!(survey.most_in_image as u64 <= all);
    assert!(survey.first_without_objects.len() <= 2);
}
