//! Baseline JPEG for a GPU: the row that a worker writes instead of pixels, and what the kernels of
//! `kernels/jpeg.cu` read of it.
//!
//! A worker parses the header and takes stuffed bytes and markers out of the coded data. A row is
//! a header of fixed size, the end of each segment between restart markers, and the coded data.
//! The consumer copies the header, checks every number of it, and computes all places in memory
//! itself: a row may come from a process that decodes files of strangers.
//!
//! Takes what [`Decoder`](super::Decoder) takes, less pictures of four components and what is
//! over the limits here. That follows from the file alone.
//!
//! - `row`: a row's bytes, written and read;
//! - `unstuff`: coded data without stuffed bytes;
//! - `codes`: a Huffman table, as the kernels read it;
//! - `kernel_picture`: a picture, as they read it, and the memory that it takes.

mod codes;
mod kernel_picture;
mod row;
#[cfg(test)]
mod tests;
mod unstuff;

pub(crate) use kernel_picture::{CHAIN_UNITS, KernelPicture, KernelSegment, MANY, UNIT_BITS};
pub(crate) use row::{CodedPicture, write_row};

/// Bytes of coded data of a picture. Kernels count bits in 32 bits, and a chain of damaged data
/// walks over 1,024 units at most: so a picture takes 2^35 lookups at most. Photos of 12 megapixels
/// take 3 to 8 MB.
pub(crate) const MAX_CODED: usize = 16 << 20;

/// Pixels of a picture: its blocks are counted in 32 bits, with room for ten a MCU, and a loop
/// over its MCUs stays short.
pub(crate) const MAX_PIXELS: usize = 1 << 26;

/// Segments between restart markers: one thread of a block of 512 does those of its turn.
pub(crate) const MAX_SEGMENTS: usize = 1 << 14;

/// Entries of a picture's lookups of single codes: with longer ones and staged data they must fit
/// the shared memory of Turing, 64 KiB a block.
pub(crate) const MAX_ENTRIES: usize = 8192;
