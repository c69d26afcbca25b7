//! What a trainer holds: from a data set and a recipe to epochs of batches.
//!
//! - `builder`: what the user asks for; `source`: where samples come from;
//! - `start`: the order of the start: coordinator, index, ring, workers;
//! - `prepared`: what follows from options and data before anything is allocated;
//! - `order`: what a sampler knows of the data;
//! - `upload`: how a device gets at pixels, and what fits its memory; `jpeg_decoding`: who
//!   decodes JPEGs; `coded_room`: how long the rows of those are that a device decodes;
//! - `forecast`: what a run would do and take;
//! - `epoch`: the loader, and the iterator over an epoch; `report`: what happened in it.
//!
//! All in the consumer. Never in here: how rows are made.

mod builder;
mod coded_room;
mod image_loader;
mod jpeg_decoding;
mod memory_plan;
mod prepared_run;
mod report;
pub(crate) mod sampler_table;
mod source;
mod start;
mod upload;

pub use crate::jobs::images::on_error::OnError;
pub use crate::jobs::images::replay::DeviceReplay;
pub use builder::LoaderBuilder;
pub use image_loader::{Epoch, Loader};
pub use jpeg_decoding::DecodeChoice;
pub use memory_plan::{DrawnRow, MemoryPlan};
pub use report::LoaderReport;
pub use source::Source;
pub use upload::UploadChoice;
