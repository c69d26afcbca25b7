//! The masks of a batch: one number for each pixel of a row.
//!
//! In the consumer. Borrows, and copies nothing.

use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchRow, RowsExtent};
use crate::jobs::images::mask_extent::BatchMasks;
use crate::jobs::mask_rule::MaskType;

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

impl Batch {
    fn mask_part(&self) -> Option<(BatchMasks, [usize; 3])> {
        match self.extent {
            RowsExtent::Equal {
                rows,
                height,
                width,
            } => Some((self.masks?, [rows, height, width])),
            RowsExtent::Own { .. } | RowsExtent::Crops(_) => None,
        }
    }

    /// The end of the last mask in the bytes of the batch.
    pub(crate) fn masks_end(&self) -> Option<usize> {
        let (masks, shape) = self.mask_part()?;
        Some(masks.start + shape.iter().product::<usize>() * masks.dtype.size())
    }

    /// Offset of the first mask in the bytes of the batch, shape (rows, height, width) and element
    /// type. None if the images have no masks.
    #[must_use]
    pub fn mask_layout(&self) -> Option<(usize, [usize; 3], MaskType)> {
        let (masks, shape) = self.mask_part()?;
        Some((masks.start, shape, masks.dtype))
    }

    /// The masks of all rows. A masked row, which has no sample, has the number that a mask has
    /// outside of its image ([`MaskRule::fill`](crate::MaskRule)).
    ///
    /// # Errors
    /// A loader without masks; as [`Batch::pixels`].
    pub fn masks(&self) -> Result<MaskPixels<'_>> {
        let Some((masks, shape)) = self.mask_part() else {
            return Err(Error::option(
                "masks",
                "this batch has no masks: give the loader `masks`",
            ));
        };
        let used = shape.iter().product::<usize>() * masks.dtype.size();
        Ok(MaskPixels {
            bytes: &self.host_bytes()?[masks.start..masks.start + used],
            shape,
            dtype: masks.dtype,
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
