//! JPEG: reads headers, decodes exactly the part that a crop needs, and encodes whole images for a
//! cache.
//!
//! Runs in workers, and in the consumer with zero workers. Surveys read only headers. Here a file
//! is a slice of bytes: no paths, maps, slots or recipes, and no later operations on the pixels.
//! Decoded pixels are always 8-bit RGB.
//!
//! - `header`: reads the markers before the first scan; pure.
//! - `header_bytes`: the source of their bytes, memory or a file.
//! - `region`: a part of an image, and the size of a decode; pure.
//! - `standard_tables`: tables that the standard prints; pure.
//! - `decoder`: limits and checks, and the choice of the decoder for a file.
//! - `decode`: the decoder itself, with the bytes of libjpeg-turbo. Its `gpu_rows` are rows for the
//!   kernels that decode on a GPU.
//! - `encoder`: encodes whole images as baseline files, in Rust, with the bytes of libjpeg-turbo.
//! - `round_trip`: both, without coded data in between.
//! - `tests`: comparisons with libjpeg-turbo, on usual files and on files that no encoder writes.

mod decode;
#[cfg(feature = "codecs")]
mod decoder;
mod encoder;
mod header;
mod header_bytes;
mod region;
mod round_trip;
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
pub(crate) use round_trip::{round_trip, round_trip_bytes};
#[cfg(all(test, feature = "codecs"))]
pub(crate) use tests::{fixtures, oracle};
