//! The rasters of a batch: masks, depths, flows and other images that belong to the rows.
//!
//! In the consumer. Borrows, and copies nothing.

use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchRow, RowsExtent};
use crate::jobs::images::raster_extent::BatchRaster;
use crate::jobs::mask_rule::MaskType;
use crate::jobs::raster_rule::{MASKS, RasterRule};
use crate::jobs::raster_section::RasterType;

/// The masks of all rows: one dense tensor of rows x height x width.
#[derive(Debug, Clone, Copy)]
pub struct MaskPixels<'a> {
    bytes: &'a [u8],
    shape: [usize; 3],
    dtype: MaskType,
}

impl<'a> MaskPixels<'a> {
    /// The elements, in the machine's byte order.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Rows, height and width.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    #[must_use]
    pub fn dtype(&self) -> MaskType {
        self.dtype
    }
}

/// Where a raster of all rows lies, and what it is: one dense tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RasterLayout {
    /// Offset of the first row in the bytes of the batch.
    pub start: usize,
    /// Rows first. Then height and width for masks, planes x height x width for numbers, and the
    /// order of the images for an image.
    pub shape: Vec<usize>,
    pub dtype: RasterType,
}

impl RasterLayout {
    /// Bytes of the raster of all rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A raster of all rows: one dense tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RasterPixels<'a> {
    bytes: &'a [u8],
    layout: RasterLayout,
}

impl<'a> RasterPixels<'a> {
    /// The elements, in the machine's byte order.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// As [`RasterLayout::shape`].
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    #[must_use]
    pub fn dtype(&self) -> RasterType {
        self.layout.dtype
    }

    /// The elements of one row. None after the last row.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        let rows = *self.layout.shape.first()?;
        let bytes = self.bytes.len().checked_div(rows)?;
        self.bytes.get(row * bytes..)?.get(..bytes)
    }
}

impl Batch {
    fn layout_of(&self, BatchRaster { section, start }: BatchRaster) -> Option<RasterLayout> {
        let RowsExtent::Equal {
            rows,
            height,
            width,
        } = self.extent
        else {
            return None;
        };
        let scale = section.scale as usize;
        let (height, width) = (height * scale, width * scale);
        let row = match (section.planes, section.is_image) {
            (None, _) => vec![height, width],
            (Some(planes), false) => vec![planes, height, width],
            (Some(planes), true) => self.layout.row_shape(planes, height, width).to_vec(),
        };
        Some(RasterLayout {
            start,
            shape: [vec![rows], row].concat(),
            dtype: section.dtype,
        })
    }

    /// The end of the last raster in the bytes of the batch.
    pub(crate) fn rasters_end(&self) -> Option<usize> {
        let last = self.layout_of(*self.rasters.last()?)?;
        Some(last.start + last.len())
    }

    /// The names of the rasters, in the order in which the loader got them: from JSON and files in
    /// that of the alphabet. Without masks.
    pub fn raster_names(&self) -> impl Iterator<Item = &str> {
        let names = self.named.iter().map(|raster| &*raster.name);
        names.filter(|name| *name != MASKS)
    }

    /// What the raster with this name is. None if the images have none of this name.
    #[must_use]
    pub fn raster_rule(&self, name: &str) -> Option<&RasterRule> {
        let named = self.named.iter().find(|raster| raster.name == name)?;
        Some(&named.rule)
    }

    /// Where the raster with this name lies. None if the images have none of this name.
    #[must_use]
    pub fn raster_layout(&self, name: &str) -> Option<RasterLayout> {
        let at = self.named.iter().position(|raster| raster.name == name)?;
        self.layout_of(*self.rasters.get(at)?)
    }

    /// A raster of all rows. A masked row, which has no sample, has the number that a raster has
    /// outside of its image; an image has zeros.
    ///
    /// # Errors
    /// A loader without a raster of this name; as [`Batch::pixels`].
    pub fn raster(&self, name: &str) -> Result<RasterPixels<'_>> {
        let Some(layout) = self.raster_layout(name) else {
            let names: Vec<&str> = self.raster_names().collect();
            let has = match names.is_empty() {
                true => "no rasters: give the loader `rasters`".to_owned(),
                false => format!("{}: use one of these names", names.join(", ")),
            };
            return Err(Error::option(
                "rasters",
                format!("this batch has no raster '{name}', but {has}"),
            ));
        };
        Ok(RasterPixels {
            bytes: &self.host_bytes()?[layout.start..layout.start + layout.len()],
            layout,
        })
    }

    /// Offset of the first mask in the bytes of the batch, shape (rows, height, width) and element
    /// type. None if the images have no masks.
    #[must_use]
    pub fn mask_layout(&self) -> Option<(usize, [usize; 3], MaskType)> {
        let RasterLayout {
            start,
            shape,
            dtype,
        } = self.raster_layout(MASKS)?;
        match (shape.try_into(), dtype) {
            (Ok(shape), RasterType::Labels(dtype)) => Some((start, shape, dtype)),
            _ => None,
        }
    }

    /// The masks of all rows. A masked row, which has no sample, has the number that a mask has
    /// outside of its image ([`MaskRule::fill`](crate::MaskRule)).
    ///
    /// # Errors
    /// A loader without masks; as [`Batch::pixels`].
    pub fn masks(&self) -> Result<MaskPixels<'_>> {
        let Some((start, shape, dtype)) = self.mask_layout() else {
            return Err(Error::option(
                "masks",
                "this batch has no masks: give the loader `masks`",
            ));
        };
        let used = shape.iter().product::<usize>() * dtype.size();
        Ok(MaskPixels {
            bytes: &self.host_bytes()?[start..start + used],
            shape,
            dtype,
        })
    }
}

impl<'a> BatchRow<'a> {
    /// The elements of the row's mask, height x width. None if the images have no masks.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn mask(&self) -> Result<Option<&'a [u8]>> {
        let Some((start, [_, height, width], dtype)) = self.batch().mask_layout() else {
            return Ok(None);
        };
        let len = height * width * dtype.size();
        let bytes = self.batch().host_bytes()?;
        Ok(Some(&bytes[start + self.index() * len..][..len]))
    }
}
