//! What there is to know of the devices of a machine.

use std::fmt;

use serde::Serialize;

/// What [`probe`](crate::device::probe) found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The newest CUDA that the driver serves: major and minor. None without a driver.
    pub cuda: Option<(u32, u32)>,
    /// The visible devices, in the driver's order: `CUDA_VISIBLE_DEVICES` counts.
    pub devices: Vec<DeviceInfo>,
    /// Why there is no device to use, or why not all could be asked, and what to do.
    pub missing: Option<String>,
}

/// What there is to know of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
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

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}
