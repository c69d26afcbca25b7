//! How Parquet files are read.
//!
//! In the consumer.

use crate::data::index::classes::ClassList;

/// How [`Index::parquet`](crate::data::index::Index::parquet) reads Parquet files.
#[derive(Debug, Clone, Default)]
pub struct ParquetOptions {
    /// The column of the pictures: bytes, or a struct with a field `bytes`, as Hugging Face
    /// writes it. By default the only one that there is; of several the one that the file's
    /// note of Hugging Face calls an image, or else the one with a usual name, such as `image`,
    /// `img`, `picture` or `photo`.
    pub image_column: Option<String>,
    pub labels: ParquetLabels,
    /// The numbers of class names; by default those that Hugging Face's note gives them, and of
    /// texts their order by bytes, from 0.
    pub classes: Option<ClassList>,
}

/// Where labels of Parquet files are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ParquetLabels {
    /// The first column that is there of `label`, `class`, `category`, `target`; else the only
    /// one that the note of Hugging Face says to be a `ClassLabel`; else as
    /// [`TableLabels::Auto`](crate::data::index::TableLabels::Auto); without one there are no
    /// labels. Several are an error.
    #[default]
    Auto,
    /// Nowhere.
    None,
    /// This column: whole numbers are class numbers, texts are class names, and fractions are
    /// a vector of one number.
    Column(String),
}
