//! Payloads of a cache: one row = one sample as it goes into a shard.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `encoding`: how pictures are encoded and resized, as users spell it;
//! - `payload`: what lies in a row; `rooms`: where rows lie.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: from a place in the cache's order to the payload.
//!
//! The consumer side:
//! - `run`: payloads in order.
//!
//! Never in here: files of the cache, names of members, labels.

pub(crate) mod encoding;
pub(crate) mod payload;
pub(crate) mod payload_spaces;
pub(crate) mod run;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
