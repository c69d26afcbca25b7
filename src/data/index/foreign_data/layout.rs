//! Folders whose sub-folders are no classes: those of splits, and those of data sets for
//! detection. And the file that has the labels of pictures in a folder.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::column_names::is_of_labels;
use crate::data::index::lenient_json;
use crate::data::index::names::has_image_extension;
use crate::error::{Error, Result};

/// Names that folders of splits have, in lower case.
const SPLITS: [&str; 11] = [
    "train",
    "training",
    "trainval",
    "val",
    "valid",
    "validation",
    "dev",
    "test",
    "testing",
    "eval",
    "evaluation",
];

/// What stands beside them in a name, as in `training_set` and `seg_train`.
const BESIDE_SPLITS: [&str; 5] = ["images", "image", "data", "set", "seg"];

/// Files that have the labels of the pictures beside them, as Hugging Face writes them.
const METADATA: [&str; 3] = ["metadata.jsonl", "metadata.csv", "metadata.parquet"];

/// Entries of a folder in which pictures are looked for, and folders below one another.
const MOST_NAMES: usize = 1000;
const DEEPEST: usize = 2;

/// Folders that data sets for detection may have too, with pictures in them.
const BESIDE_DETECTION: [&str; 2] = ["SegmentationClass", "SegmentationObject"];

/// Folders that a data set for detection has beside its pictures, and where those are.
const DETECTION: [(&[&str], &str, &str); 4] = [
    (&["Annotations", "JPEGImages"], "JPEGImages", "Pascal VOC"),
    (
        &["Annotations", "Data", "ImageSets"],
        "Data/CLS-LOC/train",
        "ImageNet's archive",
    ),
    (&["images", "labels"], "images", "YOLO"),
    (
        &["annotations", "images"],
        "images",
        "a data set with annotations",
    ),
];

/// Refuses a folder whose sub-folders, `folders`, say nothing of classes.
///
/// A warning, where it may be meant so.
///
/// # Errors
/// What the folders are, and which one to give.
pub(crate) fn check_class_folders(root: &Path, folders: &[Vec<u8>]) -> Result<Option<String>> {
    let names: Vec<&OsStr> = folders.iter().map(|name| OsStr::from_bytes(name)).collect();
    const ALL: &str = "`labels: none` reads all pictures without labels";
    if let Some((pictures, of)) = of_detection(root, &names) {
        return Err(Error::dataset(
            root,
            format!(
                "its folders are those of {of}, and no classes: give {} for the pictures alone, \
                 or a list with one `path label` a line; {ALL}, and `classes` takes them as \
                 classes",
                pictures.display()
            ),
        ));
    }
    let splits = names.iter().filter(|name| is_split(name));
    let deep = splits.filter(|name| has_folder(&root.join(name)));
    let deep: Vec<_> = deep.map(|name| name.to_string_lossy()).collect();
    if deep.len() > 1 && !names.iter().all(|name| is_split(name)) {
        return Ok(Some(format!(
            "{}: its folders {} look like splits, and all its folders are taken as classes: give \
             one of them, or use `labels: none`",
            root.display(),
            deep.join(", ")
        )));
    }
    if !names.iter().all(|name| is_split(name)) {
        return Ok(metadata_of(root).filter(|found| found.has_labels).map(|found| {
            format!(
                "{}: labels are the class folders, and not those of {}: give this file to use them",
                root.display(),
                found.path.display()
            )
        }));
    }
    let trains = |name: &&&OsStr| name.to_string_lossy().to_lowercase().contains("train");
    let Some(first) = names.iter().find(trains).or(names.first()) else {
        return Ok(None);
    };
    let first = root.join(first);
    let (is, give) = match names.as_slice() {
        [one] => {
            let one = one.to_string_lossy();
            let is = format!("its only folder is {one}, which is a split and no class");
            (is, format!("give {}", first.display()))
        }
        all => {
            let all: Vec<_> = all.iter().map(|name| name.to_string_lossy()).collect();
            let is = format!("its folders {} are splits, and no classes", all.join(", "));
            (is, format!("give one of them, such as {}", first.display()))
        }
    };
    if let Some(found) = metadata_of(&first).filter(|found| found.has_labels) {
        let found = found.path.display();
        let what = format!("{is}: give {found}, which has labels; {ALL}");
        return Err(Error::dataset(root, what));
    }
    if names.iter().any(|name| has_folder(&root.join(name))) {
        let what = format!("{is}: {give}; {ALL}, and `classes` takes them as classes");
        return Err(Error::dataset(root, what));
    }
    Ok(Some(format!(
        "{}: {is}. They are taken as classes: {give}, or use `labels: none`",
        root.display()
    )))
}

/// The folder of the pictures of a data set for detection, and what that is. None where a
/// folder that is no part of it has pictures: then its names are those of classes.
fn of_detection(root: &Path, names: &[&OsStr]) -> Option<(PathBuf, &'static str)> {
    let has = |name: &str| names.iter().any(|known| *known == name);
    let known = DETECTION
        .iter()
        .find(|(all, ..)| all.iter().all(|name| has(name)));
    let (parts, pictures, of) = match known {
        Some((parts, pictures, of)) => (*parts, root.join(pictures), *of),
        None if has("annotations") => {
            let pictures = names.iter().find(|name| is_of_coco(name))?;
            (&["annotations"][..], root.join(pictures), "COCO")
        }
        None => return None,
    };
    let is_part = |name: &OsStr| {
        let mut known = parts.iter().chain(&BESIDE_DETECTION);
        known.any(|part| name == *part) || is_split(name)
    };
    let mut others = names.iter().filter(|name| !is_part(name));
    let has_others = others.any(|name| has_picture(&root.join(name), DEEPEST));
    (!has_others).then_some((pictures, of))
}

/// Whether a folder has a picture, by names, in itself or so many folders below.
fn has_picture(folder: &Path, below: usize) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries = entries.take(MOST_NAMES);
    entries.any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => below > 0 && has_picture(&entry.path(), below - 1),
        _ => has_image_extension(entry.file_name().as_bytes()),
    })
}

/// Such as `train`, `training_set`, `seg_test` and `val2017`.
fn is_split(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    let is_mark = |c: char| matches!(c, '_' | '-') || c.is_ascii_digit();
    let mut name = name.trim_matches(is_mark);
    for word in BESIDE_SPLITS {
        name = name.strip_prefix(word).unwrap_or(name);
        name = name.strip_suffix(word).unwrap_or(name);
        name = name.trim_matches(is_mark);
    }
    SPLITS.contains(&name)
}

/// Such as `train2017`.
fn is_of_coco(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let begin = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.len() - begin.len() == 4 && is_split(begin.as_ref())
}

fn has_folder(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

/// Refuses a flat folder whose labels would be lost: a file beside the pictures has them.
///
/// # Errors
/// Which file has them.
pub(crate) fn check_unread_labels(root: &Path, has_pictures: bool) -> Result<()> {
    let Some(found) = metadata_of(root).filter(|_| has_pictures) else {
        return Ok(());
    };
    let path = found.path.display();
    if found.path.extension().is_some_and(|end| end == "parquet") {
        tracing::warn!(
            "{path}: is not read with the pictures. To use its labels write it as metadata.csv \
             (Python: pandas.read_parquet('metadata.parquet').to_csv('metadata.csv', \
             index=False)), and give this"
        );
    }
    match found.has_labels {
        true => Err(Error::dataset(
            root,
            format!(
                "{path} has labels of its pictures, and a folder is read without it: give this \
                 file, or use `labels: none` to read the pictures without labels"
            ),
        )),
        false => Ok(()),
    }
}

/// A file about the pictures beside it.
struct MetadataFile {
    path: PathBuf,
    /// Whether it has a column of labels; Parquet's are not looked at.
    has_labels: bool,
}

/// That of a folder, where it has one.
fn metadata_of(folder: &Path) -> Option<MetadataFile> {
    let paths = METADATA.iter().map(|name| folder.join(name));
    let path = paths.into_iter().find(|path| path.is_file())?;
    Some(MetadataFile {
        has_labels: has_labels(&path),
        path,
    })
}

/// By the header line of a CSV, or the first record of JSON lines.
fn has_labels(path: &Path) -> bool {
    const MOST: u64 = 64 << 10;
    let Ok(file) = fs::File::open(path) else {
        return false;
    };
    let mut begin = Vec::new();
    if file.take(MOST).read_to_end(&mut begin).is_err() {
        return false;
    }
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&begin);
    let mut lines = begin.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.find(|line| !line.is_empty()) else {
        return false;
    };
    let is_csv = path.extension().is_some_and(|end| end == "csv");
    let mut names = Vec::new();
    if is_csv {
        let text = String::from_utf8_lossy(line);
        let fields = text.split([',', ';', '\t']);
        names.extend(fields.map(|name| name.trim().trim_matches('"').to_owned()));
    } else if let Err(fault) = lenient_json::members(line, |key, _| names.push(key.into_owned())) {
        // The keys in front of it are known, as those of a long line are.
        tracing::debug!("{}: {fault}", path.display());
    }
    names.iter().any(|name| is_of_labels(name))
}
