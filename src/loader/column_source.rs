//! Where the columns of a data set are.
//!
//! In the consumer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::data::columns::column_set::NamedReaders;
use crate::data::columns::row_value::RowReader;
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::{
    ArrowFiles, Index, WantedFields, names_text_files, open_arrow_columns, open_arrow_rows,
    open_cache_columns, open_member_rows, open_parquet_columns, open_parquet_rows,
    open_shard_columns, open_table_columns, open_table_rows, open_text_files, values_of,
};
use crate::error::{Error, Result};
use crate::loader::source::Source;

/// The files that have the columns of a source, with stamps of before the source was read.
#[derive(Debug)]
pub(crate) enum ColumnSource {
    /// The run has no columns.
    None,
    Table(StampedFile),
    /// The stamps of files with data, then of those with indices.
    Arrow(ArrowFiles, Vec<StampedFile>),
    Parquet(Vec<StampedFile>),
    Shards,
    Cache(PathBuf),
    /// Text files beside the images.
    TextFiles,
    /// An index alone. Its samples may be in shards that have columns.
    Index,
    /// A data set in an object store. Its shards may be tars, which are read only while they stay
    /// on this machine.
    Store {
        keeps_shards: bool,
    },
}

impl ColumnSource {
    /// The columns `names` of `source`, which has not been read yet.
    ///
    /// # Errors
    /// Columns of a source that has none; a name twice; a file that cannot be examined.
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
            Source::Table(path, _) => return Ok(Self::Table(StampedFile::of(path.clone())?)),
            Source::Arrow(files, _) => {
                let all = files.data.iter().chain(&files.indices).cloned();
                return Ok(Self::Arrow(files.clone(), StampedFile::of_all(all)?));
            }
            Source::Parquet(files, _) => {
                return Ok(Self::Parquet(StampedFile::of_all(files.iter().cloned())?));
            }
            Source::Shards(..) => return Ok(Self::Shards),
            Source::Cache(path) => return Ok(Self::Cache(path.clone())),
            Source::Saved(_) | Source::Index(_) => return Ok(Self::Index),
            Source::Store(..) => return Ok(Self::Store { keeps_shards }),
            Source::Addresses(list, _) => return Self::find(list, names, keeps_shards),
            Source::Folder(..) | Source::List(..) if are_text_files(names) => {
                return Ok(Self::TextFiles);
            }
            Source::Folder(path, _) => {
                let usual = "give a table of its images with `list`. Text files beside them are \
                             columns too, named by their extension such as `.txt`";
                let found = values_of(path);
                return Err(none_in("a folder", found.as_deref().unwrap_or(usual)));
            }
            Source::List(..) => (
                "a list file",
                "give a table: a CSV, or JSON lines. Text files beside the images are columns too, \
                 named by their extension such as `.txt`",
            ),
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
        let stamped = match self {
            Self::Table(file) => std::slice::from_ref(file),
            Self::Arrow(_, files) | Self::Parquet(files) => files,
            // Each file of texts belongs to a sample (`ColumnReader::own_file`).
            Self::TextFiles => &[],
            Self::None | Self::Shards | Self::Cache(_) | Self::Index | Self::Store { .. } => &[],
        };
        stamped.iter().map(|file| file.path().to_owned()).collect()
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
            Self::Table(file) => open_table_columns(&file, names),
            Self::Arrow(files, stamps) => open_arrow_columns(&files, &stamps, names),
            Self::Parquet(files) => open_parquet_columns(&files, names),
            Self::Shards => open_shard_columns(index, names),
            Self::Cache(folder) => open_cache_columns(&folder, index, names),
            Self::TextFiles => open_text_files(index, names),
            Self::Store { keeps_shards } => {
                if Index::is_cache(index.root()) {
                    return open_cache_columns(index.root(), index, names);
                }
                match index.has_tars() {
                    true if keeps_shards => open_shard_columns(index, names),
                    true => Err(in_store()),
                    false => Err(none_in(
                        "this data set in an object store",
                        "use a copy on this machine, with a table of the values",
                    )),
                }
            }
            Self::Index => {
                let shard = (index.shards() > 0).then(|| index.shard_path(0));
                let folder = shard.as_deref().and_then(Path::parent);
                match folder.filter(|_| index.has_tars()) {
                    Some(folder) if Index::is_cache(folder) => {
                        open_cache_columns(folder, index, names)
                    }
                    Some(_) if index.is_remote() => Err(in_store()),
                    Some(_) => open_shard_columns(index, names),
                    None if are_text_files(names) => open_text_files(index, names),
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

impl ColumnSource {
    /// The files that may have objects in a column of `source`, which has not been read yet.
    ///
    /// # Errors
    /// A source without columns; a file that cannot be examined.
    pub(super) fn of_objects(source: &Source) -> Result<Self> {
        match source {
            Source::Table(..) | Source::Arrow(..) | Source::Parquet(..) => {
                Self::find(source, &[String::new()], false)
            }
            Source::Addresses(list, _) => Self::of_objects(list),
            _ => Err(Error::option(
                "objects",
                "objects: `column` names a column of Parquet, Arrow or JSON lines (.jsonl), and \
                 this data set is none of them: give `files`, or `member` for JSON in tar shards",
            )),
        }
    }

    /// The rows of the columns that `wanted` names.
    ///
    /// # Errors
    /// There is no such column; a file that changed or cannot be read.
    pub(super) fn open_rows(self, wanted: &WantedFields<'_>) -> Result<Box<dyn RowReader>> {
        match self {
            Self::Table(file) => open_table_rows(&file),
            Self::Arrow(files, stamps) => open_arrow_rows(&files, &stamps, wanted),
            Self::Parquet(files) => open_parquet_rows(&files, wanted),
            _ => Err(Error::config("objects: this data set has no columns")),
        }
    }
}

/// Whether all columns are text files beside the images.
fn are_text_files(names: &[String]) -> bool {
    names.iter().all(|name| names_text_files(name))
}

/// The rows of JSON members beside the images of tars.
///
/// # Errors
/// Samples that are no members of tars.
pub(super) fn open_members(index: &Index, extension: &str) -> Result<Box<dyn RowReader>> {
    let refused = |what| Err(Error::option("objects", what));
    match index.has_tars() {
        true => Ok(open_member_rows(extension)),
        false => refused(
            "objects: `member` names JSON beside images in tar shards, and these images are in \
             none: give `files` or `column`",
        ),
    }
}

/// The error for tar shards that do not stay on this machine.
fn in_store() -> Error {
    Error::option(
        "columns",
        "the shards are in an object store, and members beside the image are not read there: build \
         a cache of them with `cache build --columns`, which may be in the store too, or use a copy \
         of the shards on this machine",
    )
}

/// The error for a source without columns.
fn none_in(kind: &str, fix: &str) -> Error {
    Error::option(
        "columns",
        format!("`columns` and captions are further values of samples, and {kind} has none: {fix}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::columns::values::ColumnBuilder;

    const ROWS: [[&str; 2]; 2] = [["a.jpg", "first"], ["b.jpg", "other"]];

    fn table(name: &str, rows: &[[&str; 2]]) -> String {
        let line = |[path, text]: &[&str; 2]| match name.ends_with("csv") {
            true => format!("{path},{text}\n"),
            false => format!("{{\"path\": \"{path}\", \"text\": \"{text}\"}}\n"),
        };
        let lines: String = rows.iter().map(line).collect();
        match name.ends_with("csv") {
            true => format!("path,text\n{lines}"),
            false => lines,
        }
    }

    /// A table of other order and the same length is found, before and after columns are opened.
    #[test]
    fn a_table_that_is_rewritten_gives_no_values() {
        let sorted_anew = [ROWS[1], ROWS[0]];
        for name in ["t.csv", "t.jsonl"] {
            let dir = tempfile::tempdir().unwrap();
            for row in ROWS {
                std::fs::write(dir.path().join(row[0]), "an image").unwrap();
            }
            let path = dir.path().join(name);
            let write = |rows| {
                // Clocks of file systems tick every few milliseconds.
                std::thread::sleep(std::time::Duration::from_millis(30));
                std::fs::write(&path, table(name, rows)).unwrap();
            };
            let names = ["text".to_owned()];
            for is_open in [false, true] {
                write(&ROWS);
                let source = Source::detect(&path).unwrap();
                let columns = ColumnSource::of(&source, &names).unwrap();
                let (index, _) = source.open().unwrap();
                let e = if is_open {
                    let readers = columns.open(&names, &index).unwrap();
                    let reader = &readers[0].1;
                    let mut values = ColumnBuilder::new(reader.kind());
                    reader.read(&index, 0, &mut values).unwrap();
                    write(&sorted_anew);
                    reader.read(&index, 1, &mut values).unwrap_err()
                } else {
                    write(&sorted_anew);
                    columns.open(&names, &index).unwrap_err()
                };
                let e = e.to_string();
                assert!(e.contains(name) && e.contains("changed after"), "{e}");
            }
        }
    }
}
