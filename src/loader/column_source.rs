//! Where the columns of a data set are.
//!
//! In the consumer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::data::columns::column_set::NamedReaders;
use crate::data::index::{
    ArrowFiles, Index, open_arrow_columns, open_cache_columns, open_parquet_columns,
    open_shard_columns, open_table_columns,
};
use crate::error::{Error, Result};
use crate::loader::source::Source;

/// The files that have the columns of a source.
#[derive(Debug)]
pub(crate) enum ColumnSource {
    /// The run has no columns.
    None,
    Table(PathBuf),
    Arrow(ArrowFiles),
    Parquet(Vec<PathBuf>),
    Shards,
    Cache(PathBuf),
    /// An index alone. Its samples may be in shards that have columns.
    Index,
    /// A data set in an object store. Its shards may be tars, which are read only while they stay on
    /// this machine.
    Store {
        keeps_shards: bool,
    },
}

impl ColumnSource {
    /// The columns `names` of `source`, which has not been read yet.
    ///
    /// # Errors
    /// Columns of a source that has none; a name twice.
    pub(super) fn of(source: &Source, names: &[String]) -> Result<Self> {
        Self::find(source, names, false)
    }

    /// Like [`ColumnSource::of`], for a cache that is built: shards of a store stay while they are
    /// read.
    ///
    /// # Errors
    /// As [`ColumnSource::of`].
    pub(crate) fn of_cached(source: &Source, names: &[String]) -> Result<Self> {
        Self::find(source, names, true)
    }

    fn find(source: &Source, names: &[String], keeps_shards: bool) -> Result<Self> {
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
            Source::Cache(path) => return Ok(Self::Cache(path.clone())),
            Source::Saved(_) | Source::Index(_) => return Ok(Self::Index),
            Source::Store(..) => return Ok(Self::Store { keeps_shards }),
            Source::Addresses(list, _) => return Self::find(list, names, keeps_shards),
            Source::Folder(..) => ("a folder", "give a table of its images with `list`"),
            Source::List(..) => ("a list file", "give a table: a CSV, or JSON lines"),
            Source::Array(_) => (
                "an array of images",
                "give the values with Items in Python, or a table of image files",
            ),
            Source::Cifar(..) => ("a folder of CIFAR's batches", "remove it"),
        };
        Err(none_in(kind, fix))
    }

    /// The files that have values and may have no image.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Table(path) => vec![path.clone()],
            Self::Arrow(files) => files.data.iter().chain(&files.indices).cloned().collect(),
            Self::Parquet(files) => files.clone(),
            Self::None | Self::Shards | Self::Cache(_) | Self::Index | Self::Store { .. } => {
                Vec::new()
            }
        }
    }

    /// Whether opening the columns reads the first samples of shards in a store.
    pub(crate) fn probes(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    /// Opens the columns.
    ///
    /// # Errors
    /// There is no such column; a type that no batch has; a file that cannot be read.
    pub(crate) fn open(self, names: &[String], index: &Index) -> Result<NamedReaders> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Table(path) => open_table_columns(&path, names),
            Self::Arrow(files) => open_arrow_columns(&files, names),
            Self::Parquet(files) => open_parquet_columns(&files, names),
            Self::Shards => open_shard_columns(index, names),
            Self::Cache(folder) => open_cache_columns(&folder, index, names),
            Self::Store { keeps_shards } => {
                if Index::is_cache(index.root()) {
                    return open_cache_columns(index.root(), index, names);
                }
                match has_tars(index) {
                    true if keeps_shards => open_shard_columns(index, names),
                    true => Err(Error::option(
                        "columns",
                        "the shards are in an object store, and members beside the image are not \
                         read there: build a cache of them with `cache build --columns`, which may \
                         be in the store too, or use a copy of the shards on this machine",
                    )),
                    false => Err(none_in(
                        "this data set in an object store",
                        "use a copy on this machine, with a table of the values",
                    )),
                }
            }
            Self::Index => {
                let shard = (index.shards() > 0).then(|| index.shard_path(0));
                let folder = shard.as_deref().and_then(Path::parent);
                match folder.filter(|_| has_tars(index)) {
                    Some(folder) if Index::is_cache(folder) => {
                        open_cache_columns(folder, index, names)
                    }
                    Some(_) => open_shard_columns(index, names),
                    None => Err(none_in(
                        "a saved index",
                        "give the data set that it was made of, or keep them in a cache (`cache \
                         build --columns`)",
                    )),
                }
            }
        }
    }
}

/// Whether samples are members of tars.
fn has_tars(index: &Index) -> bool {
    index.shards() > 0
        && !index.is_in_memory()
        && index.page(0).is_none()
        && index.pixels(0).is_none()
        && index.shard_path(0).extension().is_some_and(|e| e == "tar")
}

/// The error for a source without columns.
fn none_in(kind: &str, fix: &str) -> Error {
    Error::option(
        "columns",
        format!("`columns` names further values of samples, and {kind} has none: {fix}"),
    )
}
