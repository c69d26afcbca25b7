//! What a run has of a device, and where its time went.

use std::ops::{AddAssign, Sub};

use serde::Serialize;

use super::choice::UploadMode;

/// What a run has of a device's memory, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceMemory {
    /// How the device gets at what workers hand over.
    pub upload: UploadMode,
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
    /// JPEGs that the device decoded; zeros where workers decode all.
    pub jpegs: JpegTimes,
}

/// What a device decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JpegTimes {
    /// JPEGs that were given to the device's kernels.
    pub pictures: u64,
    /// Of those, that the kernels flagged and the CPU decoded again.
    pub decoded_again: u64,
    /// Parts of batches in which they were decoded.
    pub parts: u64,
    /// Seconds in which at least one part was under way, its rows included.
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
        self.jpegs.pictures += more.jpegs.pictures;
        self.jpegs.decoded_again += more.jpegs.decoded_again;
        self.jpegs.parts += more.jpegs.parts;
        self.jpegs.busy_s += more.jpegs.busy_s;
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
            jpegs: JpegTimes {
                pictures: self.jpegs.pictures - earlier.jpegs.pictures,
                decoded_again: self.jpegs.decoded_again - earlier.jpegs.decoded_again,
                parts: self.jpegs.parts - earlier.jpegs.parts,
                busy_s: self.jpegs.busy_s - earlier.jpegs.busy_s,
            },
        }
    }
}
