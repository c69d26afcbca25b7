//! Options for reading a table.
//!
//! Used in the consumer.

use std::path::PathBuf;

use crate::data::index::classes::ClassList;

/// How [`Index::table`](crate::data::index::Index::table) reads a table.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// The column of the paths. By default the first name in this order: `file_name`; `path`,
    /// `file_path`, `image_path`, `img_path`; `image`, `img`, `file`, `image_name`, `image_file`
    /// and similar names; `image_id`, `img_id`. In the default search, case, blanks, `_` and `-` do
    /// not matter. Two columns of one rank are an error.
    pub path_column: Option<String>,
    /// Text that is added to the end of each path, such as `.jpg` if a column has ids.
    pub path_suffix: String,
    /// Where labels come from.
    pub labels: TableLabels,
    /// The numbers of class names. By default the names are sorted by bytes and numbered from 0. If
    /// given, all labels of a CSV are names, even if they look like numbers.
    pub classes: Option<ClassList>,
    /// Like [`ListOptions::relabel`](crate::data::index::ListOptions::relabel).
    pub relabel: bool,
    /// The folder that relative paths start from. By default the folder of the table.
    pub root: Option<PathBuf>,
    /// Accept paths that lead out of the root.
    pub allow_outside: bool,
}

/// The source of the labels of a table. In JSON lines a column is a key, or a JSON pointer (RFC
/// 6901), which begins with a slash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TableLabels {
    /// The first column in the order `label`, `class`, `category`, `target`, `labels`, `cls`.
    /// Otherwise the only column whose name ends in such a word, such as `fine_label` and
    /// `class_id`. Otherwise there are no labels. Several columns of one rank are an error. Case
    /// does not matter.
    #[default]
    Auto,
    /// No labels are read.
    None,
    /// One column: whole numbers are class numbers, other texts are class names, and fractions or
    /// several numbers are a vector. Several columns: a vector of their numbers.
    Columns(Vec<String>),
}
