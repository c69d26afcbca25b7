//! The loader: from a data set and a recipe to batches.
//!
//! In the consumer.
//!
//! - `builder`: what the user asks for, and the order of the start: first the
//!   coordinator, then the index, then the ring;
//! - `prepared`: what follows from options and data before anything is allocated;
//! - `forecast`: what a run would do and take;
//! - `epoch`: the iterator and the place where the run stands;
//! - `pool`: batches by workers, through the ring;
//! - `in_process`: batches by a plain loop, with zero workers;
//! - `mixed`: batches whose rows are mixed;
//! - `on_device`: batches that end on a device;
//! - `upload`: how a device gets at pixels, and what fits its memory;
//! - `order`: what a sampler knows of the data;
//! - `source`: where samples come from;
//! - `report`: what happened and where the time went.

mod builder;
mod epoch;
mod forecast;
#[cfg(feature = "codecs")]
mod in_process;
mod mixed;
mod on_device;
pub(crate) mod order;
mod pool;
mod prepared;
mod report;
mod source;
mod upload;

pub(crate) use builder::default_workers;
pub use builder::{LoaderBuilder, OnError};
pub use epoch::{Epoch, Loader};
pub use forecast::{DrawnRow, Forecast};
pub use report::LoaderReport;
pub use source::Source;
pub use upload::UploadChoice;
