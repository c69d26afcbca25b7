//! Reads Parquet files as Hugging Face writes them: finds the bytes of images, and the labels.
//!
//! Runs in the consumer, before the workers start. Its threads end before it returns.
//!
//! - Pages without compression: an image is a range of the file, as in a tar. The scan reads only
//!   the 4 bytes of its length.
//! - Compressed pages: each becomes a shard of its own. The scan decompresses it once. Workers
//!   decompress it again when they use one of its samples.
//! - A row is a sample, named `row-N`, from 0 in each file. A row without an image is a sample that
//!   fails.
//! - A column of paths or addresses is read like that of a list.
//! - Samples have the order of the given files, and of the rows in them.
//! - A damaged file is an error, because nothing states which parts are intact.
//! - Memory: each thread holds one page, compressed and decompressed, of at most 512 MiB each.
//!   Image pages over 64 MiB are in memory one at a time. A label page has at most 64 MiB
//!   decompressed, and its values are read one by one.
//!
//! - `options`: reading options; `file_paths`: names of Parquet files;
//! - `file`: one file; `footer`: its footer; `columns`: the columns of images and labels;
//! - `pages`: the pages of a column; `thrift`, `rle`, `delta`: encodings of headers and numbers;
//!   `values`: the values of a page of labels;
//! - `pictures`, `labels`: the contents of the two columns; `picture_paths`: paths in place of
//!   images; `levels`: rows and lists of a page; `column_reader`: further columns, read by batches;
//! - `row_reader`: columns with others inside of them, read before a run; `nested_leaf`: one of
//!   those inside.

#[cfg(feature = "parquet")]
mod column_reader;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod delta;
#[cfg(feature = "parquet")]
mod file;
mod file_paths;
#[cfg(feature = "parquet")]
mod footer;
#[cfg(feature = "parquet")]
mod labels;
#[cfg(feature = "parquet")]
mod levels;
#[cfg(feature = "parquet")]
mod nested_leaf;
mod options;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod picture_paths;
#[cfg(feature = "parquet")]
mod pictures;
#[cfg(feature = "parquet")]
mod rle;
#[cfg(feature = "parquet")]
mod row_reader;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod values;

use std::path::PathBuf;

use crate::data::columns::column_set::NamedReaders;
use crate::data::columns::row_value::RowReader;
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::features::WantedFields;
use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::error::Result;

pub(crate) use file_paths::{expand, is_named};
pub(in crate::data::index) use file_paths::{has_files, is_folder_of};
pub use options::{ParquetLabels, ParquetOptions};

/// The index of Parquet files, and the report of the scan.
#[cfg(feature = "parquet")]
pub(crate) fn open(files: &[PathBuf], options: &ParquetOptions) -> Result<(Index, ScanReport)> {
    file::open(files, options)
}

/// The columns `names` of Parquet files.
#[cfg(feature = "parquet")]
pub(crate) fn open_columns(files: &[StampedFile], names: &[String]) -> Result<NamedReaders> {
    column_reader::open_columns(files, names)
}

/// The rows of Parquet files, with the columns that `wanted` names.
#[cfg(feature = "parquet")]
pub(crate) fn open_rows(
    files: &[StampedFile],
    wanted: &WantedFields<'_>,
) -> Result<Box<dyn RowReader>> {
    row_reader::open_rows(files, wanted)
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn open_rows(_: &[StampedFile], _: &WantedFields<'_>) -> Result<Box<dyn RowReader>> {
    Err(crate::error::Error::config(
        "reading Parquet files needs the feature parquet: build featherload with it",
    ))
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn open_columns(_: &[StampedFile], _: &[String]) -> Result<NamedReaders> {
    Err(crate::error::Error::config(
        "reading Parquet files needs the feature parquet: build featherload with it",
    ))
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn open(_: &[PathBuf], _: &ParquetOptions) -> Result<(Index, ScanReport)> {
    Err(crate::error::Error::config(
        "reading Parquet files needs the feature parquet: build featherload with it",
    ))
}
