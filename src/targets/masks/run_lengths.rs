//! Masks as lengths of runs, column by column.

use super::run_text;
use crate::recipe::Size;
use crate::targets::fault::TargetFault;

/// A mask as lengths of runs, column by column. Runs alternate between 0 and 1 and begin with 0:
/// COCO's run-length encoding.
///
/// Lengths add up to the pixels of the mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLengths {
    size: Size,
    counts: Vec<u32>,
}

/// Pixels of the largest mask.
pub const MAX_MASK_PIXELS: u64 = 1 << 31;

impl RunLengths {
    /// The pixels of a mask of this size.
    pub(super) fn pixels_of(size: Size) -> Result<u64, TargetFault> {
        let pixels = u64::from(size.height) * u64::from(size.width);
        if pixels == 0 || pixels > MAX_MASK_PIXELS {
            let reason = format!("is {size}: a mask has 1 to {MAX_MASK_PIXELS} pixels");
            return Err(TargetFault::new("size", reason));
        }
        Ok(pixels)
    }

    /// Lengths that are known to add up to the pixels.
    pub(super) fn of_checked(size: Size, counts: Vec<u32>) -> Self {
        Self { size, counts }
    }

    /// The mask with these lengths of runs: COCO's uncompressed form.
    ///
    /// # Errors
    /// If the lengths do not add up to height times width.
    pub fn new(size: Size, counts: Vec<u32>) -> Result<Self, TargetFault> {
        let pixels = Self::pixels_of(size)?;
        let sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if sum != pixels {
            let reason = format!("add up to {sum}, and a mask of {size} has {pixels} pixels");
            return Err(TargetFault::new("counts", reason));
        }
        Ok(Self { size, counts })
    }

    /// The mask of COCO's compressed text.
    ///
    /// # Errors
    /// If the text is cut or damaged, or if its lengths do not add up to height times width.
    pub fn from_text(size: Size, text: &[u8]) -> Result<Self, TargetFault> {
        let pixels = Self::pixels_of(size)?;
        let counts = run_text::read(text, pixels)?;
        Self::new(size, counts)
    }

    /// COCO's compressed text.
    #[must_use]
    pub fn to_text(&self) -> String {
        run_text::write(&self.counts)
    }

    /// The mask of pixels in rows. Each byte other than 0 is inside.
    ///
    /// # Errors
    /// If the number of bytes is not height times width.
    pub fn encode(size: Size, rows: &[u8]) -> Result<Self, TargetFault> {
        let pixels = Self::pixels_of(size)?;
        if rows.len() as u64 != pixels {
            let reason = format!("has {} bytes, and {size} has {pixels} pixels", rows.len());
            return Err(TargetFault::new("mask", reason));
        }
        let (width, height) = (size.width as usize, size.height as usize);
        let mut counts = Vec::new();
        let (mut length, mut is_inside) = (0, false);
        for column in 0..width {
            for row in 0..height {
                if (rows[row * width + column] != 0) != is_inside {
                    counts.push(length);
                    (length, is_inside) = (0, !is_inside);
                }
                length += 1;
            }
        }
        counts.push(length);
        Ok(Self { size, counts })
    }

    /// Writes the mask in rows: 1 inside and 0 outside.
    ///
    /// # Errors
    /// If the number of bytes is not height times width.
    pub fn decode(&self, rows: &mut [u8]) -> Result<(), TargetFault> {
        let pixels = u64::from(self.size.height) * u64::from(self.size.width);
        if rows.len() as u64 != pixels {
            let reason = format!(
                "has {} bytes, and {} has {pixels} pixels",
                rows.len(),
                self.size
            );
            return Err(TargetFault::new("mask", reason));
        }
        rows.fill(0);
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let mut start = 0;
        for (i, count) in self.counts.iter().enumerate() {
            let end = start + *count as usize;
            if i % 2 == 1 {
                for at in start..end {
                    rows[at % height * width + at / height] = 1;
                }
            }
            start = end;
        }
        Ok(())
    }

    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Lengths of the runs: outside, inside, outside...
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Pixels inside.
    #[must_use]
    pub fn area(&self) -> u64 {
        let inside = self.counts.iter().skip(1).step_by(2);
        inside.map(|count| u64::from(*count)).sum()
    }

    /// Left, top, width and height of the pixels inside. All 0 if there are none.
    #[must_use]
    pub fn bounds(&self) -> [u32; 4] {
        let height = u64::from(self.size.height);
        let (mut left, mut top, mut right, mut bottom) = (u64::MAX, u64::MAX, 0, 0);
        let mut start = 0;
        for (i, count) in self.counts.iter().enumerate() {
            let end = start + u64::from(*count);
            if i % 2 == 1 && end > start {
                let (first, last) = (start / height, (end - 1) / height);
                let (mut low, mut high) = (start % height, (end - 1) % height);
                if first < last {
                    (low, high) = (0, height - 1);
                }
                (left, right) = (left.min(first), right.max(last + 1));
                (top, bottom) = (top.min(low), bottom.max(high + 1));
            }
            start = end;
        }
        match right {
            0 => [0; 4],
            _ => [left, top, right - left, bottom - top].map(|v| v as u32),
        }
    }
}
