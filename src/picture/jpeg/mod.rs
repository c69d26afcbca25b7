//! JPEG: reading headers, decoding exactly the part that a crop needs, and writing
//! whole pictures for a cache.
//!
//! Runs in workers, and in the consumer when there are none; the header also
//! where a data set is surveyed. Knows files only
//! as bytes: no paths, no maps, no slots, no recipes, and nothing of what is
//! done to the pixels afterwards. Decoded pixels are always 8-bit RGB.
//!
//! - `header`: the marker scan; pure.
//! - `header_bytes`: what it scans, in memory or in a file.
//! - `region`: a part of a picture, and the size of a decode; pure.
//! - `standard_tables`: tables that the standard prints; pure.
//! - `decoder`: limits, verdicts, and what decodes a file.
//! - `decode`: the decoder itself, with the bytes of libjpeg-turbo; in `gpu_rows` of it rows for
//!   the kernels that decode on a GPU.
//! - `encoder`: whole pictures to baseline files, in Rust, with the bytes of libjpeg-turbo.
//! - `tests`: also libjpeg-turbo to compare with, and files: usual ones, and those that no
//!   encoder writes.

mod decode;
#[cfg(feature = "codecs")]
mod decoder;
#[cfg(feature = "codecs")]
mod encoder;
mod header;
mod header_bytes;
mod region;
mod standard_tables;

#[cfg(all(test, feature = "codecs"))]
mod tests;
#[cfg(all(test, feature = "codecs"))]
mod verdict_tests;

pub(crate) use decode::gpu_rows;
#[cfg(test)]
pub(crate) use decode::{
    DecodeRequest, JpegWindow, SimdForm, WindowDecoder as BaselineDecoder, stages,
};
#[cfg(feature = "codecs")]
pub(crate) use decoder::{JpegDecoder, JpegScratch};
#[cfg(feature = "codecs")]
pub(crate) use encoder::encode;
#[cfg(feature = "codecs")]
pub(crate) use header::JpegHeader;
pub(crate) use header::{read_header, walk};
pub(crate) use header_bytes::InFile;
pub(crate) use region::{DecodeScale, PixelRegion};
#[cfg(all(test, feature = "codecs"))]
pub(crate) use tests::{fixtures, oracle};
