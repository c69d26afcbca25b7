//! The images of a scene in their store, as every job that needs them has it; and the runs that
//! make batches of them.
//!
//! - `frames`: cameras, poses and sizes; `masks`: which pixels may be sampled;
//! - `spec`: what must be known to decode them; `program`: how that is done, as a program.
//!
//! The consumer side, generic over the kind of run (rays, views):
//! - `batch`: the memory of one batch;
//! - `worker_run`: batches in order, made by workers; `kernel_run`: by a device.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `supply`: images that are needed are there; `pixels`: from a file to the store.
//!
//! Never in here: rays, views, how processes live.

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
