//! Which devices there are.
//!
//! In the consumer, or in the CLI.

use super::cuda;
use super::found::{DeviceReport, EngineInfo};
use crate::error::Result;

/// Looks for devices that batches may end on. Loads the driver's library and starts
/// it, but makes no context: no memory of a device is taken. Never fails: what is
/// missing is said in the report.
///
/// A process that has called this must not go on with CUDA in a forked copy of
/// itself; such a copy may start a pool, whose processes have no CUDA.
pub fn probe() -> DeviceReport {
    cuda::probe()
}

/// The JPEG engines of a device, which [`DecodeOn`](crate::DecodeOn) can use. Opens the device
/// and nvJPEG, for about half a second, and gives back what that took.
///
/// # Errors
/// Why there are none, or why they cannot be used, and what to do.
pub fn engines(ordinal: u32) -> Result<EngineInfo> {
    cuda::engines(ordinal)
}
