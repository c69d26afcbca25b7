//! The sizes of device stages, and the device memory that they need. Computed without a driver, so
//! a memory plan is the same on a machine without a GPU.
//!
//! In the consumer.

use super::choice::UploadMode;
use super::crop_launch::KernelRow;
use super::jpeg_part::PartLimits;
use crate::error::{Error, Result};
use crate::recipe::DataType;

/// Most rows of a launch: the limit of a grid's third side.
pub(crate) const MOST_ROWS: u32 = 65_535;
/// Batches whose descriptors are on the device at one time.
pub(crate) const TURNS: usize = 2;
/// The driver allocates device memory in multiples of this. Buffers below half of it share one.
pub(crate) const GRANULE: u64 = 2 << 20;
/// Memory of kernel, streams and events: 4 MiB on an H100 and an H200, doubled for devices that
/// were not measured.
const DRIVER: u64 = 8 << 20;

/// The layout of a batch's rows in their slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlaces {
    /// Bytes of a row, a multiple of 16. Row `i` begins at `i` times this.
    pub(crate) capacity: usize,
    /// Bytes of tables at the beginning of a row.
    pub(crate) tables: usize,
    /// Upper bound of the end of a row's pixels, in bytes, a multiple of 16. A coded crop may end
    /// later.
    pub(crate) pixels_end: usize,
}

impl RowPlaces {
    /// Most bytes of a row that are copied.
    pub(crate) fn copied(self, upload: UploadMode) -> usize {
        match upload {
            UploadMode::InPlace => self.tables,
            UploadMode::Copied => self.pixels_end,
        }
    }
}

/// Bytes of a slot that follow the rows of a batch on the device, as workers wrote them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TrailingBytes {
    /// Offset in the slot.
    pub(crate) from: usize,
    /// Offset in the batch.
    pub(crate) to: usize,
    pub(crate) len: usize,
}

impl TrailingBytes {
    /// Bytes of a batch with these, whose rows have `rows` bytes.
    pub(crate) fn end(all: &[Self], rows: usize) -> usize {
        let ends = all.iter().map(|part| part.to.saturating_add(part.len));
        ends.max().map_or(rows, |end| end.max(rows))
    }

    /// # Errors
    /// Bytes outside of a slot of `room` bytes, or within the `rows` bytes of a batch's rows.
    pub(crate) fn check(all: &[Self], rows: usize, room: usize) -> Result<()> {
        let is_outside = |part: &&Self| part.to < rows || part.from.saturating_add(part.len) > room;
        match all.iter().find(is_outside) {
            None => Ok(()),
            Some(part) => Err(Error::device(format!(
                "{part:?} does not follow the {rows} bytes of rows of a slot of {room} bytes"
            ))),
        }
    }
}

/// Sizes of the crops stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CropShape {
    /// Most rows of a batch.
    pub(crate) rows: usize,
    /// Most bytes that are copied per batch, without descriptors.
    pub(crate) source_bytes: usize,
    /// Batches with memory on the device at one time.
    pub(crate) outputs: usize,
    /// Bytes of a full batch on the device.
    pub(crate) output_bytes: usize,
    pub(crate) dtype: DataType,
    /// Whether there is memory for copied pixels. Without it only [`UploadMode::InPlace`] works.
    pub(crate) copies: bool,
    /// Sizes of the JPEG decoder. None: workers decode all.
    pub(crate) jpegs: Option<JpegShape>,
}

/// Streams that decode JPEGs at one time. While the images of one wait for their last chains, the
/// others fill the device.
pub(crate) const JPEG_LANES: usize = 4;
/// Fewest and most images of a part.
const PART: std::ops::RangeInclusive<usize> = 8..=64;
/// Room for coded data per image of a part, in bytes. The mean of 1,000 ImageNet photos is 110,000.
const CODED: usize = 128 << 10;
/// Room for window pixels per image of a part. The mean is 216,000 for whole ImageNet photos and
/// 105,000 for their random crops.
const WINDOW: usize = 112 << 10;

/// Most bytes of a row for the pixels of a crop, and for a coded crop instead of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegRoom {
    pub(crate) pixels: usize,
    pub(crate) coded: usize,
    /// Window pixels that a part must have room for, counted by
    /// [`window_pixels`](super::jpeg_part::window_pixels).
    pub(crate) window: usize,
}

/// The sizes of parts in which JPEGs are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegParts {
    /// Images per part.
    pub(crate) pictures: usize,
    /// As [`JpegRoom::window`].
    pub(crate) window: usize,
}

/// Sizes of the JPEG decoder on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegShape {
    /// Of a part.
    pub(crate) limits: PartLimits,
    /// The room of the largest row.
    pub(crate) room: JpegRoom,
    /// Most rows of a batch.
    pub(crate) rows: usize,
    /// Most bytes of a row.
    pub(crate) row_bytes: usize,
    /// Most bytes of a row's tables.
    pub(crate) row_tables: usize,
}

impl JpegShape {
    /// Possible numbers of images per part, the usual one first. Fewer need less memory.
    pub(crate) fn parts(rows: usize) -> impl Iterator<Item = usize> {
        let usual = (rows / 2).clamp(*PART.start(), *PART.end());
        let halves = std::iter::successors(Some(usual), |pictures| Some(pictures / 2));
        halves.take_while(|pictures| pictures >= PART.start())
    }

    /// Parts to try, the best first: then with fewer images, then with smaller windows.
    pub(crate) fn all_parts(rows: usize, window: usize) -> impl Iterator<Item = JpegParts> {
        let halves = std::iter::successors(Some(window), |window| {
            (*window > 0).then_some(match window / 2 {
                small if small < WINDOW => 0,
                half => half,
            })
        });
        halves.flat_map(move |window| {
            Self::parts(rows).map(move |pictures| JpegParts { pictures, window })
        })
    }

    /// The same with half as many images per part. None if they are the smallest.
    pub(crate) fn smaller(&self) -> Option<Self> {
        let pictures = self.limits.pictures / 2;
        (pictures >= *PART.start()).then(|| Self {
            limits: Self::limits(pictures, self.room),
            ..*self
        })
    }

    /// Limits for each image that do not depend on the size of parts. So the memory limit does not
    /// decide which decoder decodes a file.
    pub(crate) fn of_pictures(room: JpegRoom) -> PartLimits {
        Self::limits(*PART.start(), room)
    }

    /// The limits of a part with this number of images, whose rows have this room.
    pub(crate) fn limits(pictures: usize, room: JpegRoom) -> PartLimits {
        // A crop that was decoded at half its size counts four times, and large images are decoded
        // at a quarter, too. At an eighth there are no coefficients. A part has room for two long
        // files: this was 1.2 times as fast as one by one.
        let (count, times) = match room.coded > room.pixels {
            true => (2, 16),
            false => (1, 4),
        };
        let largest = times * room.pixels / 3;
        PartLimits {
            pictures,
            rows: (pictures * CODED).max(count * room.coded),
            pixels: (pictures * WINDOW).max(count * largest).max(room.window),
        }
    }

    /// Most rows that the launches of a part cover, including the rows between its images: a usual
    /// batch and some rows of others. Images that are further apart go to separate parts.
    pub(crate) fn lane_rows(&self) -> usize {
        self.rows.min(4 * self.limits.pictures) + self.limits.pictures
    }

    /// Bytes of a lane's tables.
    pub(crate) fn table_bytes(&self) -> usize {
        self.lane_rows() * self.row_tables
    }

    /// Pinned host bytes of all lanes.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let part = self.limits.memory();
        let rows = self.lane_rows() * size_of::<KernelRow>();
        let of_lane = 2 * (part.descriptors + part.errors + rows);
        (JPEG_LANES * of_lane + self.row_bytes) as u64
    }

    /// Most device bytes of all lanes.
    pub(crate) fn device_bytes(&self) -> u64 {
        let part = self.limits.memory();
        let of_lane = [
            part.rows,
            part.descriptors,
            part.work,
            part.errors,
            self.table_bytes(),
            self.lane_rows() * size_of::<KernelRow>(),
        ];
        let of_lane: u64 = of_lane.iter().map(|bytes| granules(*bytes as u64)).sum();
        // Plus the descriptor of a row that the CPU decodes again.
        JPEG_LANES as u64 * of_lane + granules(size_of::<KernelRow>() as u64)
    }
}

impl CropShape {
    /// Most device bytes of the stage, without the context.
    pub(crate) fn device_bytes(&self) -> u64 {
        let descriptors = TURNS as u64 * granules(self.descriptor_bytes() as u64);
        granules(self.source_bytes as u64)
            + descriptors
            + self.jpegs.map_or(0, |jpegs| jpegs.device_bytes())
            + rows_bytes(self.outputs, self.output_bytes)
    }

    pub(crate) fn descriptor_bytes(&self) -> usize {
        self.rows * size_of::<KernelRow>()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.rows == 0 || self.rows > MOST_ROWS as usize {
            return Err(Error::config(format!(
                "a device does not support batches of {} rows: use 1 to {MOST_ROWS}",
                self.rows
            )));
        }
        Ok(())
    }
}

/// Like [`CropShape::device_bytes`], for rows that workers finish.
pub(crate) fn rows_bytes(outputs: usize, output_bytes: usize) -> u64 {
    DRIVER + outputs as u64 * granules(output_bytes as u64)
}

/// Bytes rounded up to the driver's granules.
pub(crate) fn granules(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRANULE)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn shape() -> CropShape {
        CropShape {
            rows: 2,
            source_bytes: 2048,
            outputs: 1,
            output_bytes: 2 * 4 * 8 * 3 * 4,
            dtype: DataType::F32,
            copies: true,
            jpegs: None,
        }
    }

    #[test]
    fn shapes_that_cannot_be_launched_are_refused() {
        assert!(shape().check().is_ok());
        for rows in [0, 65_536] {
            let wrong = CropShape { rows, ..shape() };
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_buffer_is_counted_in_what_the_driver_gives() {
        // The driver's own, tables, descriptors twice, a batch.
        assert_eq!(shape().device_bytes(), (8 + 2 + 4 + 2) << 20);
        let larger = CropShape {
            outputs: 3,
            output_bytes: (2 << 20) + 1,
            ..shape()
        };
        assert_eq!(larger.device_bytes(), (8 + 2 + 4 + 3 * 4) << 20);
        assert_eq!(rows_bytes(0, 9), 8 << 20);
        const ROOM: JpegRoom = JpegRoom {
            pixels: 853_000,
            coded: 853_000,
            window: 0,
        };
        for pictures in JpegShape::parts(256) {
            let jpegs = JpegShape {
                limits: JpegShape::limits(pictures, ROOM),
                room: ROOM,
                rows: 256,
                row_bytes: 870_000,
                row_tables: 1 << 14,
            };
            let with = CropShape {
                jpegs: Some(jpegs),
                ..shape()
            };
            assert_eq!(
                with.device_bytes() - shape().device_bytes(),
                jpegs.device_bytes()
            );
            assert!(jpegs.device_bytes() < (480 << 20) * pictures as u64 / 64 + (200 << 20));
        }
    }

    #[test]
    fn parts_become_smaller_by_halves() {
        let parts = |rows| JpegShape::parts(rows).collect::<Vec<_>>();
        assert_eq!(parts(256), [64, 32, 16, 8]);
        assert_eq!(parts(64), [32, 16, 8]);
        assert_eq!((parts(1), parts(40)), (vec![8], vec![20, 10]));
        let all: Vec<_> = JpegShape::all_parts(32, 5 * WINDOW)
            .map(|parts| (parts.pictures, parts.window))
            .collect();
        let (half, quarter) = (5 * WINDOW / 2, 5 * WINDOW / 4);
        let wanted = [5 * WINDOW, half, quarter, 0].map(|window| [(16, window), (8, window)]);
        assert_eq!(all, wanted.as_flattened());
        assert_eq!(JpegShape::all_parts(1, 0).count(), 1);
    }

    #[test]
    fn a_part_has_room_for_a_window() {
        let room = JpegRoom {
            pixels: 853_000,
            coded: 853_000,
            window: 0,
        };
        let with = |window| JpegShape::limits(8, JpegRoom { window, ..room }).pixels;
        assert_eq!((with(0), with(1000)), (4 * 853_000 / 3, 4 * 853_000 / 3));
        assert_eq!(with(12 << 20), 12 << 20);
    }
}
