//! Baseline JPEG for a GPU: the row that a worker writes instead of pixels, and what the kernels of
//! `kernels/jpeg.cu` read of it.
//!
//! A worker parses the header and takes stuffed bytes and markers out of the coded data. A row is
//! a header of fixed size, the end of each segment between restart markers, and the coded data.
//! The consumer copies the header, checks every number of it, and computes all places in memory
//! itself: a row may come from a process that decodes untrusted files.
//!
//! Takes the files of [`WindowDecoder`](super::WindowDecoder), except those of four components and
//! those over the limits of `limits`. The decision depends on the file alone.
//!
//! - `row_header`: the layout of a row; `row_writer`, `row_reader`: writing and reading it;
//! - `limits`: the largest pictures;
//! - `unstuff`: coded data without stuffed bytes;
//! - `codes`: a Huffman table, as the kernels read it;
//! - `kernel_picture`: a picture, as they read it, and the memory that it takes;
//! - `resize`: tables behind the coded data, where the window becomes as large as the row.

mod codes;
mod kernel_picture;
mod limits;
mod resize;
mod row_header;
mod row_reader;
mod row_writer;
#[cfg(test)]
mod tests;
mod unstuff;

pub(crate) use kernel_picture::{CHAIN_UNITS, KernelPicture, KernelSegment, MANY, UNIT_BITS};
pub(crate) use limits::{MAX_CODED, MAX_ENTRIES, MAX_PIXELS};
pub(crate) use resize::{KernelResize, ResizeAxis, write_resize};
pub(crate) use row_reader::CodedPicture;
pub(crate) use row_writer::write_row;
