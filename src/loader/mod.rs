//! The loader: from a data set and a recipe to batches.
//!
//! In the consumer.
//!
//! - `builder`: what the user asks for, and the order of the start: first the
//!   coordinator, then the index, then the ring;
//! - `prepared`: what follows from options and data before anything is allocated;
//! - `forecast`: what a run would do and take;
//! - `epoch`: the iterator over an epoch;
//! - `run`: where the run stands, and from a slot to a batch;
//! - `engine`: which of the following makes the batches;
//! - `pool`: batches by workers, through the ring;
//! - `in_process`: batches by a plain loop, with zero workers;
//! - `encode_run`: payloads of a cache, by the same pool;
//! - `mixed`: batches whose rows are mixed;
//! - `device_pool`: batches by workers and a device, ahead of who takes them;
//! - `on_device`: from a slot to a device;
//! - `replay`: the device by itself;
//! - `upload`: how a device gets at pixels, and what fits its memory;
//! - `order`: what a sampler knows of the data;
//! - `source`: where samples come from;
//! - `report`: what happened and where the time went.

mod builder;
mod device_pool;
pub(crate) mod encode_run;
mod engine;
mod epoch;
mod forecast;
#[cfg(feature = "codecs")]
mod in_process;
mod mixed;
mod on_device;
pub(crate) mod order;
mod pool;
mod prepared;
mod replay;
mod report;
mod run;
mod source;
mod upload;

pub(crate) use builder::default_workers;
pub use builder::{LoaderBuilder, OnError};
pub use epoch::{Epoch, Loader};
pub use forecast::{DrawnRow, Forecast};
pub use replay::Replay;
pub use report::LoaderReport;
pub use source::Source;
pub use upload::UploadChoice;
