//! From slots of the ring to batches on a device.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `launch`: what a launch is told, as the kernel reads it;
//! - `cuda/`: context, pinned ring, kernel, buffers.

pub(crate) mod launch;
