//! Where the columns of a data set are.
//!
//! In the consumer.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::data::columns::column_set::NamedReaders;
use crate::data::index::{
    ArrowFiles, Index, open_arrow_columns, open_parquet_columns, open_shard_columns,
    open_table_columns,
};
use crate::error::{Error, Result};
use crate::loader::source::Source;

/// The files that have the columns of a source.
#[derive(Debug)]
pub(super) enum ColumnSource {
    /// The run has no columns.
    None,
    Table(PathBuf),
    Arrow(ArrowFiles),
    Parquet(Vec<PathBuf>),
    Shards,
}

impl ColumnSource {
    /// The columns `names` of `source`, which has not been read yet.
    ///
    /// # Errors
    /// Columns of a source that has none; a name twice.
    pub(super) fn of(source: &Source, names: &[String]) -> Result<Self> {
        if names.is_empty() {
            return Ok(Self::None);
        }
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| !known.insert(name.as_str())) {
            return Err(Error::option(
                "columns",
                format!("column '{name}' is named twice: name it once"),
            ));
        }
        let (kind, fix) = match source {
            Source::Table(path, _) => return Ok(Self::Table(path.clone())),
            Source::Arrow(files, _) => return Ok(Self::Arrow(files.clone())),
            Source::Parquet(files, _) => return Ok(Self::Parquet(files.clone())),
            Source::Shards(..) => return Ok(Self::Shards),
            Source::Folder(..) => ("a folder", "give a table of its images with `list`"),
            Source::List(..) => ("a list file", "give a table: a CSV, or JSON lines"),
            Source::Saved(_) | Source::Index(_) => {
                ("a saved index", "give the data set that it was made of")
            }
            Source::Cache(_) => ("a cache", "give the data set that it was built of"),
            Source::Addresses(list, _) => return Self::of(list, names),
            Source::Store(..) => (
                "a data set in an object store",
                "use a copy of it on this machine",
            ),
            Source::Array(_) => (
                "an array of images",
                "give the values with Items in Python, or a table of image files",
            ),
            Source::Cifar(..) => ("a folder of CIFAR's batches", "remove it"),
        };
        Err(Error::option(
            "columns",
            format!("`columns` names further values of samples, and {kind} has none: {fix}"),
        ))
    }

    /// Opens the columns.
    ///
    /// # Errors
    /// There is no such column; a type that no batch has; a file that cannot be read.
    pub(super) fn open(self, names: &[String], index: &Index) -> Result<NamedReaders> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Table(path) => open_table_columns(&path, names),
            Self::Arrow(files) => open_arrow_columns(&files, names),
            Self::Parquet(files) => open_parquet_columns(&files, names),
            Self::Shards => open_shard_columns(index, names),
        }
    }
}
