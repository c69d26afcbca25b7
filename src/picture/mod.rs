//! One picture file: what format its bytes are in, what its header says, and
//! its pixels as 8-bit RGB.
//!
//! Used in workers, in the consumer with zero workers, and (headers only) where
//! a data set is surveyed. Knows files as bytes alone: no paths, no maps, no
//! slots, no recipes, no threads, and nothing of what is done to the pixels
//! afterwards. A file that is broken is a [`SampleFault`](crate::SampleFault),
//! never a panic.
//!
//! - `format`: sniffed from the content, never from a name;
//! - `orientation`: the eight EXIF orientations;
//! - `limits`: `max_pixels` and `max_scratch`;
//! - `jpeg`: headers, and decoding exactly the part that a crop needs;

pub(crate) mod format;
pub(crate) mod header;
pub(crate) mod jpeg;
mod limits;
mod orientation;

pub use format::Format;
pub(crate) use limits::Limits;
pub(crate) use orientation::Orientation;
