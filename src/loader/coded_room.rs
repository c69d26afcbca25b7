//! The room of a row for a coded crop, where a device decodes: as the files of the data set need it.
//!
//! In the consumer. From the lengths of some files, the same ones in each run. The stream does not
//! depend on it: workers decode what has no room.

use crate::data::index::Index;
use crate::data::survey;
use crate::forecast::MemoryLimit;
use crate::forecast::memory::Depth;
use crate::loader::upload::Uploads;
use crate::picture::Limits;
use crate::picture::jpeg::gpu_rows::MAX_CODED;
use crate::recipe::SampleProgram;

/// Files that are looked at: of a hundred, one may be longer than the room.
const FILES: u64 = 200;
/// Bytes of tables, and of ends of segments, beside the coded data.
const TABLES: u64 = 64 << 10;
/// Most bytes of a ring that has more room for the sake of coded crops.
const MOST_RING: u64 = 4 << 30;
/// Of the memory that there is, what such a ring may take: one part of so many.
const SHARE: u64 = 4;
/// What rooms are a multiple of.
const STEP: u64 = 64 << 10;

/// The rows of a ring, and the memory that a run may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodedRoom {
    /// Slots.
    pub(super) depth: u32,
    pub(super) memory_limit: Option<u64>,
}

/// What is wanted of a run; none where no device decodes.
pub(super) fn coded_room(
    uploads: Option<&Uploads<'_>>,
    depth: Depth,
    memory_limit: Option<u64>,
) -> Option<CodedRoom> {
    uploads
        .and_then(|uploads| uploads.jpegs)
        .map(|_| CodedRoom {
            depth: depth.most(),
            memory_limit,
        })
}

impl CodedRoom {
    /// The program, whose rows have room for most JPEGs of the data set, as far as a ring of rows
    /// may take it.
    pub(super) fn of(
        self,
        program: &SampleProgram,
        index: &Index,
        limits: &Limits,
        rows: u32,
    ) -> SampleProgram {
        let mut lengths = survey::jpeg_lengths(index, FILES, limits);
        lengths.sort_unstable();
        let most = lengths.get(lengths.len().saturating_sub(1) * 99 / 100);
        let wanted = most.map_or(0, |bytes| bytes.saturating_add(TABLES));
        let memory = MemoryLimit::lowest(self.memory_limit).map_or(u64::MAX, |limit| limit.bytes);
        let ring = MOST_RING.min(memory / SHARE);
        let of_row = ring / u64::from(self.depth).max(1) / u64::from(rows).max(1);
        let room = wanted.next_multiple_of(STEP).min(MAX_CODED as u64 + TABLES);
        program.with_coded_room(room.min(of_row / STEP * STEP) as usize)
    }
}
