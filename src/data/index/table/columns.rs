//! Which columns of a table have the paths and the labels, where nobody names them.
//!
//! In the consumer. Knows names only.

use crate::data::index::table::options::TableLabels;
use crate::data::index::table::row::ticked;

/// Names of columns of paths, the best first. Of those in one row none is better.
const PATHS: &[&[&str]] = &[
    &["file_name", "filename"],
    &["path", "file_path", "filepath", "image_path"],
    &["image", "img", "image_name", "file"],
    &["image_id", "imageid"],
];
/// The same of labels.
const LABELS: &[&[&str]] = &[&["label"], &["class"], &["category"], &["target"]];

/// Names in a message.
const NAMED: usize = 8;

/// The column of the paths: the one that is asked for, or the best of `names`.
pub(super) fn path<S: AsRef<str>>(
    names: &[S],
    asked: Option<&str>,
) -> Result<Option<String>, String> {
    match asked {
        Some(name) => Ok(Some(name.to_owned())),
        None => best(names, PATHS, "the path", "path_column"),
    }
}

/// Where [`path`] finds none.
pub(super) fn no_path<S: AsRef<str>>(names: &[S]) -> String {
    format!(
        "no column is known to hold paths: name it with `path_column`; the columns are {}",
        listed(names)
    )
}

/// The columns of the labels; of none where there are none.
pub(super) fn labels<S: AsRef<str>>(
    names: &[S],
    asked: &TableLabels,
) -> Result<Vec<String>, String> {
    match asked {
        TableLabels::None => Ok(Vec::new()),
        TableLabels::Columns(names) => Ok(names.clone()),
        TableLabels::Auto => {
            let found = best(names, LABELS, "the label", "label_column")?;
            Ok(found.into_iter().collect())
        }
    }
}

/// Whether a column of this name is one of labels, where nobody names them.
pub(in crate::data::index) fn is_of_labels(name: &str) -> bool {
    let mut known = LABELS.iter().copied().flatten();
    known.any(|known| known.eq_ignore_ascii_case(name))
}

/// The position of a column that is asked for.
pub(super) fn position<S: AsRef<str>>(names: &[S], name: &str) -> Result<usize, String> {
    let found = names.iter().position(|known| known.as_ref() == name);
    found.ok_or_else(|| {
        format!(
            "no column {}: the columns are {}",
            ticked(name),
            listed(names)
        )
    })
}

fn best<S: AsRef<str>>(
    names: &[S],
    known: &[&[&str]],
    what: &str,
    option: &str,
) -> Result<Option<String>, String> {
    for rank in known {
        let is_of_rank = |name: &&S| rank.iter().any(|r| r.eq_ignore_ascii_case(name.as_ref()));
        let found: Vec<&S> = names.iter().filter(is_of_rank).collect();
        match found.as_slice() {
            [] => {}
            [name] => return Ok(Some(name.as_ref().to_owned())),
            [..] => {
                return Err(format!(
                    "several columns may be {what}: {}: name one with `{option}`",
                    listed(&found)
                ));
            }
        }
    }
    Ok(None)
}

fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(NAMED)
        .map(|n| ticked(n.as_ref()))
        .collect();
    if let Some(more @ 1..) = names.len().checked_sub(NAMED) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_name_is_taken_and_equals_are_refused() {
        for (names, want) in [
            (&["label", "path", "file_name"][..], "file_name"),
            (&["image_id", "Image"], "Image"),
            (&["x", "ImageID", "LabelName"], "ImageID"),
            (&["Filename"], "Filename"),
        ] {
            assert_eq!(path(names, None).unwrap().unwrap(), want);
        }
        let e = path(&["image_path", "label", "filepath"], None).unwrap_err();
        assert_eq!(
            e,
            "several columns may be the path: 'image_path', 'filepath': name one with \
             `path_column`"
        );
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        assert_eq!(path(&many, None).unwrap(), None);
        let e = no_path(&many);
        assert!(e.ends_with("'g', 'h', and 2 more"), "{e}");
        let asked = path(&["file_name"], Some("other")).unwrap();
        assert_eq!(asked.unwrap(), "other");
    }

    #[test]
    fn labels_may_be_none_or_many() {
        let auto = |names: &[&str]| labels(names, &TableLabels::Auto);
        assert_eq!(auto(&["target", "Class"]).unwrap(), ["Class"]);
        assert!(auto(&["path", "caption"]).unwrap().is_empty());
        assert!(
            auto(&["label", "Label"])
                .unwrap_err()
                .contains("label_column")
        );
        assert!(labels(&["label"], &TableLabels::None).unwrap().is_empty());
        assert!(is_of_labels("Category") && !is_of_labels("labels"));
        let e = position(&["a", "b"], "A").unwrap_err();
        assert_eq!(e, "no column 'A': the columns are 'a', 'b'");
    }
}
