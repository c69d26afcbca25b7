//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "codecs"),
    allow(
        dead_code,
        unused_imports,
        reason = "without the decoders this library makes no workers, but describes their work"
    )
)]

pub mod batch;
pub mod cache;
pub(crate) mod coordinator;
pub mod device;
pub mod error;
pub mod forecast;
#[cfg(feature = "fuzz-internals")]
#[doc(hidden)]
pub mod fuzz_support;
pub mod index;
pub mod loader;
pub mod measure;
pub(crate) mod mix;
pub(crate) mod packing;
pub mod paddle;
pub(crate) mod picture;
#[cfg(feature = "codecs")]
pub(crate) mod pixels;
pub mod plan;
pub mod recipe;
pub(crate) mod ring;
pub(crate) mod shard;
pub mod survey;
pub(crate) mod sys;
pub(crate) mod worker;

pub use batch::{Batch, Labels, RowFault};
pub use coordinator::launch::{COORDINATOR_COMMAND, Launch};
#[cfg(feature = "codecs")]
pub use coordinator::process::run_coordinator;
pub use device::{Device, DeviceRows, Upload};
pub use error::{Error, FaultKind, Result, SampleFault};
pub use index::Index;
pub use loader::{
    DrawnRow, Epoch, Forecast, Loader, LoaderBuilder, LoaderReport, OnError, Replay, Source,
    UploadChoice,
};
pub use packing::RowDescriptor;
pub use plan::{RowStatus, Sampler, State, Tail};
pub use recipe::{Background, DecodeMode, Dtype, MemoryLayout, NumericProfile, Recipe, Reorder};

/// What `benches/` measures. Not part of the API.
#[cfg(feature = "bench-internals")]
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
