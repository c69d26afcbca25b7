//! What a run has of a device, and where its time went.

use std::ops::{AddAssign, Sub};

use serde::Serialize;

use super::choice::Upload;

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
    /// The JPEG engines; zeros where they decode nothing.
    pub engines: EngineTimes,
}

/// What the JPEG engines of a device did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EngineTimes {
    /// Pictures that were put into submissions.
    pub pictures: u64,
    pub submissions: u64,
    /// Seconds in which they had at least one submission, its rows included.
    pub busy_s: f64,
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
        self.engines.pictures += more.engines.pictures;
        self.engines.submissions += more.engines.submissions;
        self.engines.busy_s += more.engines.busy_s;
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
            engines: EngineTimes {
                pictures: self.engines.pictures - earlier.engines.pictures,
                submissions: self.engines.submissions - earlier.engines.submissions,
                busy_s: self.engines.busy_s - earlier.engines.busy_s,
            },
        }
    }
}
