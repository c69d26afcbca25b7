//! Several crops of each sample in a batch: their tensors and geometries.
//!
//! In the consumer. Borrows, and copies no pixels.

use crate::decode_plan::CropGeometry;
use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchRow, RowsExtent};
use crate::jobs::images::crop_extents::{CropExtent, CropExtents};
use crate::jobs::images::pixel_views::DensePixels;

impl Batch {
    /// Number of crops of each sample. None if the recipe has no
    /// [`crops`](crate::Recipe::crops): a sample is one row of [`Batch::pixels`].
    #[must_use]
    pub fn crop_count(&self) -> Option<usize> {
        match &self.extent {
            RowsExtent::Crops(extents) => Some(extents.crops.len()),
            RowsExtent::Equal { .. }
            | RowsExtent::Own { .. }
            | RowsExtent::Patches(_)
            | RowsExtent::NoPixels => None,
        }
    }

    fn crop_extent(&self, crop: usize) -> Result<(&CropExtents, &CropExtent)> {
        let RowsExtent::Crops(extents) = &self.extent else {
            return Err(Error::config(
                "the samples of this batch have one image each: use Batch::pixels",
            ));
        };
        match extents.crops.get(crop) {
            Some(extent) => Ok((extents, extent)),
            None => Err(Error::config(format!(
                "crop {crop} does not exist: the samples of this batch have {} crops",
                extents.crops.len()
            ))),
        }
    }

    /// Length of each axis of a crop, in the order of [`Batch::layout`]. Also for a batch on a
    /// device.
    ///
    /// # Errors
    /// The samples have no such crop.
    pub fn crop_shape(&self, crop: usize) -> Result<[usize; 4]> {
        let (extents, extent) = self.crop_extent(crop)?;
        let (height, width) = (extent.height, extent.width);
        let [a, b, c] = self.layout.row_shape(self.channels, height, width);
        Ok([extents.rows, a, b, c])
    }

    /// Offset of a crop's first row in the bytes of the batch, on the host or on a device.
    ///
    /// # Errors
    /// The samples have no such crop.
    pub fn crop_offset(&self, crop: usize) -> Result<usize> {
        self.crop_extent(crop).map(|(_, extent)| extent.start)
    }

    /// One crop of all rows, as one tensor. Crops are in the order of the recipe. Those with the
    /// same size that are neighbours in the recipe follow each other without a gap.
    ///
    /// # Errors
    /// The samples have no such crop; as [`Batch::pixels`].
    pub fn crop(&self, crop: usize) -> Result<DensePixels<'_>> {
        let shape = self.crop_shape(crop)?;
        let start = self.crop_offset(crop)?;
        let used = shape.iter().product::<usize>() * self.dtype.size();
        Ok(DensePixels {
            bytes: &self.host_bytes()?[start..start + used],
            shape,
            dtype: self.dtype,
            layout: self.layout,
        })
    }

    /// Where a crop of each row lies in its image.
    ///
    /// # Errors
    /// The samples have no such crop.
    pub fn geometry(&self, crop: usize) -> Result<&[CropGeometry]> {
        let (_, extent) = self.crop_extent(crop)?;
        Ok(&extent.geometry)
    }
}

impl<'a> BatchRow<'a> {
    /// The bytes of the row: one slice, or one for each of its crops. None in a run without images.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn parts(&self) -> Result<Vec<&'a [u8]>> {
        if !self.batch().has_pixels() {
            return Ok(Vec::new());
        }
        let Some(crops) = self.batch().crop_count() else {
            return Ok(vec![self.bytes()?]);
        };
        (0..crops).map(|crop| self.crop(crop)).collect()
    }

    /// The bytes of one crop of the row.
    ///
    /// # Errors
    /// As [`Batch::crop`].
    pub fn crop(&self, crop: usize) -> Result<&'a [u8]> {
        let pixels = self.batch().crop(crop)?;
        let [_, a, b, c] = pixels.shape();
        let len = a * b * c * pixels.dtype().size();
        Ok(&pixels.bytes()[self.index() * len..][..len])
    }
}
