//! Kinds of work on images that the pool does: each a folder, each one line in `kinds`.
//!
//! - [`images`]: one row = one sample of a batch;
//! - [`encode`]: one row = one sample's payload in a cache;
//! - [`kinds`]: the list of all, for who builds a job by its name.
//!
//! A kind has its spec, its rows, a worker side and a consumer side. What they share:
//! - `sample`: from a file's bytes to a row; `input`: the bytes of one sample; `shards`:
//!   which shards a worker has open; `stages`: what is counted and how it is called;
//!   `readable`: which files workers open.
//!
//! `bare` is no job: the decoder alone, as a ceiling.
//!
//! The worker side runs in workers, and in the consumer with zero workers or for what a device
//! flags: it makes no thread and knows no CUDA. The consumer side makes batches and payloads of
//! slots. Never in here: how processes live, who may claim a row.

#[cfg(feature = "codecs")]
pub(crate) mod decode_ceiling;
pub(crate) mod encode;
pub mod images;
pub(crate) mod kinds;
pub(crate) mod open_shards;
mod readable_files;
#[cfg(feature = "codecs")]
pub(crate) mod sample;
#[cfg(feature = "codecs")]
pub(crate) mod sample_input;
pub(crate) mod stages;
