//! What a run over a scene takes of a device, from sizes alone: before it is opened, and for the run.
//!
//! In the consumer. Never in here: the device, addresses, which image lies where.

use std::ops::Range;

use crate::device::shape::{GRANULE, granules, rows_bytes};
use crate::error::{self, Error};

/// Batches on the device, when nobody says another number.
const DEPTH: u32 = 4;

/// Images begin at multiples of this.
pub(crate) const IMAGE_ALIGN: u64 = 16;

/// Bytes of a device at most, its context apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceBytes {
    /// Batches that have memory there.
    pub(crate) batches: u32,
    /// Of the batches, and what the driver takes for the kernel.
    pub(crate) batch_bytes: u64,
    /// Table, masks, cameras, frames.
    pub(crate) scene_bytes: u64,
    /// Images that have room.
    pub(crate) image_bytes: u64,
    /// Images that have none: they are read in the host's memory.
    pub(crate) host_bytes: u64,
    /// The most that all of it may take.
    pub(crate) limit: Option<u64>,
    /// The options that make batches smaller.
    lower: &'static str,
}

impl DeviceBytes {
    /// Of images that lie there in the store, `scene` bytes that are there from the beginning,
    /// batches of `batch` bytes each. `lower` are the options that make batches smaller.
    /// Whether it fits says [`DeviceBytes::refusal`].
    pub(crate) fn new(
        images: impl Iterator<Item = Range<u64>>,
        scene: u64,
        batch: usize,
        (depth, limit): (Option<u32>, Option<u64>),
        lower: &'static str,
    ) -> Self {
        let batches = depth.unwrap_or(DEPTH).max(1);
        let images = images.map(|range| (range.end - range.start).next_multiple_of(IMAGE_ALIGN));
        let images: Vec<u64> = images.collect();
        let all: u64 = images.iter().sum();
        let mut this = Self {
            batches,
            batch_bytes: rows_bytes(batches as usize, batch),
            scene_bytes: granules(scene),
            image_bytes: granules(all),
            host_bytes: 0,
            limit,
            lower,
        };
        if limit.is_some() {
            // Whole images, in their order.
            let room = this.room();
            let ends = images.iter().scan(0, |end, bytes| {
                *end += bytes;
                Some(*end)
            });
            let there = ends.take_while(|end| *end <= room).last().unwrap_or(0);
            this.image_bytes = granules(there);
            this.host_bytes = all - there;
        }
        this
    }

    /// All but the images.
    pub(crate) fn beside(&self) -> u64 {
        self.batch_bytes + self.scene_bytes
    }

    /// Bytes that images may take, in whole steps of the driver.
    pub(crate) fn room(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| {
            let room = limit.saturating_sub(self.beside());
            room - room % GRANULE
        })
    }

    /// What is taken where images take `pixels` bytes.
    pub(crate) fn with(&self, pixels: u64) -> u64 {
        self.beside() + granules(pixels)
    }

    /// Why the run does not begin: a limit below what is there for any number of images, or
    /// images in a file that the device must read.
    pub(crate) fn refusal(&self, in_file: bool) -> Option<Error> {
        match self.limit {
            Some(limit) if limit < self.beside() => Some(Error::option(
                "gpu_memory_limit",
                format!(
                    "{} batches, cameras and masks take {} of the device and gpu_memory_limit \
                     allows {}: raise it, or lower {}",
                    self.batches,
                    error::needed(self.beside()),
                    error::room(limit),
                    self.lower
                ),
            )),
            _ => (in_file && self.host_bytes > 0).then(|| self.no_file()),
        }
    }

    /// Images that lie in a file and that the device must read.
    pub(crate) fn no_file(&self) -> Error {
        let (all, beside) = (self.image_bytes + self.host_bytes, self.beside());
        Error::option(
            "gpu_memory_limit",
            format!(
                "the images take {} and do not fit gpu_memory_limit beside {} for batches, and a \
                 device cannot read images in a file: raise gpu_memory_limit to {}, or \
                 memory_limit so that the images lie in memory",
                error::needed(all),
                error::size(beside),
                error::needed(all + beside)
            ),
        )
    }
}
