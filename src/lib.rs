//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/gpu.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/memory.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/rust.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/segmentation.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/shards.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/targets.md"))]
#![cfg_attr(
    not(feature = "codecs"),
    allow(
        dead_code,
        unused_imports,
        reason = "without the decoders this library makes no workers, but describes their work"
    )
)]

pub mod cache;
pub mod camera;
mod configs;
mod data;
mod decode_plan;
pub mod device;
pub mod error;
#[cfg(feature = "codecs")]
mod helper;
mod jobs;
pub mod loader;
pub mod measure;
pub mod memory_plan;
pub mod options;
pub mod order;
mod picture;
// Without decoders only the map of elastic deformations is used.
#[cfg_attr(not(feature = "codecs"), allow(dead_code, unused_imports))]
mod pixels;
mod pool;
pub mod recipe;
mod remote;
pub mod scene;
mod sys;
pub mod targets;
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod tests_support;

pub use camera::{Camera, Lens};
pub use configs::paddle;
pub use data::annotations;
pub use data::columns;
pub use data::index::{self, Index};
pub use data::objects;
pub use data::survey;
pub use decode_plan::{CropGeometry, RowDescriptor};
pub use device::{DecodeOn, Device, DeviceRows, UploadMode};
pub use error::{Error, FaultKind, Result, SampleFault};
pub use half::{bf16, f16};
#[cfg(feature = "codecs")]
pub use helper::init;
pub use jobs::caption_rule::{CaptionChoice, CaptionRule, MissingCaption};
pub use jobs::images::batch::{self, Batch, BatchLabels, RowFault};
pub use jobs::images::instance_mask_views::InstanceMaskPixels;
pub use jobs::images::objects::BatchObjects;
pub use jobs::images::raster_views::{MaskPixels, RasterLayout, RasterPixels};
pub use jobs::item_feed::{ItemFeed, ItemRequest};
pub use jobs::mask_rule::{MaskRule, MaskType};
pub use jobs::object_rule::{InstanceMasks, LabelNumbers, ObjectOverflow, ObjectRule};
pub use jobs::raster_rule::{
    FlowRule, NumberRule, PairColors, PairRule, RasterFilter, RasterFloat, RasterNumber, RasterRule,
};
pub use jobs::raster_section::RasterType;
pub use loader::{
    DecodeChoice, DeviceReplay, DrawnRow, Epoch, Loader, LoaderBuilder, LoaderReport, MaskOptions,
    MemoryPlan, ObjectOptions, ObjectRows, ObjectSizes, ObjectSurvey, OnError, RasterList,
    RasterOptions, Source, UploadChoice,
};
pub use order::{EpochTail, Position, Rank, RowStatus, Sampler, State};
pub use picture::LabelForm;
pub use pool::coordinator::launch::LaunchMethod;
pub use pool::pool_report::ProcessReport;
pub use pool::sandbox::{Sandbox, SandboxStatus};
pub use recipe::{
    BackgroundColor, DataType, DecodeMode, LabelFilter, MemoryLayout, NumericProfile, Recipe,
    ReorderMode,
};
pub use remote::fetch;
pub use scene::{Scene, rays, views};

/// What `benches/` measures. Not part of the API.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod bench_support {
    pub use crate::pixels::emit::RowEmitter;
    pub use crate::pixels::pixel_view::PixelView;
    pub use crate::pixels::resample::{ImageResampler, PixelSource, ResizeAxes, ResizeTarget};
    pub use crate::recipe::OutputFormat;
    pub use crate::recipe::PixelPlacement;
    pub use crate::recipe::geometry::FractionalBox;
    pub use crate::recipe::weights::ResizeFilter;
    pub use crate::sys::cpu::CpuLevel;
}

/// The pool, for `tests/third_job`: what a job outside this library needs. Also what tests and the
/// command line's drills change in a run. Not part of the API.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::pool::batch_request::BatchRequest;
    pub use crate::pool::coordinator::init::init as init_with;
    pub use crate::pool::filled_batch::FilledBatch;
    pub use crate::pool::job::{Job, JobKind, JobParts, JobRequest, ReadableFiles};
    pub use crate::pool::ring::layout::RingShape;
    pub use crate::pool::ring::ticket::{BatchKey, Ticket};
    pub use crate::pool::row_filler::RowFiller;
    pub use crate::pool::tests_drill::{DrillEnd, RingDrill};
    pub use crate::pool::worker::meter::{JobStage, StageMeter};
    pub use crate::pool::worker_options::{DrillBuilder, WorkerOptions};
    pub use crate::sys::pid_namespace::parents;
    pub use crate::sys::process::end_by_crash_signals;
}
