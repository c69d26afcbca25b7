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
    /// may take it; none where all files that were looked at are of other formats.
    pub(super) fn of(
        self,
        program: &SampleProgram,
        index: &Index,
        limits: &Limits,
        rows: u32,
    ) -> Option<SampleProgram> {
        let lengths = survey::jpeg_lengths(index, FILES, limits)?;
        let memory = MemoryLimit::lowest(self.memory_limit).map_or(u64::MAX, |limit| limit.bytes);
        let ring = MOST_RING.min(memory / SHARE);
        let of_row = ring / u64::from(self.depth).max(1) / u64::from(rows).max(1);
        Some(program.with_coded_room(room(lengths, of_row) as usize))
    }
}

/// Bytes that 99 of 100 of these files need beside their tables, as far as a row may have them.
fn room(mut lengths: Vec<u64>, of_row: u64) -> u64 {
    lengths.sort_unstable();
    let most = lengths.get(lengths.len().saturating_sub(1) * 99 / 100);
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
