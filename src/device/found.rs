//! What there is to know of the devices of a machine.

use std::fmt;
use std::path::PathBuf;

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

/// The JPEG engines of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EngineInfo {
    /// The library that drives them, with its version: part of the numeric profile.
    pub library: String,
    /// Where it lies.
    pub path: PathBuf,
    /// How many engines the device has.
    pub engines: u32,
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engines, library) = (self.engines, &self.library);
        write!(
            f,
            "{engines} JPEG engines, by {library} ({})",
            self.path.display()
        )
    }
}

impl DeviceInfo {
    /// How many JPEG engines a device of this kind has, where that is known without them: asking
    /// takes half a second on an H100. None for a part of a device (MIG), which has some of them.
    pub(crate) fn expected_engines(&self) -> Option<u32> {
        (self.capability == (9, 0) && !self.name.contains("MIG")).then_some(7)
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}
