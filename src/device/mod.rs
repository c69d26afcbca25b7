//! From slots of the ring to batches on a device.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `launch`: what a launch is told, as the kernel reads it;
//! - `reference`: the kernel's meaning, on the CPU;
//! - `cuda/`: context, pinned ring, kernel, buffers.

pub(crate) mod launch;
#[cfg(feature = "codecs")]
pub(crate) mod reference;
