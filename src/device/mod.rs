//! Devices: which there are, and from slots of the ring to batches on one.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `launch`: what a launch is told, as the kernel reads it;
//! - `reference`: the kernel's meaning, on the CPU;
//! - `cuda/`: the driver, the pinned ring, the kernel, buffers, stages. Without the
//!   feature `cuda` `without_cuda` stands in its place, and refuses.

use serde::Serialize;

#[cfg(feature = "cuda")]
#[allow(dead_code, unused_imports, reason = "the loader does not use it yet")]
pub(crate) mod cuda;
#[allow(dead_code, reason = "the loader does not use it yet")]
pub(crate) mod launch;
#[cfg(feature = "codecs")]
pub(crate) mod reference;
#[cfg(not(feature = "cuda"))]
#[allow(dead_code, reason = "the loader does not use it yet")]
pub(crate) mod without_cuda;
#[cfg(not(feature = "cuda"))]
pub(crate) use without_cuda as cuda;

/// What [`probe`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The newest CUDA that the driver serves: major and minor. None without a driver.
    pub cuda: Option<(u32, u32)>,
    /// The visible devices, in the driver's order: `CUDA_VISIBLE_DEVICES` counts.
    pub devices: Vec<Device>,
    /// Why there is no device to use, or why not all could be asked, and what to do.
    pub missing: Option<String>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Device {
    /// Its number among the visible ones: the `i` of `cuda:i`.
    pub ordinal: u32,
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (u32, u32),
    /// Bytes of memory, used or not.
    pub total_bytes: u64,
    /// Why featherload cannot use it, if it cannot.
    pub unusable: Option<String>,
}

/// Looks for devices that batches may end on. Loads the driver's library and starts
/// it, but makes no context: no memory of a device is taken. Never fails: what is
/// missing is said in the report.
///
/// A process that has called this must not go on with CUDA in a forked copy of
/// itself; such a copy may start a pool, whose processes have no CUDA.
pub fn probe() -> DeviceReport {
    cuda::probe()
}
