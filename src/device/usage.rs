//! Device memory and times of a run.

use std::ops::{AddAssign, Sub};

use serde::Serialize;

use super::choice::UploadMode;

/// The device memory of a run, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceMemory {
    /// How the device reads what workers hand over.
    pub upload: UploadMode,
    /// Planned bytes of the run, without the context. All of them are allocated at the start.
    /// `plan` prints the same number.
    pub planned_bytes: u64,
    /// Used bytes of the device when the context was created, by any process, including the
    /// context.
    pub at_context_bytes: u64,
    /// Bytes allocated since then, after the start of the run.
    pub at_start_bytes: u64,
    /// Bytes allocated since the context was created, by any process.
    pub used_bytes: u64,
    /// Host bytes of the ring, which is pinned for the device.
    pub pinned_bytes: u64,
}

/// Times of a device, over the batches that it has finished and the run has checked since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceTimes {
    pub batches: u64,
    /// Seconds of copies to the device: descriptors, tables, pixels or finished rows.
    pub copy_s: f64,
    /// Seconds of kernels, including their waits for the bus.
    pub kernel_s: f64,
    /// Bytes copied from slots.
    pub copied_bytes: u64,
    /// Bytes of crops that the kernel read in slots.
    pub in_place_bytes: u64,
    /// JPEGs decoded on the device. Zeros if workers decode all.
    pub jpegs: JpegTimes,
}

/// Counters and times of a device's JPEG decoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JpegTimes {
    /// JPEGs sent to the device's kernels.
    pub pictures: u64,
    /// JPEGs that the kernels flagged and the CPU decoded again.
    pub decoded_again: u64,
    /// Parts in which they were decoded.
    pub parts: u64,
    /// Seconds for which at least one part was under way, including its rows.
    pub busy_s: f64,
}

impl DeviceTimes {
    /// The longer of copy and kernel seconds, since both run at the same time.
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

    /// The difference since `earlier`.
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
