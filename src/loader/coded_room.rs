//! Sizes rows for coded crops, and parts for their decoded pixels, from the files of the data set.
//!
//! In the consumer, when a device decodes JPEGs. Uses the lengths and sizes of a sample of files,
//! the same files in each run. The stream does not depend on the sizes: workers decode what does
//! not fit.

use crate::data::index::Index;
use crate::data::survey;
use crate::data::survey::JpegFile;
use crate::device::jpeg_part::window_pixels;
use crate::loader::upload::UploadPlanner;
use crate::memory_plan::MemoryLimit;
use crate::memory_plan::run_memory::RingDepth;
use crate::picture::PictureLimits;
use crate::picture::jpeg::gpu_rows::{MAX_CODED, MAX_PIXELS};
use crate::recipe::{DecodeMode, SampleProgram};

/// Files that are read. One of a hundred may be longer than the room for it.
const FILES: u64 = 200;
/// Side of a luma block at full size.
const BLOCK: usize = 8;
/// Bytes for tables and segment ends, in addition to the coded data.
const TABLES: u64 = 64 << 10;
/// Most bytes of the images of a ring that is enlarged for coded crops.
const MOST_RING: u64 = 4 << 30;
/// Such a ring takes at most this fraction (1/4) of the available memory.
const SHARE: u64 = 4;
/// Row sizes are rounded up to multiples of this.
const STEP: u64 = 64 << 10;

/// The number of slots of the ring, and the memory limit of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodedRoom {
    /// Slots.
    pub(super) depth: u32,
    pub(super) memory_limit: Option<u64>,
}

/// The request for coded rows. None unless a device decodes.
pub(super) fn coded_room(
    uploads: Option<&UploadPlanner<'_>>,
    depth: RingDepth,
    memory_limit: Option<u64>,
) -> Option<CodedRoom> {
    uploads
        .and_then(|uploads| uploads.jpegs)
        .map(|_| CodedRoom {
            depth: depth.most_slots(),
            memory_limit,
        })
}

impl CodedRoom {
    /// Returns the program with rows sized for most JPEGs of the data set, as far as the ring may
    /// grow. Also returns the window pixels that a part must have room for. These are the pixels of
    /// most images if images are decoded at full size before a resize, otherwise 0 (the rows' own
    /// room is enough). None if none of the files that were read is a JPEG.
    pub(super) fn of(
        self,
        program: &SampleProgram,
        index: &Index,
        limits: &PictureLimits,
        rows: u32,
    ) -> Option<(SampleProgram, usize)> {
        let files = survey::jpeg_files(index, FILES, limits)?;
        let is_full = program.decode == DecodeMode::Full;
        let rule = program.crops.filter(|_| is_full);
        let resize = |file: &JpegFile| rule.and_then(|rule| rule.resize_bytes(file.size));
        let lengths = files.iter().map(|f| f.bytes + resize(f).unwrap_or(0));
        let sides = files.iter().filter(|file| resize(file).is_some());
        let sides = sides.map(|file| (file.size.0 as usize, file.size.1 as usize));
        let pixels = sides.map(|sides| window_pixels(sides, BLOCK) as u64);
        let pixels = most_of(pixels.collect()).unwrap_or(0);
        let memory =
            MemoryLimit::lowest_of(self.memory_limit).map_or(u64::MAX, |limit| limit.bytes);
        let ring = MOST_RING.min(memory / SHARE);
        let of_row = ring / u64::from(self.depth).max(1) / u64::from(rows).max(1);
        let room = room(lengths.collect(), of_row) as usize;
        let pixels = pixels.min(MAX_PIXELS as u64) as usize;
        Some((program.with_coded_bytes(room), pixels))
    }
}

/// The 99th percentile.
fn most_of(mut numbers: Vec<u64>) -> Option<u64> {
    numbers.sort_unstable();
    numbers
        .get(numbers.len().saturating_sub(1) * 99 / 100)
        .copied()
}

/// Row bytes that are enough for 99 of 100 of these files, tables included, but at most `of_row`.
fn room(lengths: Vec<u64>, of_row: u64) -> u64 {
    let most = most_of(lengths);
    let wanted = most.map_or(0, |bytes| bytes.saturating_add(TABLES));
    let room = wanted.min(MAX_CODED as u64 + TABLES).next_multiple_of(STEP);
    room.min(of_row / STEP * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_room_for_all_but_the_longest_files() {
        const MIB: u64 = 1 << 20;
        let mut lengths = vec![100_000; 198];
        lengths.extend([9 * MIB, MIB]);
        // 100,000 and the tables, in steps.
        assert_eq!(room(lengths.clone(), u64::MAX), 192 << 10);
        lengths.extend([3 * MIB; 3]);
        assert_eq!(room(lengths.clone(), u64::MAX), 3 * MIB + STEP);
        assert_eq!(room(lengths, 2 * MIB + 1), 2 * MIB);
        assert_eq!(room(vec![5 * MIB], u64::MAX), 5 * MIB + STEP);
        assert_eq!(room(vec![u64::MAX; 3], u64::MAX), MAX_CODED as u64 + TABLES);
        assert_eq!(room(Vec::new(), u64::MAX), 0);
    }
}
