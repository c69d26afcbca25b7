//! Chooses the columns of a table that hold the paths and the labels.
//!
//! Runs in the consumer. Reads only names.

use crate::data::index::column_names::{self, listed, quoted};
use crate::data::index::table::options::TableLabels;

/// The column of paths: the requested one, or the best of `names`.
pub(super) fn path<S: AsRef<str>>(
    names: &[S],
    asked: Option<&str>,
) -> Result<Option<String>, String> {
    match asked {
        Some(name) => Ok(Some(name.to_owned())),
        None => column_names::path(names),
    }
}

/// The error if [`path`] finds no column.
pub(super) fn no_path<S: AsRef<str>>(names: &[S]) -> String {
    format!(
        "no column is known to hold paths: name it with `path_column`; the columns are {}",
        listed(names)
    )
}

/// The columns of labels. Empty if there are none. The column of paths, `path`, is not one of them
/// unless it is requested.
pub(super) fn labels<S: AsRef<str>>(
    names: &[S],
    asked: &TableLabels,
    path: &str,
) -> Result<Vec<String>, String> {
    match asked {
        TableLabels::None => Ok(Vec::new()),
        TableLabels::Columns(names) => Ok(names.clone()),
        TableLabels::Auto => {
            let others: Vec<&str> = names
                .iter()
                .map(AsRef::as_ref)
                .filter(|n| *n != path)
                .collect();
            Ok(column_names::label(&others)?.into_iter().collect())
        }
    }
}

/// The position of a column.
///
/// # Errors
/// There is no such column, or two have this name.
pub(super) fn position<S: AsRef<str>>(names: &[S], name: &str) -> Result<usize, String> {
    let mut found = (0..names.len()).filter(|at| names[*at].as_ref() == name);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(_)) => Err(format!(
            "two columns are called {}: rename one in the header line",
            quoted(name)
        )),
        (None, _) => Err(format!(
            "no column {}: the columns are {}",
            quoted(name),
            listed(names)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_be_none_or_many() {
        let auto = |names: &[&str]| labels(names, &TableLabels::Auto, "path");
        assert_eq!(auto(&["target", "Class"]).unwrap(), ["Class"]);
        assert!(auto(&["path", "caption"]).unwrap().is_empty());
        assert!(
            labels(&["label"], &TableLabels::None, "")
                .unwrap()
                .is_empty()
        );
        assert!(
            labels(&["label", "x"], &TableLabels::Auto, "label")
                .unwrap()
                .is_empty()
        );
        assert_eq!(position(&["x", "a", "x"], "a"), Ok(1));
        let e = position(&["x", "a", "x"], "x").unwrap_err();
        assert!(e.starts_with("two columns are called 'x'"), "{e}");
        let e = position(&["a", "b"], "A").unwrap_err();
        assert_eq!(e, "no column 'A': the columns are 'a', 'b'");
        assert_eq!(
            path(&["file_name"], Some("other")).unwrap().unwrap(),
            "other"
        );
        assert!(no_path(&["a", "b"]).ends_with("the columns are 'a', 'b'"));
    }
}
