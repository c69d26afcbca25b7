//! Map, decode, transform: from a path to a row.
//!
//! Runs in worker processes, and in the consumer when it has zero workers. No
//! thread is ever started here, no CUDA, no channel, no copy of the index; on
//! the JPEG path no heap allocation once warm.

pub(crate) mod meter;
pub(crate) mod spec;

#[cfg(feature = "codecs")]
pub(crate) mod attempts;
#[cfg(feature = "codecs")]
pub(crate) mod bare;
#[cfg(feature = "codecs")]
pub(crate) mod encode;
#[cfg(feature = "codecs")]
pub(crate) mod images;
#[cfg(feature = "codecs")]
pub(crate) mod input;
#[cfg(feature = "codecs")]
pub(crate) mod job;
#[cfg(feature = "codecs")]
pub(crate) mod process;
#[cfg(feature = "codecs")]
pub(crate) mod sample;
#[cfg(feature = "codecs")]
mod shards;
#[cfg(feature = "codecs")]
pub(crate) mod sigbus;
