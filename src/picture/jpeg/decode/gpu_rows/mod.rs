//! Baseline JPEG for a GPU: the row that a worker writes instead of pixels, and the structs that
//! the kernels of `kernels/jpeg.cu` read.
//!
//! A worker parses the header, and removes stuffed bytes and markers from the coded data. A row
//! holds a header of fixed size, the end of each segment between restart markers, and the coded
//! data. The consumer copies the header, checks each of its numbers, and computes all addresses
//! itself. The reason: a row may come from a process that decodes untrusted files.
//!
//! Rows take the files of [`WindowDecoder`](super::WindowDecoder), except files of four components
//! and files over the limits of `limits`. The decision depends on the file alone.
//!
//! - `row_header`: the layout of a row; `row_writer`, `row_reader`: write and read a row.
//! - `limits`: the largest pictures.
//! - `unstuff`: removes stuffed bytes from coded data.
//! - `codes`: a Huffman table in the kernels' layout.
//! - `kernel_picture`: a picture in the kernels' layout, and its memory.
//! - `resize`: tables after the coded data, which resize the window to the row's size.

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
