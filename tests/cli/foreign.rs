//! Sources that are not data sets: the error names a fix, and the fix works.

use std::fs;
use std::path::Path;

use crate::common::command::{code, featherload, refusal, stderr, stdout};
use crate::common::data;

fn index(source: &Path, more: &[&str]) -> std::process::Output {
    featherload(&[&["index", source.to_str().unwrap()], more].concat())
}

#[test]
fn a_folder_of_splits_names_the_one_to_give() {
    let dir = tempfile::tempdir().unwrap();
    for split in ["train", "val"] {
        let from = data(2, 2);
        fs::rename(from.path(), dir.path().join(split)).unwrap();
    }
    let message = refusal(&index(dir.path(), &[]));
    let train = dir.path().join("train");
    assert!(
        message.contains(&format!("give one of them, such as {};", train.display())),
        "{message}"
    );
    assert!(
        message.contains("`--labels none`") && message.contains("`--classes`"),
        "{message}"
    );
    let out = index(&train, &[]);
    assert!(stdout(&out).starts_with("4 samples, 2 classes"), "{out:?}");
    let out = index(dir.path(), &["--labels", "none"]);
    assert!(stdout(&out).starts_with("8 samples, no labels"), "{out:?}");
    // Splits without class folders: a warning.
    for split in ["train", "val"] {
        let folder = dir.path().join(split);
        for class in 0..2 {
            let class = folder.join(format!("class{class}"));
            for (i, file) in fs::read_dir(&class).unwrap().enumerate() {
                let to = format!("{}-{i}.jpg", class.file_name().unwrap().display());
                fs::rename(file.unwrap().path(), folder.join(to)).unwrap();
            }
            fs::remove_dir(class).unwrap();
        }
    }
    let out = index(dir.path(), &[]);
    assert_eq!(code(&out), 0);
    let message = stderr(&out);
    assert!(
        message.contains("warning: ") && message.contains("are splits, not classes"),
        "{message}"
    );
}

#[test]
fn labels_in_metadata_are_not_lost_and_its_file_is_named() {
    let dir = data(1, 2);
    let folder = dir.path().join("class0");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let line =
        |(i, name): (usize, &String)| format!("{{\"file_name\": \"{name}\", \"label\": {i}}}\n");
    let text: String = names.iter().enumerate().map(line).collect();
    let metadata = folder.join("metadata.jsonl");
    fs::write(&metadata, text).unwrap();
    let message = refusal(&index(&folder, &[]));
    let gives = format!("{} has labels of its images", metadata.display());
    assert!(
        message.contains(&gives) && message.contains("`--labels none`"),
        "{message}"
    );
    assert!(stdout(&index(&metadata, &[])).starts_with("2 samples, 2 classes"));
    assert!(stdout(&index(&folder, &["--labels", "none"])).starts_with("2 samples, no labels"));
}

#[test]
fn lists_of_addresses_windows_paths_and_names_say_what_to_write() {
    let dir = data(1, 2);
    let list = dir.path().join("list.txt");
    let message = |text: &[u8]| {
        fs::write(&list, text).unwrap();
        let message = refusal(&index(&list, &[]));
        assert!(message.contains("list.txt"), "{message}");
        message
    };
    let e = message(b"ftp://host/a.jpg 0\n");
    assert!(
        e.contains("list.txt:1: path 'ftp://host/a.jpg' is an address of no known store"),
        "{e}"
    );
    let e = message(b"class0\\0.jpg 0\n");
    assert!(
        e.contains("is written as on Windows") && e.contains("`--root`"),
        "{e}"
    );
    let e = message(b"class0/0.jpg cat\n");
    assert!(
        e.contains("label 'cat' is not a whole number") && e.contains("CSV file"),
        "{e}"
    );
    let e = message(b"class0/0.jpg,1\n");
    assert!(e.contains("use `--delimiter` ','"), "{e}");
    let wide: Vec<u8> = "class0/0.jpg 0\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let e = message(&wide);
    assert!(
        e.contains("list.txt: is UTF-16LE text: save it as UTF-8 (iconv"),
        "{e}"
    );
    // As it says.
    let csv = dir.path().join("list.csv");
    fs::write(&csv, "path,label\nclass0/000.jpg,cat\nclass0/001.jpg,dog\n").unwrap();
    assert!(stdout(&index(&csv, &[])).starts_with("2 samples, 2 classes"));
}

#[test]
fn a_mistyped_pointer_lists_what_there_is() {
    let dir = data(1, 2);
    let table = dir.path().join("a.jsonl");
    fs::write(
        &table,
        "{\"path\": \"class0/000.jpg\", \"info\": {\"label\": 0}}\n",
    )
    .unwrap();
    for (column, says) in [
        ("/foo/bar", "it has '/info', '/path'"),
        ("/info/lable", "'/info' has '/info/label'"),
        (
            "info",
            "an object at 'info': name a place in it, one of '/info/label'",
        ),
        ("lable", "it has 'info', 'path'"),
    ] {
        let message = refusal(&index(&table, &["--label-column", column]));
        assert!(
            message.contains("a.jsonl:1: ") && message.contains(says),
            "{message}"
        );
    }
    let out = index(&table, &["--label-column", "/info/label"]);
    assert!(stdout(&out).starts_with("1 samples, 1 class"), "{out:?}");
}

#[test]
fn annotations_are_no_scene() {
    let dir = tempfile::tempdir().unwrap();
    let coco = dir.path().join("instances.json");
    fs::write(
        &coco,
        "{\"images\": [], \"annotations\": [], \"categories\": []}",
    )
    .unwrap();
    let message = refusal(&index(&coco, &[]));
    assert!(
        message.contains("is a COCO annotation file") && message.contains("`path,label`"),
        "{message}"
    );
}
