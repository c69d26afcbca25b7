//! The instance masks of a batch: one byte for each pixel of each object's mask.
//!
//! In the consumer. Borrows, and copies nothing.

use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::objects::BatchObjects;
#[cfg(doc)]
use crate::jobs::object_rule::ObjectRule;

/// The instance masks of a row.
#[derive(Debug, Clone, Copy)]
pub struct InstanceMaskPixels<'a> {
    bytes: &'a [u8],
    shape: [usize; 3],
}

impl<'a> InstanceMaskPixels<'a> {
    /// A byte for each pixel, 1 inside: mask after mask, row after row.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Objects, height and width.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }
}

impl Batch {
    /// Whether instance masks are in the bytes of the batch, not in memory of their own.
    #[must_use]
    pub fn has_masks_in_place(&self) -> bool {
        let objects = self.objects.as_ref();
        objects.is_some_and(|objects| objects.held_masks().is_none())
    }

    /// Offset of the instance masks of a row in the bytes of the batch, or in memory of their own,
    /// and their shape: objects, height, width. None without masks.
    #[must_use]
    pub fn instance_mask_layout(&self, row: usize) -> Option<(usize, [usize; 3])> {
        let objects = self.objects.as_ref()?;
        let masks = objects.row_masks(row)?;
        let (height, width) = masks.size;
        let shape = [objects.row(row).len(), height as usize, width as usize];
        Some((masks.start, shape))
    }

    /// The instance masks of the objects of a row, in their order. A masked row has none.
    ///
    /// # Errors
    /// A loader without [`ObjectRule::masks`]; as [`Batch::pixels`].
    pub fn instance_masks(&self, row: usize) -> Result<InstanceMaskPixels<'_>> {
        let Some((start, shape)) = self.instance_mask_layout(row) else {
            return Err(Error::option(
                "objects",
                "this batch has no instance masks: set `masks` of the loader's objects",
            ));
        };
        let held = self.objects.as_ref().and_then(BatchObjects::held_masks);
        let bytes = match held {
            Some(held) => held,
            None => self.host_bytes()?,
        };
        Ok(InstanceMaskPixels {
            bytes: &bytes[start..start + shape.iter().product::<usize>()],
            shape,
        })
    }
}
