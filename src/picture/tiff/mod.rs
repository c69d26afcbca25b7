//! TIFF: the first image of a file, as 8-bit grey or RGB, with alpha or without.
//!
//! Pure. Reads the kinds that Pillow reads. `pixel_kind` has the list, and rejects other kinds by
//! name. An image is decoded as a frame, strip by strip or tile by tile.
//!
//! - `directory`: tags and their values.
//! - `pixel_kind`: the meaning of samples, and their conversion.
//! - `tiff_picture`: the header of an image, and the offsets of its strips and tiles.
//! - `decode`: decodes strips and tiles into the frame.
//! - `compression`: each kind of compression; `fax`: the codes of fax machines.
//! - `predictor`: converts differences to samples.
//! - `ycbcr`: converts luma and chroma to RGB.
//! - `fault`: error texts for broken files.

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
