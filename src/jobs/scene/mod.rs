//! The images of a scene in their store, as every job that needs them has it.
//!
//! - `frames`: cameras, poses and sizes; `masks`: which pixels may be sampled;
//! - `spec`: what must be known to decode them; `program`: how that is done, as a program;
//! - `held`: the memory of a batch, in the consumer.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `supply`: images that are needed are there; `pixels`: from a file to the store.
//!
//! Never in here: rays, views, how processes live.

pub(crate) mod frames;
pub(crate) mod held;
pub(crate) mod masks;
#[cfg(feature = "codecs")]
mod pixels;
pub(crate) mod program;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod supply;
