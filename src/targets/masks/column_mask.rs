//! The bits of a mask, column by column.

use super::run_lengths::RunLengths;
use crate::recipe::Size;
use crate::targets::fault::TargetFault;

/// One bit for each pixel, column by column.
#[derive(Debug, Clone)]
pub(super) struct ColumnMask {
    size: Size,
    pixels: u64,
    words: Vec<u64>,
}

/// Changes of a mask between inside and outside, and the words that they are in.
#[derive(Debug)]
pub(super) struct MaskCrossings {
    mask: ColumnMask,
    first: usize,
    /// After the last word.
    end: usize,
}

impl ColumnMask {
    /// No pixel is set.
    pub(super) fn new(size: Size) -> Result<Self, TargetFault> {
        let pixels = RunLengths::pixels_of(size)?;
        Ok(Self {
            size,
            pixels,
            words: vec![0; pixels.div_ceil(64) as usize],
        })
    }

    /// The lengths of the runs.
    pub(super) fn runs(&self) -> RunLengths {
        let mut counts = Vec::new();
        let (mut start, mut is_set) = (0, false);
        while start < self.pixels {
            let end = self.next(start, !is_set).min(self.pixels);
            counts.push((end - start) as u32);
            (start, is_set) = (end, !is_set);
        }
        RunLengths::of_checked(self.size, counts)
    }

    /// The first place from `at` on whose bit is `wanted`, or a place after the last.
    fn next(&self, at: u64, wanted: bool) -> u64 {
        let mut index = (at / 64) as usize;
        let mut skipped = at % 64;
        while let Some(word) = self.words.get(index) {
            let word = if wanted { *word } else { !*word };
            let rest = word >> skipped << skipped;
            if rest != 0 {
                return index as u64 * 64 + u64::from(rest.trailing_zeros());
            }
            (index, skipped) = (index + 1, 0);
        }
        self.pixels
    }
}

impl MaskCrossings {
    pub(super) fn new(size: Size) -> Result<Self, TargetFault> {
        let mask = ColumnMask::new(size)?;
        Ok(Self {
            first: mask.words.len(),
            end: 0,
            mask,
        })
    }

    /// A change at this place. A place after the last pixel changes nothing.
    pub(super) fn toggle(&mut self, at: u64) {
        let word = (at / 64) as usize;
        self.first = self.first.min(word);
        self.end = self.end.max(word + 1);
        if at < self.mask.pixels {
            self.mask.words[word] ^= 1 << (at % 64);
        }
    }

    /// Sets the pixels between changes in `to`, which has the same size. Forgets the changes.
    ///
    /// An outline is closed, so nothing is inside after its last change.
    pub(super) fn fill(&mut self, to: &mut ColumnMask) {
        let mut carry = 0;
        let words = self.mask.words.len();
        for index in self.first..self.end.min(words) {
            let mut parity = std::mem::take(&mut self.mask.words[index]);
            // Each bit becomes the parity of the bits up to it.
            for shift in [1, 2, 4, 8, 16, 32] {
                parity ^= parity << shift;
            }
            parity ^= carry;
            to.words[index] |= parity;
            // All bits equal the last one.
            carry = (parity >> 63).wrapping_neg();
        }
        (self.first, self.end) = (words, 0);
    }
}
