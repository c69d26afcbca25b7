//! The bytes of rasters in a batch: rows come first, then each raster of all rows.

use crate::jobs::mask_rule::MaskType;
use crate::recipe::DataType;

/// In bytes. Rows with their own sizes and rasters begin at multiples of this: a cache line, enough
/// for every vector register and every GPU load.
pub(crate) const ROW_ALIGNMENT: usize = 64;

/// The element type of rasters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RasterType {
    Labels(MaskType),
    Numbers(DataType),
}

impl RasterType {
    /// Bytes of an element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Labels(dtype) => dtype.size(),
            Self::Numbers(dtype) => dtype.size(),
        }
    }
}

/// The bytes of a raster in each row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RasterSection {
    /// None: the raster has no axis for planes, as masks.
    pub(crate) planes: Option<usize>,
    pub(crate) dtype: RasterType,
    /// How many times larger it is than the image.
    pub(crate) scale: u32,
    /// Whether its axes are ordered as those of the image. Otherwise planes come first.
    pub(crate) is_image: bool,
}

impl RasterSection {
    /// Bytes of a raster for a row of this height and width.
    pub(crate) fn bytes(&self, (height, width): (u32, u32)) -> u64 {
        let scale = u64::from(self.scale);
        let pixel = (self.planes.unwrap_or(1) * self.dtype.size()) as u64;
        (u64::from(height) * scale)
            .saturating_mul(u64::from(width) * scale)
            .saturating_mul(pixel)
    }

    /// Where rasters begin that follow `rows` rows of `row` bytes and this height and width. Each
    /// begins at a multiple of a row's alignment.
    pub(crate) fn starts(all: &[Self], row: u64, (size, rows): ((u32, u32), u32)) -> Vec<usize> {
        let start = |n: usize| aligned(Self::end(&all[..n], row, (size, rows))) as usize;
        (0..all.len()).map(start).collect()
    }

    /// The byte after these rows and their rasters.
    pub(crate) fn end(all: &[Self], row: u64, (size, rows): ((u32, u32), u32)) -> u64 {
        let pixels = row.saturating_mul(u64::from(rows));
        all.iter().fold(pixels, |end, raster| {
            let bytes = raster.bytes(size).saturating_mul(u64::from(rows));
            aligned(end).saturating_add(bytes)
        })
    }
}

fn aligned(end: u64) -> u64 {
    (end.checked_next_multiple_of(ROW_ALIGNMENT as u64)).unwrap_or(u64::MAX)
}
