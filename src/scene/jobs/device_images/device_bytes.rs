//! What a run over a scene takes of a device, from sizes alone: before it is opened, and for the run.
//!
//! In the consumer. Never in here: the device, addresses, which image lies where.

use std::ops::Range;

use crate::device::stage_shapes::{GRANULE, granules, rows_bytes};
use crate::error::{self, Error};
use crate::scene::jobs::device_images::jpeg_decoding::JpegDecoding;
use crate::scene::jobs::device_images::spec::ROW_BYTES;

/// Batches on the device, when nobody says another number.
const DEPTH: u32 = 4;

/// Images begin at multiples of this.
pub(crate) const IMAGE_ALIGN: u64 = 16;

/// Bytes of a device at most, its context apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SceneDeviceBytes {
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
    /// What JPEGs are decoded with there; none = workers decode all images.
    pub(crate) jpegs: Option<JpegDecoding>,
    /// The most that all of it may take.
    pub(crate) limit: Option<u64>,
    /// The options that make batches smaller.
    lower: &'static str,
}

impl SceneDeviceBytes {
    /// Of images that lie there in the store, `scene` bytes that are there from the beginning,
    /// batches of `batch` bytes each. `lower` are the options that make batches smaller.
    /// Whether it fits says [`SceneDeviceBytes::refusal`].
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
            jpegs: None,
            limit,
            lower,
        };
        if limit.is_some() {
            // Whole images, in their order.
            let room = this.image_room();
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

    /// The same with what decodes JPEGs, where all images fit beside it. Images that do not fit
    /// are needed in the host's memory, so workers decode then.
    pub(crate) fn with_jpegs(self, jpegs: Option<JpegDecoding>) -> Self {
        let with = Self { jpegs, ..self };
        let all = with.bytes_with_images(self.image_bytes);
        match self.host_bytes == 0 && self.limit.is_none_or(|limit| all <= limit) {
            true => with,
            false => self,
        }
    }

    /// Bytes of a row that workers fill.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.jpegs.map_or(ROW_BYTES, |jpegs| jpegs.row_bytes)
    }

    /// What the decoder of JPEGs takes.
    pub(crate) fn decoder_bytes(&self) -> u64 {
        self.jpegs.map_or(0, |jpegs| jpegs.device_bytes())
    }

    /// All but the images.
    pub(crate) fn fixed_bytes(&self) -> u64 {
        self.batch_bytes + self.scene_bytes + self.decoder_bytes()
    }

    /// Bytes that images may take, in whole steps of the driver.
    pub(crate) fn image_room(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| {
            let room = limit.saturating_sub(self.fixed_bytes());
            room - room % GRANULE
        })
    }

    /// What is taken where images take `pixels` bytes.
    pub(crate) fn bytes_with_images(&self, pixels: u64) -> u64 {
        self.fixed_bytes() + granules(pixels)
    }

    /// Why the run does not begin: a limit below what is there for any number of images, or
    /// images in a file that the device must read.
    pub(crate) fn refusal(&self, in_file: bool) -> Option<Error> {
        match self.limit {
            Some(limit) if limit < self.fixed_bytes() => Some(Error::option(
                "gpu_memory_limit",
                format!(
                    "{} batches, cameras and masks take {} of the device and gpu_memory_limit \
                     allows {}: raise it, or lower {}",
                    self.batches,
                    error::size_rounded_up(self.fixed_bytes()),
                    error::size_rounded_down(limit),
                    self.lower
                ),
            )),
            _ => (in_file && self.host_bytes > 0).then(|| self.no_file()),
        }
    }

    /// Images that lie in a file and that the device must read.
    pub(crate) fn no_file(&self) -> Error {
        let (all, beside) = (self.image_bytes + self.host_bytes, self.fixed_bytes());
        Error::option(
            "gpu_memory_limit",
            format!(
                "the images take {} and do not fit gpu_memory_limit beside {} for batches, and a \
                 device cannot read images in a file: raise gpu_memory_limit to {}, or \
                 memory_limit so that the images lie in memory",
                error::size_rounded_up(all),
                error::size(beside),
                error::size_rounded_up(all + beside)
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::jobs::device_images::jpeg_decoding::LargestJpeg;

    #[test]
    fn a_decoder_is_taken_where_all_images_fit_beside_it() {
        let mut largest = LargestJpeg::default();
        largest.add((640, 480), 50_000);
        let jpegs = JpegDecoding::of(largest);
        let of = |limit| {
            let images = (0..9).map(|image| 1_000_000 * image..1_000_000 * image + 921_600);
            SceneDeviceBytes::new(images, 100, 1000, (None, limit), "rays").with_jpegs(jpegs)
        };
        let free = of(None);
        assert_eq!(free.jpegs, jpegs);
        assert_eq!(free.decoder_bytes(), jpegs.unwrap().device_bytes());
        let all = free.bytes_with_images(free.image_bytes);
        assert_eq!(of(Some(all)).jpegs, jpegs);
        let less = of(Some(all - 1));
        assert_eq!((less.jpegs, less.host_bytes), (None, 0));
        assert_eq!(
            less.bytes_with_images(less.image_bytes),
            all - free.decoder_bytes()
        );
    }
}
