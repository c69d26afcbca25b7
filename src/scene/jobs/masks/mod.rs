//! Masks of a scene as bits: one row = the mask of one image.
//!
//! - `spec`: what a worker must know, and how the job is ordered.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: from a mask's file to its bits.
//!
//! The consumer side:
//! - `run`: all masks, in order.
//!
//! Never in here: what masks are for.

pub(crate) mod run;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
