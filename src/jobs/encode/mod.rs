//! Payloads of a cache: one row = the bytes of one sample in a shard.
//!
//! - `spec`: what a worker needs, and how the job is ordered;
//! - `encoding`: how images are encoded and resized, and how users write it;
//! - `payload`: the content of a row; `payload_spaces`: where rows are in a slot;
//! - `raster_form`: how rasters are stored.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: makes a payload from its place in the cache's order; `raster_payload`: its
//!   rasters.
//!
//! The consumer side:
//! - `run`: payloads in order; `resized_objects`: the objects of a resized image.
//!
//! Never in here: files of the cache, names of members, labels.

pub(crate) mod encoding;
pub(crate) mod payload;
pub(crate) mod payload_spaces;
pub(crate) mod raster_form;
#[cfg(feature = "codecs")]
pub(crate) mod raster_payload;
pub(crate) mod resized_objects;
pub(crate) mod run;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
