//! Folders whose sub-folders are not classes: splits, and parts of detection data sets.
//!
//! Also finds the metadata file that holds the labels of the images beside it.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::folder::{tar_below, tar_in};
use crate::data::index::column_names::is_of_labels;
use crate::data::index::lenient_json;
use crate::data::index::names::has_image_extension;
use crate::error::{Error, Result};

/// Names of split folders, in lower case.
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

/// Words that a split's name may have before or after it, as in `training_set` and `seg_train`.
const BESIDE_SPLITS: [&str; 5] = ["images", "image", "data", "set", "seg"];

/// Hugging Face's metadata files. They may hold the labels of the images beside them.
const METADATA: [&str; 3] = ["metadata.jsonl", "metadata.csv", "metadata.parquet"];

/// Limits of the search for images: entries per folder, and levels of sub-folders.
const MOST_NAMES: usize = 1000;
const DEEPEST: usize = 2;

/// Further folders of a detection data set that may hold images.
const BESIDE_DETECTION: [&str; 2] = ["SegmentationClass", "SegmentationObject"];

/// Folders that identify a detection data set, the folder of its images, and its name.
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

/// Rejects a folder whose sub-folders `folders` are not classes.
///
/// Returns a warning, as text, if the sub-folders look like splits but may be classes. Also
/// returns one if labels of a metadata file are not used.
///
/// # Errors
/// The sub-folders are splits, or belong to a detection data set. The error names a folder or a
/// file to use instead.
pub(crate) fn check_class_folders(root: &Path, folders: &[Vec<u8>]) -> Result<Option<String>> {
    let names: Vec<&OsStr> = folders.iter().map(|name| OsStr::from_bytes(name)).collect();
    const ALL: &str = "`labels: none` reads all images without labels";
    if let Some((pictures, of)) = of_detection(root, &names) {
        return Err(Error::dataset(
            root,
            format!(
                "its folders have the layout of {of} and are not classes: give {} for the images \
                 alone, or a list with one `path label` per line; {ALL}; `classes` uses the \
                 folders as classes",
                pictures.display()
            ),
        ));
    }
    let splits = names.iter().filter(|name| is_split(name));
    let deep = splits.filter(|name| has_folder(&root.join(name)));
    let deep: Vec<_> = deep.map(|name| name.to_string_lossy()).collect();
    if deep.len() > 1 && !names.iter().all(|name| is_split(name)) {
        return Ok(Some(format!(
            "{}: its folders {} look like splits, but all its folders are used as classes: give \
             one split, or use `labels: none`",
            root.display(),
            deep.join(", ")
        )));
    }
    if !names.iter().all(|name| is_split(name)) {
        return Ok(metadata_of(root).filter(|found| found.has_labels).map(|found| {
            format!(
                "{}: labels come from the class folders, not from {}: give that file to use its \
                 labels",
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
            let is = format!("its only folder is {one}, which is a split, not a class");
            (is, format!("give {}", first.display()))
        }
        all => {
            let all: Vec<_> = all.iter().map(|name| name.to_string_lossy()).collect();
            let is = format!("its folders {} are splits, not classes", all.join(", "));
            (is, format!("give one of them, such as {}", first.display()))
        }
    };
    if let Some(found) = metadata_of(&first).filter(|found| found.has_labels) {
        let found = found.path.display();
        let what = format!("{is}: give {found}, which has labels; {ALL}");
        return Err(Error::dataset(root, what));
    }
    if names.iter().any(|name| has_folder(&root.join(name))) {
        let what = format!("{is}: {give}; {ALL}; `classes` uses the folders as classes");
        return Err(Error::dataset(root, what));
    }
    Ok(Some(format!(
        "{}: {is}. Without class folders, splits are used as classes: {give}, or use \
         `labels: none`",
        root.display()
    )))
}

/// The image folder of a detection data set, and the name of its layout. `None` if the folders
/// match no layout, or if any other folder has images: then the folders are classes.
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

/// Whether a folder has an image, by file extension, in itself or at most `below` levels down.
fn has_picture(folder: &Path, below: usize) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries = entries.take(MOST_NAMES);
    entries.any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => below > 0 && has_picture(&entry.path(), below - 1),
        _ => has_image_extension(entry.file_name().as_bytes()),
    })
}

/// Whether a name is a split's, such as `train`, `training_set`, `seg_test` and `val2017`.
pub(crate) fn is_split(name: &OsStr) -> bool {
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

/// Whether a name is a split with a year, such as COCO's `train2017`.
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

/// Rejects a flat folder of images if a metadata file in it has their labels.
///
/// # Errors
/// The metadata file has a label column. The error names the file.
pub(crate) fn check_unread_labels(root: &Path, has_pictures: bool) -> Result<()> {
    let Some(found) = metadata_of(root).filter(|_| has_pictures) else {
        return Ok(());
    };
    let path = found.path.display();
    if found.path.extension().is_some_and(|end| end == "parquet") {
        tracing::warn!(
            "{path}: is not read with the images. To use its labels, write it as metadata.csv \
             (Python: pandas.read_parquet('metadata.parquet').to_csv('metadata.csv', \
             index=False)), and give that file"
        );
    }
    match found.has_labels {
        true => Err(Error::dataset(
            root,
            format!(
                "{path} has labels of its images, but reading a folder ignores it: give this \
                 file, or use `labels: none` to read the images without labels"
            ),
        )),
        false => Ok(()),
    }
}

/// A file that describes the images beside it.
struct MetadataFile {
    path: PathBuf,
    /// Whether it has a label column. False for Parquet, whose columns are not read here.
    has_labels: bool,
}

/// How to read further values of the samples of a folder, if it has a table or tar shards.
pub(crate) fn values_of(root: &Path) -> Option<String> {
    if let Some(found) = metadata_of(root) {
        let path = found.path.display();
        return Some(format!("give {path}, a table of its images"));
    }
    let pattern = tar_in(root)
        .or_else(|| tar_below(root))?
        .with_file_name("*.tar");
    Some(format!(
        "to read its tar shards give '{}'",
        pattern.display()
    ))
}

/// The metadata file of a folder, if it has one.
fn metadata_of(folder: &Path) -> Option<MetadataFile> {
    let paths = METADATA.iter().map(|name| folder.join(name));
    let path = paths.into_iter().find(|path| path.is_file())?;
    Some(MetadataFile {
        has_labels: has_labels(&path),
        path,
    })
}

/// Whether the header line of a CSV file, or the first record of JSON lines, names a label column.
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
        // The keys before the fault are still used. A line longer than `MOST` ends in one.
        tracing::debug!("{}: {fault}", path.display());
    }
    names.iter().any(|name| is_of_labels(name))
}
