//! The bytes of a slot whose samples have several crops.
//!
//! ```text
//! crop 0: row 0, row 1, ...  | crop 1: row 0, row 1, ...  | ...  | geometry: row 0, row 1, ...
//! ```
//!
//! So each crop of a batch is one dense tensor, and neighbours of the same size are one as well.
//! Pure, the same in every process.

use std::ops::Range;

use crate::decode_plan::CropGeometry;
use crate::recipe::SampleProgram;

/// The section of geometries begins at a multiple of this.
const GEOMETRY_ALIGNMENT: u64 = 64;

/// The sections of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CropSections {
    /// Height, width and bytes of each crop of a sample.
    crops: Vec<((u32, u32), u64)>,
}

impl CropSections {
    /// None unless the samples of this program have several crops.
    pub(crate) fn of(program: &SampleProgram) -> Option<Self> {
        let crops = program.crop_rows();
        (!crops.is_empty()).then_some(Self { crops })
    }

    /// Height and width of each crop.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.crops.iter().map(|(size, _)| *size)
    }

    /// Bytes of one sample: its crops and their geometries.
    pub(crate) fn sample_bytes(&self) -> u64 {
        let of_crop = |(_, bytes): &(_, u64)| bytes.saturating_add(CropGeometry::BYTES as u64);
        (self.crops.iter().map(of_crop)).fold(0, u64::saturating_add)
    }

    /// Bytes of a slot with this number of rows.
    pub(crate) fn slot_bytes(&self, rows: u32) -> u64 {
        let geometries = u64::from(rows).saturating_mul(self.geometry_bytes());
        self.geometry_start(rows).saturating_add(geometries)
    }

    /// Where each section of pixels begins, in a batch of this number of rows.
    pub(crate) fn starts(&self, rows: u32) -> impl Iterator<Item = u64> {
        let mut end = 0u64;
        self.crops.iter().map(move |(_, bytes)| {
            let start = end;
            end = end.saturating_add(bytes.saturating_mul(u64::from(rows)));
            start
        })
    }

    /// Bytes of all sections of pixels.
    pub(crate) fn pixel_bytes(&self, rows: u32) -> u64 {
        let bytes = self.crops.iter().map(|(_, bytes)| *bytes);
        (bytes.fold(0, u64::saturating_add)).saturating_mul(u64::from(rows))
    }

    /// Bytes of the geometries of one sample.
    fn geometry_bytes(&self) -> u64 {
        (self.crops.len() * CropGeometry::BYTES) as u64
    }

    fn geometry_start(&self, rows: u32) -> u64 {
        let pixels = self.pixel_bytes(rows);
        pixels
            .checked_next_multiple_of(GEOMETRY_ALIGNMENT)
            .unwrap_or(u64::MAX)
    }

    /// The ranges of a row in a batch of `rows` rows: its crops, then its geometries. Saturates for
    /// numbers that no slot has.
    pub(crate) fn places(&self, rows: u32, row: u32) -> impl Iterator<Item = Range<usize>> {
        let row = u64::from(row);
        let place = move |(start, bytes): (u64, u64)| {
            let start = start.saturating_add(row.saturating_mul(bytes));
            let end = start.saturating_add(bytes);
            to_usize(start)..to_usize(end)
        };
        let bytes = self.crops.iter().map(|(_, bytes)| *bytes);
        let geometry = (self.geometry_start(rows), self.geometry_bytes());
        (self.starts(rows).zip(bytes))
            .chain(std::iter::once(geometry))
            .map(place)
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Bytes of a slot with this number of rows, for images of this upright height and width.
pub(crate) fn slot_bytes(program: &SampleProgram, picture: (u32, u32), rows: u32) -> u64 {
    match CropSections::of(program) {
        Some(sections) => sections.slot_bytes(rows),
        // A picture without patches has no bytes, and a slot has some.
        None => (sample_bytes(program, picture).saturating_mul(u64::from(rows))).max(1),
    }
}

/// Bytes of a sample in a slot, for an image of this upright height and width.
pub(crate) fn sample_bytes(program: &SampleProgram, picture: (u32, u32)) -> u64 {
    match CropSections::of(program) {
        Some(sections) => sections.sample_bytes(),
        None => program.picture_row_bytes(picture),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{DataType, RandomResizedCrop, Recipe};

    #[test]
    fn sections_of_any_batch_are_apart_and_fit_the_slot() {
        for dtype in DataType::ALL {
            let crop = |size| Recipe::new("c").then(RandomResizedCrop::new(size));
            let recipe = Recipe::new("r").with_crop(crop(7), 2).with_crop(crop(3), 3);
            let program = SampleProgram::compile(&recipe.with_dtype(dtype)).unwrap();
            let sections = CropSections::of(&program).unwrap();
            for rows in 1..9 {
                let all = (0..rows).flat_map(|row| sections.places(rows, row));
                let mut all: Vec<_> = all.collect();
                all.sort_by_key(|place| place.start);
                assert!(all.windows(2).all(|two| two[0].end <= two[1].start));
                let end = all.last().unwrap().end as u64;
                assert_eq!(end, sections.slot_bytes(rows));
                assert!(end <= sections.slot_bytes(rows + 1));
                // Neighbours of the same size follow each other without a gap.
                let starts: Vec<_> = sections.starts(rows).collect();
                let bytes = 3 * 7 * 7 * dtype.size() as u64 * u64::from(rows);
                assert_eq!(starts[1] - starts[0], bytes);
            }
        }
        let one = SampleProgram::compile(&Recipe::train224()).unwrap();
        assert_eq!(CropSections::of(&one), None);
    }
}
