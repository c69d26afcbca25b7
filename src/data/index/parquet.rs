//! Reads Parquet files as Hugging Face writes them: where the bytes of pictures lie, and what
//! their labels are.
//!
//! Runs in the consumer, before there are other processes; its threads are joined before it
//! returns. Where a page is not packed, a picture is a range of the file, as it is of a tar: 4
//! bytes are read of each. A packed page becomes a shard of its own, which is unpacked where a
//! sample of it is used. So an index of packed pages reads them all, once.
//!
//! - A row is a sample, called `row-N`, from 0 in each file. A row without a picture is a
//!   sample that fails.
//! - Samples have the order of the files as they were named, and of the rows in them.
//! - A file that is damaged is an error: nothing says what is left of it.
//! - Memory: a thread holds one page, as it lies there and unpacked. Each has at most 512 MiB, and
//!   pages over 64 MiB are in memory one at a time. A page of labels has at most 64 MiB, and its
//!   values are read one by one.
//!
//! - `options`: how they are read; `file_paths`: which names are those of such files;
//! - `file`: one file; `footer`: its end; `columns`: which columns are meant;
//! - `pages`: the pages of a column; `thrift`, `rle`, `delta`: how heads and numbers are
//!   written; `values`: the values of a page of labels;
//! - `pictures`, `labels`: what the two columns have.

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
mod options;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod pictures;
#[cfg(feature = "parquet")]
mod rle;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod values;

use std::path::PathBuf;

use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::error::Result;

pub(crate) use file_paths::{expand, is_named};
pub use options::{ParquetLabels, ParquetOptions};

/// The index of Parquet files, which says what they were like.
#[cfg(feature = "parquet")]
pub(crate) fn open(files: &[PathBuf], options: &ParquetOptions) -> Result<(Index, ScanReport)> {
    file::open(files, options)
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn open(_: &[PathBuf], _: &ParquetOptions) -> Result<(Index, ScanReport)> {
    Err(crate::error::Error::config(
        "a Parquet file is a source only with the feature parquet: build featherload with it",
    ))
}
