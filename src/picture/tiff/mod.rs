//! TIFF: the first picture of a file, as 8-bit grey or RGB, with alpha or without.
//!
//! Pure. Reads what Pillow reads; `pixel_kind` has the list, and refuses the rest by name. A picture
//! is decoded as a frame, strip by strip or tile by tile.
//!
//! - `directory`: tags and their values;
//! - `pixel_kind`: what samples mean, and what becomes of them;
//! - `tiff_picture`: the header of a picture, and where its strips and tiles lie;
//! - `decode`: strips and tiles into the frame;
//! - `compression`: each kind of packing; `fax`: those of fax machines;
//! - `predictor`: differences back to samples;
//! - `ycbcr`: luma and chroma to RGB;
//! - `fault`: what is wrong with a file, in words.

mod compression;
mod decode;
mod directory;
mod fault;
mod fax;
mod pixel_kind;
mod predictor;
mod tiff_picture;
mod ycbcr;

#[cfg(test)]
mod tests;

pub(super) use decode::frame_bytes;
pub(super) use tiff_picture::TiffPicture;
