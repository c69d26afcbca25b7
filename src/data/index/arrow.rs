//! Reads Arrow files and streams, as Hugging Face's `datasets` and pyarrow write them: finds the
//! bytes of images, and the labels.
//!
//! Runs in the consumer, before the workers start. Its threads end before it returns.
//!
//! - An image is a range of the file, as in a tar. Offsets are read, and no image.
//! - A column of paths, or a struct whose bytes are all missing, is a list of files.
//! - A row is a sample, named `row-N`, from 0 in each file. A row without an image is a sample that
//!   fails.
//! - Samples have the order of the given files and of their rows, or that of the list of indices
//!   that old versions of `datasets` keep beside the files.
//! - Memory: up to 128 bytes for each row of all files, until the index is sealed. A list of files
//!   takes the paths as well. Each thread keeps up to 128 MiB of unpacked labels and paths.
//!
//! - `file_paths`: names of Arrow files, and folders of `save_to_disk`;
//! - `columns`: the columns of images and labels; `pictures`, `labels`: their contents;
//! - `files`: all files as one index; `column_reader`: further columns, read by batches;
//!   `row_reader`: columns with others inside of them, read before a run.

mod column_reader;
mod columns;
mod file_paths;
mod files;
mod labels;
mod pictures;
pub(in crate::data::index) mod row_reader;
#[cfg(test)]
mod tests;

pub(crate) use column_reader::open_columns;
pub use file_paths::ArrowFiles;
pub(crate) use file_paths::{expand, is_named};
pub(crate) use files::open;
pub(crate) use row_reader::open_rows;
