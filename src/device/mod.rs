//! Devices: which there are, and from slots of the ring to batches on one.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `launch`: what a launch is told, as the kernel reads it;
//! - `shape`: what a stage is made for, and takes;
//! - `reference`: the kernel's meaning, on the CPU;
//! - `cuda/`: the driver, the pinned ring, the kernel, buffers, stages. Without the
//!   feature `cuda` `without_cuda` stands in its place, and refuses.

use std::fmt;
use std::ops::{AddAssign, Sub};
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod launch;
#[cfg(all(test, feature = "codecs"))]
pub(crate) mod reference;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod shape;
#[cfg(not(feature = "cuda"))]
pub(crate) mod without_cuda;
#[cfg(not(feature = "cuda"))]
pub(crate) use without_cuda as cuda;

pub use cuda::{DeviceRows, RawStream};

/// Where batches end: in memory of the host, or of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// Memory of the host.
    #[default]
    Cpu,
    /// The CUDA device of this number among the visible ones.
    Cuda(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let ordinal = match s {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            _ => s.strip_prefix("cuda:").and_then(|i| i.parse().ok()),
        };
        ordinal.map(Self::Cuda).ok_or_else(|| {
            Error::config(format!(
                "device '{s}' is not one of cpu, cuda, cuda:0, cuda:1 and so on"
            ))
        })
    }
}

/// How a device gets at pixels that workers hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upload {
    /// Read over the bus while the kernel runs: each pixel once, twice where contrast is
    /// changed, and no memory of the device for them.
    #[default]
    InPlace,
    /// Copied first: by the device's copy engine, so that the kernel takes less of its
    /// time, into memory for one batch of pixels.
    Copied,
}

impl fmt::Display for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InPlace => "in-place",
            Self::Copied => "copied",
        })
    }
}

/// What a run has of a device's memory, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceMemory {
    /// How the device gets at what workers hand over.
    pub upload: Upload,
    /// What the run takes at most, its context apart, and all of it at the start: as
    /// `plan` says it.
    pub planned_bytes: u64,
    /// What was used of the device right after its context was made, by whomever: the
    /// context, and whatever other processes hold.
    pub at_context_bytes: u64,
    /// What was used of the device since then, once all of the run's was taken.
    pub at_start_bytes: u64,
    /// What is used of the device since its context was made, by whomever.
    pub used_bytes: u64,
    /// Of the host's memory, the ring, which is pinned for the device to read.
    pub pinned_bytes: u64,
}

/// Where the time of a device went, for all batches that it has finished and
/// the run has looked at since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceTimes {
    pub batches: u64,
    /// Copies to the device: descriptors, tables, pixels or finished rows. Seconds.
    pub copy_s: f64,
    /// The kernel, what it waits for on the bus included. Seconds.
    pub kernel_s: f64,
    /// Bytes that were copied of slots.
    pub copied_bytes: u64,
    /// Bytes of crops that the kernel has read out of slots.
    pub in_place_bytes: u64,
}

impl DeviceTimes {
    /// Seconds of what takes longer: copies and kernels go on at the same time.
    pub fn busy_s(&self) -> f64 {
        self.copy_s.max(self.kernel_s)
    }
}

impl AddAssign for DeviceTimes {
    fn add_assign(&mut self, more: Self) {
        self.batches += more.batches;
        self.copy_s += more.copy_s;
        self.kernel_s += more.kernel_s;
        self.copied_bytes += more.copied_bytes;
        self.in_place_bytes += more.in_place_bytes;
    }
}

impl Sub for DeviceTimes {
    type Output = Self;

    /// What came since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            batches: self.batches - earlier.batches,
            copy_s: self.copy_s - earlier.copy_s,
            kernel_s: self.kernel_s - earlier.kernel_s,
            copied_bytes: self.copied_bytes - earlier.copied_bytes,
            in_place_bytes: self.in_place_bytes - earlier.in_place_bytes,
        }
    }
}

/// What [`probe`] found.
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

/// Looks for devices that batches may end on. Loads the driver's library and starts
/// it, but makes no context: no memory of a device is taken. Never fails: what is
/// missing is said in the report.
///
/// A process that has called this must not go on with CUDA in a forked copy of
/// itself; such a copy may start a pool, whose processes have no CUDA.
pub fn probe() -> DeviceReport {
    cuda::probe()
}
