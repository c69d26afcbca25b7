//! What a device stage is made for, and what that takes of the device: the same in a
//! build without CUDA, so that a forecast is.
//!
//! In the consumer.

use super::choice::Upload;
use super::frames::Frame;
use super::launch::KernelRow;
use crate::error::{Error, Result};
use crate::recipe::Dtype;

/// Rows of a launch: the third side of a grid.
pub(crate) const MOST_ROWS: u32 = 65_535;
/// Batches whose descriptors are on the device.
pub(crate) const TURNS: usize = 2;
/// What the driver gives memory of a device out in; it puts buffers of less than half
/// of it together.
pub(crate) const GRANULE: u64 = 2 << 20;
/// What the kernel, streams and events take: 4 MiB on an H100 and an H200, and as much
/// again for devices that nobody has measured.
const DRIVER: u64 = 8 << 20;

/// Where the rows of a batch lie in their slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlaces {
    /// Bytes of a row, a multiple of 16: row `i` begins at `i` times this.
    pub(crate) capacity: usize,
    /// Bytes at a row's beginning that its tables lie in.
    pub(crate) tables: usize,
}

impl RowPlaces {
    /// Bytes of a row that are copied at most.
    pub(crate) fn copied(self, upload: Upload) -> usize {
        match upload {
            Upload::InPlace => self.tables,
            Upload::Copied => self.capacity,
        }
    }
}

/// Of crops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CropShape {
    /// Rows of a batch at most.
    pub(crate) rows: usize,
    /// Bytes that are copied of a batch at most, its descriptors apart.
    pub(crate) source_bytes: usize,
    /// Batches that have memory on the device at a time.
    pub(crate) outputs: usize,
    /// Bytes of a batch on the device, full.
    pub(crate) output_bytes: usize,
    pub(crate) dtype: Dtype,
    /// Memory for copied pixels too. Without it only [`Upload::InPlace`] is served.
    pub(crate) copies: bool,
    /// What engines are opened for; none = there are none.
    pub(crate) engines: Option<EngineShape>,
}

/// Submissions that engines have at a time: while they decode one, the next is put together.
pub(crate) const LANES: usize = 2;
/// Pictures of a submission at most. An H100 gave 22,400 images/s for two lanes of 64, 22,000
/// for two of 32, and 21,300 for one of 64.
pub(crate) const SUBMISSION: usize = 64;
/// Pictures that are worth a submission, while more come.
pub(crate) const ENOUGH: usize = 32;
/// Most bytes that nvJPEG's hardware backend takes for a lane, whatever its pictures, and for
/// each pixel of the largest.
const LANE: u64 = 16 << 20;
const LANE_PIXEL: u64 = 112;
/// Bytes of a lane's frames at least: 64 pictures of 500 x 375 take 39 MiB.
const FRAMES: usize = 48 << 20;
/// Largest pictures that a lane's frames have room for, at least.
const LARGEST: usize = 16;

/// What the engines of a device are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineShape {
    /// Width and height of the largest picture.
    pub(crate) largest: (u32, u32),
    /// Rows of a batch at most.
    pub(crate) rows: usize,
    /// Bytes of the tables of a batch at most, and of one row.
    pub(crate) batch_tables: usize,
    pub(crate) row_tables: usize,
}

impl EngineShape {
    /// Bytes of a lane's frames.
    pub(crate) fn frame_bytes(&self) -> usize {
        FRAMES.max(LARGEST.saturating_mul(Frame::bytes(self.largest)))
    }

    /// Rows that a submission's launches cover at most: all of one batch, and some of others.
    pub(crate) fn lane_rows(&self) -> usize {
        self.rows + SUBMISSION
    }

    /// Bytes of a lane's tables.
    pub(crate) fn table_bytes(&self) -> usize {
        self.batch_tables + SUBMISSION * self.row_tables
    }

    /// Most bytes of the device that the library and the lanes take.
    pub(crate) fn device_bytes(&self) -> u64 {
        let (width, height) = self.largest;
        let library = LANE + LANE_PIXEL * u64::from(width) * u64::from(height);
        let own = [
            self.frame_bytes(),
            self.table_bytes(),
            self.lane_rows() * size_of::<KernelRow>(),
        ];
        let own: u64 = own.iter().map(|bytes| granules(*bytes as u64)).sum();
        LANES as u64 * (granules(library) + own)
    }
}

impl CropShape {
    /// Most bytes of the device that a stage takes, its context apart.
    pub(crate) fn device_bytes(&self) -> u64 {
        let descriptors = TURNS as u64 * granules(self.descriptor_bytes() as u64);
        granules(self.source_bytes as u64)
            + descriptors
            + self.engines.map_or(0, |engines| engines.device_bytes())
            + rows_bytes(self.outputs, self.output_bytes)
    }

    pub(crate) fn descriptor_bytes(&self) -> usize {
        self.rows * size_of::<KernelRow>()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.rows == 0 || self.rows > MOST_ROWS as usize {
            return Err(Error::config(format!(
                "a batch of {} on a device: use 1 to {MOST_ROWS}",
                self.rows
            )));
        }
        Ok(())
    }
}

/// As [`CropShape::device_bytes`], of rows that workers finish.
pub(crate) fn rows_bytes(outputs: usize, output_bytes: usize) -> u64 {
    DRIVER + outputs as u64 * granules(output_bytes as u64)
}

/// As the driver gives memory out.
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
            dtype: Dtype::F32,
            copies: true,
            engines: None,
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
        let engines = |side| EngineShape {
            largest: (side, side),
            rows: 64,
            batch_tables: 64 << 10,
            row_tables: 1 << 10,
        };
        // Of a lane: the library's 16 + 112, frames, tables, descriptors.
        assert_eq!(engines(1024).device_bytes() >> 20, 2 * (128 + 50 + 2 + 2));
        for side in [512, 1024, 2048] {
            let engines = engines(side);
            let with = CropShape {
                engines: Some(engines),
                ..shape()
            };
            assert_eq!(
                with.device_bytes() - shape().device_bytes(),
                engines.device_bytes()
            );
        }
    }
}
