//! Loaders: from a data set and a recipe to epochs of batches.
//!
//! - `builder`: the options; `source`: where samples come from; `column_source`: where their
//!   columns are; `run_columns`: which of them a run opens; `mask_source`: where masks are; `raster_source`: where other rasters are;
//!   `object_source`: where objects are; `object_rows`: those that a program hands over;
//!   `remote_targets`: annotations in object stores; `files_option`: the field `files` of masks,
//!   rasters and objects;
//! - `start`: starts a run: coordinator, index, ring, workers;
//! - `prepared_run`: data, order and sizes of a run, before anything is allocated;
//! - `sampler_table`: the table of a sampler, from index, weights and sizes;
//! - `upload`: how a device reads pixels, and what fits its memory; `jpeg_decoding`: which decoder
//!   decodes JPEGs; `coded_room`: the size of rows for JPEGs that a device decodes;
//! - `hull_room`: whether rows have room for hulls of several crops;
//! - `memory_plan`: the plan of a run without starting it; `object_survey`: what objects there are;
//! - `image_loader`: the loader, and the iterator over an epoch; `report`: its counters and times.
//!
//! All in the consumer. Never in here: how rows are filled.

mod builder;
mod coded_room;
mod column_source;
mod files_option;
mod hull_room;
mod image_loader;
mod jpeg_decoding;
mod mask_source;
mod memory_plan;
mod object_rows;
mod object_source;
mod object_survey;
mod prepared_run;
mod raster_source;
mod remote_targets;
mod report;
mod run_columns;
pub(crate) mod sampler_table;
mod source;
mod start;
mod upload;

pub use crate::jobs::images::on_error::OnError;
pub use crate::jobs::images::replay::DeviceReplay;
pub use builder::LoaderBuilder;
pub(crate) use column_source::ColumnSource;
pub use image_loader::{Epoch, Loader};
pub use jpeg_decoding::DecodeChoice;
pub use mask_source::MaskOptions;
pub use memory_plan::{DrawnRow, MemoryPlan};
pub use object_rows::ObjectRows;
pub use object_source::ObjectOptions;
pub use object_survey::{ObjectSizes, ObjectSurvey};
pub(crate) use raster_source::{OpenedRaster, RasterSources};
pub use raster_source::{RasterList, RasterOptions};
pub(crate) use remote_targets::fetch_members;
pub use report::LoaderReport;
pub(crate) use source::DeadAddresses;
pub use source::Source;
pub use upload::UploadChoice;
