//! Job: reads the masks of a scene as bits. One row holds the mask of one image.
//!
//! - `spec`: what a worker must know, and how the job is started.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: reads a mask file as bits.
//!
//! The consumer side:
//! - `run`: collects all masks, in order.
//!
//! Not here: what masks are used for.

pub(crate) mod run;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
