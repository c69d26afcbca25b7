//! Information about the devices of a machine.

use std::fmt;

use serde::Serialize;

/// The result of [`probe`](crate::device::probe).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The newest CUDA version that the driver supports: major and minor. None without a driver.
    pub cuda: Option<(u32, u32)>,
    /// The visible devices, in the driver's order. `CUDA_VISIBLE_DEVICES` applies.
    pub devices: Vec<DeviceInfo>,
    /// Why there is no usable device, or why some could not be queried, and what to do.
    pub missing: Option<String>,
}

/// Information about one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its number among the visible devices: the `i` of `cuda:i`.
    pub ordinal: u32,
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (u32, u32),
    /// Total bytes of memory.
    pub total_bytes: u64,
    /// Why featherload cannot use it. None if it can.
    pub unusable: Option<String>,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}
