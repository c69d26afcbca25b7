//! How a table is read.
//!
//! In the consumer.

use std::path::PathBuf;

use crate::data::index::classes::ClassList;

/// How [`Index::table`](crate::data::index::Index::table) reads a table.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// The column of the paths. By default the one that is there of `file_name`; else of
    /// `path`, `file_path`, `image_path`, `img_path`; else of `image`, `img`, `file` and
    /// `image_name`, `image_file` and the like; else of `image_id`, `img_id`. Case, blanks,
    /// `_` and `-` do not matter then. Two columns of one rank are an error.
    pub path_column: Option<String>,
    /// Stands behind each path, such as `.jpg` where a column has ids.
    pub path_suffix: String,
    pub labels: TableLabels,
    /// The numbers of class names; by default their order by bytes, from 0. With it
    /// labels of a CSV are names, though they look like numbers.
    pub classes: Option<ClassList>,
    /// As [`ListOptions::relabel`](crate::data::index::ListOptions::relabel).
    pub relabel: bool,
    /// Where relative paths start; by default the table's folder.
    pub root: Option<PathBuf>,
    /// Accept paths that lead out of the root.
    pub allow_outside: bool,
}

/// Where labels of a table are. In lines of JSON a column is a key, or a JSON pointer
/// (RFC 6901), which begins with a slash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TableLabels {
    /// The first column that is there of `label`, `class`, `category`, `target`, `labels`,
    /// `cls`; else the only one whose name ends as these do, such as `fine_label` and
    /// `class_id`; without one there are no labels. Several are an error. Case does not matter.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// One column: whole numbers are class numbers, other texts are class names, and
    /// fractions or several numbers are a vector. Several columns: a vector of their
    /// numbers.
    Columns(Vec<String>),
}
