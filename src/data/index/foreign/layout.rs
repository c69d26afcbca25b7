//! Folders whose sub-folders are no classes: those of splits, and those of data sets for
//! detection. And the file that has the labels of pictures in a folder.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::column_names::is_of_labels;
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

/// Files that have the labels of the pictures beside them, as Hugging Face writes them.
const METADATA: [&str; 3] = ["metadata.jsonl", "metadata.csv", "metadata.parquet"];

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
pub(crate) fn refuse_what_are_no_classes(
    root: &Path,
    folders: &[Vec<u8>],
) -> Result<Option<String>> {
    let names: Vec<&OsStr> = folders.iter().map(|name| OsStr::from_bytes(name)).collect();
    const ALL: &str = "`labels: none` reads all pictures without labels";
    let has = |name: &str| names.iter().any(|known| *known == name);
    if let Some((_, pictures, of)) = DETECTION
        .iter()
        .find(|(all, ..)| all.iter().all(|name| has(name)))
    {
        let pictures = root.join(pictures);
        return Err(Error::dataset(
            root,
            format!(
                "its folders are those of {of}, and no classes: give {} for the pictures alone, \
                 or a list with one `path label` a line; {ALL}",
                pictures.display()
            ),
        ));
    }
    if has("annotations")
        && let Some(pictures) = names.iter().find(|name| is_of_coco(name))
    {
        return Err(Error::dataset(
            root,
            format!(
                "its folders are those of COCO, and no classes: give {} for the pictures alone, \
                 or a list with one `path label` a line; {ALL}",
                root.join(pictures).display()
            ),
        ));
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
    let begins = |name: &&&OsStr| name.to_ascii_lowercase().as_bytes().starts_with(b"train");
    let Some(first) = names.iter().find(begins).or(names.first()) else {
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

fn is_split(name: &OsStr) -> bool {
    let name = name.to_ascii_lowercase();
    SPLITS.iter().any(|split| name == *split)
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
pub(crate) fn refuse_unread_labels(root: &Path, has_pictures: bool) -> Result<()> {
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
struct Metadata {
    path: PathBuf,
    /// Whether it has a column of labels; Parquet's are not looked at.
    has_labels: bool,
}

/// That of a folder, where it has one.
fn metadata_of(folder: &Path) -> Option<Metadata> {
    let paths = METADATA.iter().map(|name| folder.join(name));
    let path = paths.into_iter().find(|path| path.is_file())?;
    Some(Metadata {
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
    let mut line = Vec::new();
    let read = BufReader::new(file).take(MOST).read_until(b'\n', &mut line);
    if read.is_err() {
        return false;
    }
    let is_csv = path.extension().is_some_and(|end| end == "csv");
    let names: Vec<String> = match is_csv {
        true => String::from_utf8_lossy(&line)
            .split(',')
            .map(|name| name.trim().trim_matches('"').to_owned())
            .collect(),
        false => match serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(&line) {
            Ok(record) => record.into_iter().map(|(name, _)| name).collect(),
            Err(_) => Vec::new(),
        },
    };
    names.iter().any(|name| is_of_labels(name))
}
