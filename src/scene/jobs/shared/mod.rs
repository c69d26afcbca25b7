//! Code that all jobs on images of a scene use, and the runs that make batches.
//!
//! - `frames`: cameras, poses and sizes; `masks`: pixels that may be sampled;
//! - `spec`: how images are decoded; `program`: the same as a program.
//!
//! The consumer side, generic over the kind of run (rays, views):
//! - `batch`: the memory of one batch;
//! - `ticket_run`: batches in order from workers; `kernel_run`: from a device.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `image_supply`: ensures that images are in the image store; `decode_image`: decodes a file.
//!
//! Not here: rays, views, how processes live.

pub(crate) mod batch;
#[cfg(feature = "codecs")]
mod decode_image;
pub(crate) mod frames;
#[cfg(feature = "codecs")]
pub(crate) mod image_supply;
pub(crate) mod kernel_run;
pub(crate) mod masks;
pub(crate) mod program;
pub(crate) mod spec;
pub(crate) mod ticket_run;
