//! JPEG: reading headers and decoding exactly the part that a crop needs.
//!
//! Runs in workers, and in the consumer when there are none. Knows files only
//! as bytes: no paths, no maps, no slots, no recipes, and nothing of what is
//! done to the pixels afterwards. Decoded pixels are always 8-bit RGB.
//!
//! - `header`: the marker scan; pure.
//! - `orientation`: the EXIF orientation and its geometry; pure.
//! - `region`: which part of a picture to decode for a wanted part; pure.
//! - `decoder`: libjpeg-turbo; the only `unsafe` of this folder.

mod decoder;
mod header;
mod orientation;
mod region;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

pub(crate) use decoder::{JpegDecoder, Scratch};
pub(crate) use header::{JpegHeader, read_header};
#[cfg(test)]
pub(crate) use orientation::Orientation;
pub(crate) use region::{Decoded, Region, Scale, scaled_size};
