//! Sizes, places and geometries of the crops in a batch, if its samples have several.
//!
//! In the consumer. A copy of what the slot says, no pixels.

use crate::decode_plan::CropGeometry;
use crate::error::Error;
use crate::jobs::images::crop_sections::CropSections;
use crate::recipe::HullRule;

/// The crops of a batch. The geometries are a copy of those in the slot, since workers could change
/// what is in shared memory.
#[derive(Debug)]
pub(crate) struct CropExtents {
    pub(crate) rows: usize,
    pub(crate) crops: Vec<CropExtent>,
    /// Bytes of all crops.
    pub(crate) bytes: usize,
}

/// One crop of all rows.
#[derive(Debug)]
pub(crate) struct CropExtent {
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Offset of its first row.
    pub(crate) start: usize,
    pub(crate) geometry: Vec<CropGeometry>,
}

impl CropExtents {
    /// Reads the geometries of a batch of `rows` rows from its slot.
    pub(crate) fn read(sections: &CropSections, rows: usize, slot: &[u8]) -> Self {
        let batch = rows as u32;
        let places = |row| sections.places(batch, row).last().unwrap_or(0..0);
        let read = |row: u32, crop: usize| {
            let at = places(row).start + crop * CropGeometry::BYTES;
            let bytes = slot.get(at..at + CropGeometry::BYTES);
            bytes.map_or_else(CropGeometry::default, bytemuck::pod_read_unaligned)
        };
        let crops = sections.sizes().zip(sections.starts(batch)).enumerate();
        Self {
            rows,
            bytes: sections.pixel_bytes(batch) as usize,
            crops: crops
                .map(|(crop, ((height, width), start))| CropExtent {
                    height: height as usize,
                    width: width as usize,
                    start: start as usize,
                    geometry: (0..batch).map(|row| read(row, crop)).collect(),
                })
                .collect(),
        }
    }

    /// The same for a batch whose crops a device makes. `rows`: whether each row is masked.
    pub(crate) fn read_hulls(
        sections: &CropSections,
        rule: &HullRule,
        rows: &[bool],
        slot: &[u8],
    ) -> Self {
        let batch = rows.len() as u32;
        let read = |row: usize, masked: bool, crop: usize| {
            let at = row * rule.row_bytes() + rule.geometry_at(crop);
            let bytes = slot.get(at..at + CropGeometry::BYTES).filter(|_| !masked);
            bytes.map_or_else(CropGeometry::default, bytemuck::pod_read_unaligned)
        };
        let crops = sections.sizes().zip(sections.starts(batch)).enumerate();
        let crops = crops.map(|(crop, ((height, width), start))| CropExtent {
            height: height as usize,
            width: width as usize,
            start: start as usize,
            geometry: (rows.iter().enumerate())
                .map(|(row, masked)| read(row, *masked, crop))
                .collect(),
        });
        Self {
            rows: rows.len(),
            bytes: sections.pixel_bytes(batch) as usize,
            crops: crops.collect(),
        }
    }

    /// Height and width of the first crop.
    pub(crate) fn first_size(&self) -> (usize, usize) {
        let first = self.crops.first();
        first.map_or((0, 0), |crop| (crop.height, crop.width))
    }
}

/// The error if the only tensor of a batch was requested.
pub(crate) fn several_crops() -> Error {
    Error::config("the samples of this batch have several crops: use Batch::crop(n) for each")
}
