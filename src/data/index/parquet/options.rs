//! Options for reading Parquet files.

use std::path::PathBuf;

use crate::data::index::classes::ClassList;

/// How [`Index::parquet`](crate::data::index::Index::parquet) reads Parquet files.
#[derive(Debug, Clone, Default)]
pub struct ParquetOptions {
    /// The image column: bytes, or a struct with a field `bytes`, as Hugging Face writes it. Or texts
    /// that are paths or addresses of images.
    ///
    /// By default the only such column. Of several, the only one that Hugging Face's metadata
    /// marks as an image; else the only one with a usual name, such as `image`, `img`, `picture`
    /// or `photo`. Without such columns the one of texts with a usual name of images or paths, such
    /// as `url`.
    pub image_column: Option<String>,
    /// Which column has the labels.
    pub labels: ParquetLabels,
    /// The class list, which numbers class names. By default whole numbers keep the numbering of
    /// Hugging Face's metadata, and texts are numbered from 0 in the order of their bytes.
    pub classes: Option<ClassList>,
    /// The folder that relative paths in an image column start from. By default the folder of the
    /// file. Arrow files do not use it.
    pub root: Option<PathBuf>,
    /// Accepts paths in an image column that leave that folder. Those of Arrow files may always.
    pub allow_outside: bool,
}

/// Which column of Parquet files has the labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ParquetLabels {
    /// The first existing column of `label`, `class`, `category`, `target`. Else the only column
    /// that Hugging Face's metadata marks as a `ClassLabel`. Else as
    /// [`TableLabels::Auto`](crate::data::index::TableLabels::Auto). If no column fits there are
    /// no labels; if several fit equally, that is an error.
    #[default]
    Auto,
    /// No labels are read.
    None,
    /// This column. Whole numbers are class numbers, texts are class names, and fractions are
    /// vectors of one number.
    Column(String),
}
