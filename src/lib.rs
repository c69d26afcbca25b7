//! Batches of images for vision and NeRF training, at the speed of the decoder
//! and with the memory of one process.

pub mod error;
pub(crate) mod sys;
pub(crate) mod worker;

pub use error::{Error, FaultKind, Result, SampleFault};
