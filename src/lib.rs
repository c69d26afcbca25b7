//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

pub mod error;
pub mod recipe;
pub(crate) mod sys;
pub(crate) mod worker;

pub use error::{Error, FaultKind, Result, SampleFault};

/// What `benches/` measures. Not part of the API.
#[doc(hidden)]
pub mod bench_support {
    pub use crate::sys::cpu::CpuLevel;
    pub use crate::worker::emit::{Dtype, Emitter, Layout, Placement};
    pub use crate::worker::resample::reference::resample_f32;
    pub use crate::worker::resample::{BoxF, Resampler, Source, Target};
}
