//! Device memory of a run over a scene, computed from sizes alone. Used before the device is
//! opened, and by the run.
//!
//! Runs in the consumer. Not here: the device, addresses, places of images.

use std::ops::Range;

use crate::device::stage_shapes::{GRANULE, granules, rows_bytes};
use crate::error::{self, Error};
use crate::scene::jobs::device_images::jpeg_decoding::JpegDecoding;
use crate::scene::jobs::device_images::spec::ROW_BYTES;

/// Default number of batches on the device.
const DEPTH: u32 = 4;

/// Alignment of images.
pub(crate) const IMAGE_ALIGN: u64 = 16;

/// Maximum device memory of a run, without the context, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SceneDeviceBytes {
    /// Number of batches in device memory.
    pub(crate) batches: u32,
    /// Bytes of the batches, and what the driver allocates for the kernel.
    pub(crate) batch_bytes: u64,
    /// Bytes of table, masks, cameras and frames.
    pub(crate) scene_bytes: u64,
    /// Bytes of the images that fit.
    pub(crate) image_bytes: u64,
    /// Bytes of the images that do not fit. The kernel reads them from host memory.
    pub(crate) host_bytes: u64,
    /// The JPEG decoder on the device; `None` if workers decode all images.
    pub(crate) jpegs: Option<JpegDecoding>,
    /// Limit of the total.
    pub(crate) limit: Option<u64>,
    /// Options that make batches smaller, for errors.
    lower: &'static str,
}

impl SceneDeviceBytes {
    /// Computes the memory from the images' ranges in the image store, `scene` bytes of constant
    /// data, and batches of `batch` bytes. `lower` names the options that make batches smaller.
    /// [`SceneDeviceBytes::refusal`] returns an error if it does not fit.
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
            // Whole images, in order, up to the limit.
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

    /// Adds the JPEG decoder if it fits together with all images. Otherwise workers decode: images
    /// that do not fit on the device must be in host memory.
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

    /// Bytes of the JPEG decoder.
    pub(crate) fn decoder_bytes(&self) -> u64 {
        self.jpegs.map_or(0, |jpegs| jpegs.device_bytes())
    }

    /// Bytes of everything except the images.
    pub(crate) fn fixed_bytes(&self) -> u64 {
        self.batch_bytes + self.scene_bytes + self.decoder_bytes()
    }

    /// Bytes left for images, rounded down to the driver's allocation unit.
    pub(crate) fn image_room(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| {
            let room = limit.saturating_sub(self.fixed_bytes());
            room - room % GRANULE
        })
    }

    /// Total bytes if the images take `pixels` bytes.
    pub(crate) fn bytes_with_images(&self, pixels: u64) -> u64 {
        self.fixed_bytes() + granules(pixels)
    }

    /// The error of a run that cannot start: its limit is below the fixed bytes, or the device
    /// would have to read images from a file.
    pub(crate) fn refusal(&self, in_file: bool) -> Option<Error> {
        match self.limit {
            Some(limit) if limit < self.fixed_bytes() => Some(Error::option(
                "gpu_memory_limit",
                format!(
                    "{} batches, cameras and masks need {} of device memory, but gpu_memory_limit \
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

    /// Error: the device would have to read images from the store file.
    pub(crate) fn no_file(&self) -> Error {
        let (all, beside) = (self.image_bytes + self.host_bytes, self.fixed_bytes());
        Error::option(
            "gpu_memory_limit",
            format!(
                "the images need {} and do not fit gpu_memory_limit together with {} for batches, \
                 and a device cannot read images in a file: raise gpu_memory_limit to {}, or raise \
                 memory_limit so that the images fit in memory",
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
