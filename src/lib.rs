//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

pub mod error;
pub mod plan;
pub mod recipe;
pub(crate) mod ring;
pub(crate) mod sys;

pub use error::{Error, FaultKind, Result, SampleFault};
