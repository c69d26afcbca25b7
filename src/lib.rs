//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/rust.md"))]
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
mod cut;
mod data;
pub mod device;
pub mod error;
pub mod forecast;
#[cfg(feature = "codecs")]
mod helper;
mod jobs;
pub mod loader;
pub mod measure;
pub mod options;
mod picture;
#[cfg(feature = "codecs")]
mod pixels;
pub mod plan;
mod pool;
pub mod recipe;
mod remote;
pub mod scene;
mod sys;
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod tests_support;

pub use camera::{Camera, Lens};
pub use configs::paddle;
pub use cut::RowDescriptor;
pub use data::index::{self, Index};
pub use data::survey;
pub use device::{DecodeOn, Device, DeviceRows, Upload};
pub use error::{Error, FaultKind, Result, SampleFault};
pub use half::{bf16, f16};
#[cfg(feature = "codecs")]
pub use helper::init;
pub use jobs::images::batch::{self, Batch, Labels, RowFault};
pub use loader::{
    DrawnRow, Epoch, Forecast, JpegOutlook, Loader, LoaderBuilder, LoaderReport, OnError, Replay,
    Source, UploadChoice,
};
pub use plan::{Position, Rank, RowStatus, Sampler, State, Tail};
pub use pool::coordinator::launch::Launch;
pub use pool::report::ProcessReport;
pub use pool::sandbox::{Sandbox, Sandboxed};
pub use recipe::{Background, DecodeMode, Dtype, MemoryLayout, NumericProfile, Recipe, Reorder};
pub use remote::fetch;
pub use scene::{Scene, rays, views};

/// What `benches/` measures. Not part of the API.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod bench_support {
    pub use crate::pixels::emit::Emitter;
    pub use crate::pixels::resample::{Axes, Resampler, Source, Target};
    pub use crate::pixels::view::View;
    pub use crate::recipe::Emission;
    pub use crate::recipe::Placement;
    pub use crate::recipe::geometry::BoxF;
    pub use crate::recipe::weights::Filter;
    pub use crate::sys::cpu::CpuLevel;
}

/// The pool, for `tests/third_job`: what a job needs that this library does not have;
/// and what tests and the command line's drills change of a run. Not part of the API.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::pool::coordinator::own::init as init_with;
    pub use crate::pool::crew::{Crew, Drilled};
    pub use crate::pool::engine::Engine;
    pub use crate::pool::filled::Filled;
    pub use crate::pool::job::{Job, JobKind, JobOrder, JobParts, Readable};
    pub use crate::pool::place::BatchPlace;
    pub use crate::pool::ring::layout::Shape;
    pub use crate::pool::ring::ticket::{BatchKey, Ticket};
    pub use crate::pool::tests_drill::{End, RingDrill};
    pub use crate::pool::worker::meter::{Meter, Stage};
    pub use crate::sys::pid_namespace::parents;
    pub use crate::sys::process::end_by_crash_signals;
}
