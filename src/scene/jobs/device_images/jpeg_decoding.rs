//! Sizes of the device's JPEG decoder, computed from the sizes of the scene's files.
//!
//! Runs in the consumer. Not here: the device, where each file is decoded.

use serde::{Deserialize, Serialize};

use crate::device::jpeg_part::{PartLimits, window_pixels};
use crate::device::stage_shapes::granules;
use crate::picture::jpeg::gpu_rows::MAX_PIXELS;

/// Pixels of a part, unless one image has more: four photos of 1080 x 1920. Small enough that the
/// first images do not wait for many others, and large enough to keep the device busy.
const PART: usize = 9 << 20;
/// Maximum images of a part.
const MOST_PICTURES: usize = 16;
/// Maximum bytes of a row, and so of each slot of the ring. Photos of 12 megapixels take 3 to 8 MB.
const MOST_ROW: u64 = 8 << 20;
/// Bytes of a row in addition to the file's: tables, and ends of segments.
const TABLES: u64 = 64 << 10;
/// Alignment of the coded data in a row.
const ALIGN: u64 = 16;

/// The largest of the JPEGs that a device may decode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LargestJpeg {
    pixels: usize,
    file_bytes: u64,
}

impl LargestJpeg {
    /// Adds a file: its size in bytes, and width and height of its image.
    pub(crate) fn add(&mut self, (width, height): (u32, u32), file_bytes: u64) {
        let (width, height) = (width as usize, height as usize);
        if width * height <= MAX_PIXELS {
            self.pixels = self.pixels.max(window_pixels((width, height), 8));
            self.file_bytes = self.file_bytes.max(file_bytes);
        }
    }
}

/// Sizes of the device's JPEG decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JpegDecoding {
    pub(crate) limits: PartLimits,
    /// Bytes of a row of the ring: a header, and the coded image.
    pub(crate) row_bytes: u64,
}

impl JpegDecoding {
    /// Returns `None` if the device can decode no file.
    pub(crate) fn of(largest: LargestJpeg) -> Option<Self> {
        if largest.pixels == 0 {
            return None;
        }
        let row_bytes = (largest.file_bytes + TABLES).min(MOST_ROW);
        let row_bytes = row_bytes.next_multiple_of(ALIGN);
        let pictures = (PART / largest.pixels).clamp(1, MOST_PICTURES);
        Some(Self {
            limits: PartLimits {
                pictures,
                rows: pictures * row_bytes as usize,
                pixels: pictures * largest.pixels,
            },
            row_bytes,
        })
    }

    /// Maximum device memory of the decoder, in bytes.
    pub(crate) fn device_bytes(&self) -> u64 {
        let part = self.limits.memory();
        let buffers = [part.rows, part.descriptors, part.work, part.errors];
        buffers.iter().map(|bytes| granules(*bytes as u64)).sum()
    }

    /// Pinned host memory of the decoder, in bytes.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let part = self.limits.memory();
        2 * (part.rows + part.descriptors + part.errors) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoding(size: (u32, u32), file_bytes: u64) -> JpegDecoding {
        let mut largest = LargestJpeg::default();
        largest.add(size, file_bytes);
        JpegDecoding::of(largest).unwrap()
    }

    #[test]
    fn a_part_holds_a_few_photos_or_one_large_picture() {
        let fox = decoding((1080, 1920), 400_000);
        assert_eq!(fox.limits.pictures, 4);
        assert!(fox.device_bytes() < 100 << 20, "{}", fox.device_bytes());
        assert_eq!(decoding((800, 800), 100_000).limits.pictures, 13);
        assert_eq!(decoding((90, 90), 100_000).limits.pictures, MOST_PICTURES);
        let large = decoding((8192, 8192), 60 << 20);
        assert_eq!((large.limits.pictures, large.row_bytes), (1, MOST_ROW));
        assert!(large.device_bytes() < 700 << 20);
    }

    #[test]
    fn files_beyond_the_kernels_limits_take_nothing() {
        let mut largest = LargestJpeg::default();
        largest.add((8193, 8192), 1000);
        assert_eq!(JpegDecoding::of(largest), None);
    }
}
