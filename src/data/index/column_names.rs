//! Finds the columns of paths, labels and images by their names, if the user names none.
//!
//! Runs in the consumer, for tables and for Parquet files. Reads only names. Case, blanks, `_` and
//! `-` do not matter. If several columns match, the error lists them.

use crate::data::index::names::shown;
use crate::error::{self, Error};

/// Names of path columns, the best first. Names in one group have the same rank.
const PATHS: &[&[&str]] = &[
    &["filename"],
    &["path", "filepath", "imagepath", "imgpath"],
    &[
        "image",
        "img",
        "imagename",
        "imgname",
        "imagefile",
        "imgfile",
        "imagefilename",
        "file",
    ],
    &["imageid", "imgid"],
    &["url", "imageurl", "imgurl", "uri", "imageuri"],
];
/// Names of label columns, the best first. [`sounds_like_label`] comes after them.
const LABELS: &[&[&str]] = &[
    &["label"],
    &["class"],
    &["category"],
    &["target"],
    &["labels"],
    &["cls"],
];
/// The number of groups of `LABELS` that take precedence over the metadata of a file.
const PLAIN_LABELS: usize = 4;
/// Names of image columns. All have the same rank.
const PICTURES: &[&str] = &[
    "image",
    "img",
    "picture",
    "photo",
    "images",
    "jpg",
    "jpeg",
    "png",
    "pixelvalues",
    "imagebytes",
    "imgbytes",
    "imagedata",
    "bytes",
    "data",
];
/// The words that end the name of a label column, before a word of `ENDS`.
const OF_LABELS: [&str; 9] = [
    "label",
    "labels",
    "class",
    "classes",
    "cls",
    "category",
    "categories",
    "target",
    "targets",
];
/// Words at the end of a name that are ignored.
const ENDS: [&str; 6] = ["id", "idx", "index", "name", "names", "no"];
/// First words of names that are counts or flags, such as `num_classes` and `is_labels`.
const OF_OTHERS: [&str; 6] = ["num", "n", "nb", "count", "is", "has"];
/// Maximum number of names in a message.
const NAMED: usize = 8;

/// Finds columns of a table by usual names, as in CSV and Parquet files.
#[derive(Clone, Copy, Debug)]
pub struct UsualColumns<'a>(
    /// The names of all columns.
    pub &'a [String],
);

impl UsualColumns<'_> {
    /// The column of paths. `None` if no name is that of paths.
    ///
    /// # Errors
    /// [`Error::Config`] for `path_column`, if several names are equally good.
    pub fn path(&self) -> error::Result<Option<String>> {
        path(self.0).map_err(|why| Error::option("path_column", why))
    }

    /// Columns with names of images, in the order of the table.
    pub fn images(&self) -> Vec<String> {
        let images = self.0.iter().filter(|name| is_picture(name));
        images.cloned().collect()
    }

    /// The column of labels. `None` if no name sounds like labels.
    ///
    /// # Errors
    /// [`Error::Config`] for `label_column`, if several names are equally good.
    pub fn label(&self) -> error::Result<Option<String>> {
        label(self.0).map_err(|why| Error::option("label_column", why))
    }
}

/// The best path column. An error if several have the best rank.
pub(crate) fn path<S: AsRef<str>>(names: &[S]) -> Result<Option<String>, String> {
    let ranks = PATHS.iter().map(|rank| |name: &str| is_of(rank, name));
    best(names, ranks).map_err(|found| {
        format!("several columns may be the path: {found}: name one with `path_column`")
    })
}

/// The best label column. `None` if no name sounds like a label. An error if several have the best
/// rank.
pub(crate) fn label<S: AsRef<str>>(names: &[S]) -> Result<Option<String>, String> {
    let known = LABELS.iter().map(|rank| |name: &str| is_of(rank, name));
    let found = match best(names, known) {
        Ok(None) => best(names, [sounds_like_label].into_iter()),
        found => found,
    };
    found.map_err(|found| several_labels(&found))
}

/// Whether a column has one of the first [`PLAIN_LABELS`] names of labels.
pub(crate) fn is_plain_label(name: &str) -> bool {
    LABELS[..PLAIN_LABELS].iter().any(|rank| is_of(rank, name))
}

/// Whether a column of this name holds images, if its type allows it.
pub(crate) fn is_picture(name: &str) -> bool {
    is_of(PICTURES, name)
}

/// The error for several columns that may hold labels.
pub(crate) fn several_labels(listed: &str) -> String {
    format!(
        "several columns may be the label: {listed}: name one with `label_column`, or use \
         `labels: none`"
    )
}

/// Whether a column of this name may hold labels, if the user names no label column.
pub(crate) fn is_of_labels(name: &str) -> bool {
    LABELS.iter().any(|rank| is_of(rank, name)) || sounds_like_label(name)
}

/// Names for a message. Long lists are cut.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let mut all: Vec<String> = names
        .iter()
        .take(NAMED)
        .map(|name| quoted(name.as_ref()))
        .collect();
    if let Some(more @ 1..) = names.len().checked_sub(NAMED) {
        all.push(format!("and {more} more"));
    }
    all.join(", ")
}

/// The name of a column, for a message.
pub(crate) fn quoted(name: &str) -> String {
    format!("'{}'", shown(name.as_bytes()))
}

/// The only name of the best rank that has names. An error lists several names of that rank.
fn best<S: AsRef<str>>(
    names: &[S],
    ranks: impl Iterator<Item = impl Fn(&str) -> bool>,
) -> Result<Option<String>, String> {
    for is_of_rank in ranks {
        let found: Vec<&S> = names.iter().filter(|n| is_of_rank(n.as_ref())).collect();
        match found.as_slice() {
            [] => {}
            [name] => return Ok(Some(name.as_ref().to_owned())),
            [..] => return Err(listed(&found)),
        }
    }
    Ok(None)
}

fn is_of(rank: &[&str], name: &str) -> bool {
    let plain = words(name).concat();
    rank.contains(&plain.as_str())
}

/// Whether a name ends like that of a label column: `fine_label`, `LabelName`, `class id`. False
/// for counts and flags, such as `num_classes`.
fn sounds_like_label(name: &str) -> bool {
    let words = words(name);
    let end = words
        .iter()
        .rposition(|word| !ENDS.contains(&word.as_str()));
    let is_of_others = words
        .first()
        .is_some_and(|w| OF_OTHERS.contains(&w.as_str()));
    !is_of_others && end.is_some_and(|end| OF_LABELS.contains(&words[end].as_str()))
}

/// The words of a name in lower case. A capital after a small letter starts a new word.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_mark = matches!(c, '_' | '-' | ' ' | '.');
        if is_mark || (was_small && c.is_uppercase()) {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| !is_mark) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_path_is_taken_and_equals_are_refused() {
        for (names, want) in [
            (&["label", "path", "file_name"][..], "file_name"),
            (&["image_id", "Image"], "Image"),
            (&["x", "ImageID", "LabelName"], "ImageID"),
            (&["Filename"], "Filename"),
            (&["id", "File Name"], "File Name"),
            (&["id", "image-path"], "image-path"),
            (&["id", "FilePath"], "FilePath"),
            (&["id", "img_path"], "img_path"),
            (&["caption", "URL"], "URL"),
            (&["url", "image"], "image"),
        ] {
            assert_eq!(path(names).unwrap().unwrap(), want);
        }
        let e = path(&["image_path", "label", "filepath"]).unwrap_err();
        assert_eq!(
            e,
            "several columns may be the path: 'image_path', 'filepath': name one with \
             `path_column`"
        );
        assert_eq!(path(&["a", "b"]).unwrap(), None);
    }

    #[test]
    fn the_only_column_that_sounds_like_one_of_labels_is() {
        for (names, want) in [
            (&["target", "Class"][..], "Class"),
            (&["labels"], "labels"),
            (&["Labels", "num_labels"], "Labels"),
            (&["cls"], "cls"),
            (&["Label"], "Label"),
            (&["fine_label"], "fine_label"),
            (&["ImageID", "LabelName"], "LabelName"),
            (&["class_id"], "class_id"),
            (&["label", "fine_label", "labels"], "label"),
            (&["category_id", "supercategory"], "category_id"),
        ] {
            assert_eq!(label(names).unwrap().unwrap(), want, "{names:?}");
        }
        for name in [
            "caption",
            "num_classes",
            "label_score",
            "is_target",
            "classic",
            "target_size",
        ] {
            assert_eq!(label(&[name]).unwrap(), None);
            assert!(!is_of_labels(name));
        }
        for names in [
            &["fine_label", "coarse_label"][..],
            &["label", "Label"],
            &["class_id", "class_name"],
        ] {
            let e = label(names).unwrap_err();
            assert!(e.starts_with("several columns may be the label: "), "{e}");
            let both = format!(
                "'{}', '{}': name one with `label_column`",
                names[0], names[1]
            );
            assert!(e.contains(&both), "{e}");
        }
    }

    #[test]
    fn a_message_names_eight_columns() {
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        assert!(listed(&many).ends_with("'g', 'h', and 2 more"));
    }
}
