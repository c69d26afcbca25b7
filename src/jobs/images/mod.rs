//! Images: one row of a batch = one sample.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `packing`: which bytes of a slot are a row's.
//!
//! The worker side, in workers and in the consumer with zero workers or for what a device flags:
//! - `worker`: from a place in the epoch to the row.
//!
//! The consumer side:
//! - `device_pool`, `on_device`: batches on a device, `jpeg_batches`, `coded_batch`: of JPEGs that
//!   it decodes, and `replay`: the device stage alone;
//! - `run`: from filled rows to a batch; `mix`, `mixed`: batches whose rows are mixed;
//! - `on_error`: what becomes of a row without pixels; [`batch`], `view`: what a trainer gets.
//!
//! Never in here: how processes live, how a file's bytes become a row (`jobs::sample`).

pub mod batch;
pub(crate) mod batch_mixing;
pub(crate) mod coded_batch;
pub(crate) mod device_batches;
pub(crate) mod device_pool;
pub(crate) mod jpeg_batches;
pub(crate) mod mix;
pub(crate) mod on_error;
pub(crate) mod packing;
pub(crate) mod pixel_views;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
