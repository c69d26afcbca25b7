//! Masks as bits, one bit a pixel. Counts and selects pixels without unpacking.
//!
//! Used in every process. A row is a whole number of 64-bit words. The pixel of column c is bit c %
//! 64 of word c / 64. Bits beyond the width are ignored. Not here: what masks are used for.

use std::ops::Range;

/// Number of words of a mask of this size.
pub(crate) fn mask_words(width: u32, height: u32) -> u64 {
    u64::from(width.div_ceil(64)) * u64::from(height)
}

/// A mask that owns its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaskBits {
    words: Vec<u64>,
    width: u32,
    height: u32,
}

/// A mask that borrows its words, for example from shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskView<'a> {
    words: &'a [u64],
    width: u32,
    height: u32,
}

impl MaskBits {
    /// Converts one byte a pixel, row by row: 0 is outside the mask, any other value is inside.
    /// `None` if the number of pixels is not width x height.
    pub(crate) fn from_pixels(pixels: &[u8], width: u32, height: u32) -> Option<Self> {
        if pixels.len() as u64 != u64::from(width) * u64::from(height) {
            return None;
        }
        let mut words = Vec::with_capacity(usize::try_from(mask_words(width, height)).ok()?);
        // A width of 0 has no rows to split.
        for row in pixels.chunks(width.max(1) as usize) {
            words.extend(row.chunks(64).map(packed));
        }
        Some(Self {
            words,
            width,
            height,
        })
    }

    /// Borrows the same words.
    pub(crate) fn view(&self) -> MaskView<'_> {
        MaskView {
            words: &self.words,
            width: self.width,
            height: self.height,
        }
    }

    /// The words, row by row; [`mask_words`] states their number.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words for writing, row by row, and the number of words of a row.
    pub(super) fn rows_mut(&mut self) -> (usize, &mut [u64]) {
        (self.width.div_ceil(64) as usize, &mut self.words)
    }
}

impl<'a> MaskView<'a> {
    /// Uses these words as a mask. `None` if their number is not [`mask_words`].
    pub(crate) fn new(words: &'a [u64], width: u32, height: u32) -> Option<Self> {
        (words.len() as u64 == mask_words(width, height)).then_some(Self {
            words,
            width,
            height,
        })
    }

    /// Width and height.
    pub(crate) fn size(self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Whether a pixel is in the mask; false outside the image.
    pub(crate) fn holds(self, row: u32, col: u32) -> bool {
        self.count_in(row, col..col.saturating_add(1)) == 1
    }

    /// Writes 1 for each pixel in the mask and 0 for the others, row by row.
    pub(crate) fn unpack(self, out: &mut [u8]) {
        let words = self.width.div_ceil(64).max(1) as usize;
        let rows = out.chunks_exact_mut(self.width.max(1) as usize);
        for (row, words) in rows.zip(self.words.chunks_exact(words)) {
            for (pixels, word) in row.chunks_mut(64).zip(words) {
                for (bit, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = (word >> bit & 1) as u8;
                }
            }
        }
    }

    /// Number of pixels in the mask.
    #[cfg(test)]
    pub(crate) fn count(self) -> u64 {
        (0..self.height).map(|r| u64::from(self.count_row(r))).sum()
    }

    /// Number of pixels in the mask in one row.
    #[cfg(test)]
    pub(crate) fn count_row(self, row: u32) -> u32 {
        self.count_in(row, 0..self.width)
    }

    /// Number of pixels in the mask in some columns of one row.
    pub(crate) fn count_in(self, row: u32, cols: Range<u32>) -> u32 {
        self.words_in(row, cols).map(|(_, w)| w.count_ones()).sum()
    }

    /// Column of pixel `n` (from 0) of the mask in one row. `None` if the row has too few.
    #[cfg(test)]
    pub(crate) fn select(self, row: u32, n: u32) -> Option<u32> {
        self.select_in(row, 0..self.width, n)
    }

    /// Like `select`, for some columns of the row only.
    pub(crate) fn select_in(self, row: u32, cols: Range<u32>, mut n: u32) -> Option<u32> {
        let end = cols.end.min(self.width);
        let words = self.words_of(row, cols.start, end);
        // The first word also has bits before the columns: count them and skip them.
        let front = words
            .first()
            .map(|word| word & !(u64::MAX << (cols.start % 64)));
        n = n.checked_add(front.unwrap_or(0).count_ones())?;
        // Eight words at a time, which compilers count in parallel, then one by one.
        let mut passed = 0;
        for eight in words.as_chunks::<8>().0 {
            let here = eight.iter().map(|word| word.count_ones()).sum();
            if n < here {
                break;
            }
            n -= here;
            passed += 8;
        }
        for (number, word) in words.iter().enumerate().skip(passed) {
            let here = word.count_ones();
            if n < here {
                let col = (cols.start / 64 + number as u32) * 64 + select_in_word(*word, n);
                return Some(col).filter(|col| *col < end);
            }
            n -= here;
        }
        None
    }

    /// The pixels that are in both masks. `None` if their sizes differ.
    #[cfg(test)]
    pub(crate) fn and(self, other: MaskView<'_>) -> Option<MaskBits> {
        if self.size() != other.size() {
            return None;
        }
        let mut both = self.to_bits();
        for (word, other) in both.words.iter_mut().zip(other.words) {
            *word &= other;
        }
        Some(both)
    }

    /// Copies the mask, with zeros beyond the width.
    pub(crate) fn to_bits(self) -> MaskBits {
        let rows = (0..self.height).flat_map(|row| self.words_in(row, 0..self.width));
        MaskBits {
            words: rows.map(|(_, word)| word).collect(),
            width: self.width,
            height: self.height,
        }
    }

    /// The words that contain these columns of a row; empty if there are none.
    fn words_of(self, row: u32, start: u32, end: u32) -> &'a [u64] {
        if row >= self.height || start >= end || end > self.width {
            return &[];
        }
        let at = row as usize * self.width.div_ceil(64) as usize;
        let (first, behind) = ((start / 64) as usize, end.div_ceil(64) as usize);
        self.words.get(at + first..at + behind).unwrap_or_default()
    }

    /// The words of these columns of a row, each with the column of its lowest bit. Bits of other
    /// columns are cleared.
    fn words_in(self, row: u32, cols: Range<u32>) -> impl Iterator<Item = (u32, u64)> + 'a {
        let end = cols.end.min(self.width);
        let start = cols.start.min(end);
        let words = self.words_of(row, start, end);
        let bits = (u64::from(start), u64::from(end));
        let numbered = (bits.0 / 64..).zip(words);
        numbered.map(move |(number, word)| {
            let at = number * 64;
            let below = bits.0.saturating_sub(at);
            let behind = (at + 64).saturating_sub(bits.1);
            (at as u32, word & u64::MAX << below & u64::MAX >> behind)
        })
    }
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Packs up to 64 pixels into bits. The first pixel is the lowest bit.
fn packed(pixels: &[u8]) -> u64 {
    let (eights, rest) = pixels.as_chunks::<8>();
    let mut word = 0;
    for (i, eight) in eights.iter().enumerate() {
        let bytes = u64::from_le_bytes(*eight);
        // Sets the highest bit of each nonzero byte, then moves these eight bits together: the
        // product adds 2^(8i) x 2^(56 - 7i) = 2^(56 + i), and no two sums overlap.
        let set = (((bytes & !HIGH) + !HIGH) | bytes) & HIGH;
        word |= ((set >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    for (i, pixel) in rest.iter().enumerate() {
        word |= u64::from(*pixel != 0) << (8 * eights.len() + i);
    }
    word
}

/// Position of set bit `n` (from 0) of a word with more than `n` set bits.
///
/// Broadword, after Vigna, "Broadword implementation of rank/select queries" (WEA 2008). One
/// product adds up the bits of the bytes. One comparison of all eight finds the byte. In the byte
/// the lower bits are cleared one by one.
fn select_in_word(word: u64, n: u32) -> u32 {
    let mut sums = word - (word >> 1 & 0x5555_5555_5555_5555);
    sums = (sums & 0x3333_3333_3333_3333) + (sums >> 2 & 0x3333_3333_3333_3333);
    sums = ((sums + (sums >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(LOW);
    // Byte i of the sums counts the bits of bytes 0 to i, at most 64. Its highest bit stays in the
    // difference if the sum is at most n: then bit n is in a later byte.
    let passed = (u64::from(n).wrapping_mul(LOW) | HIGH).wrapping_sub(sums) & HIGH;
    let byte = (passed >> 7).wrapping_mul(LOW) >> 56;
    let shift = 8 * byte as u32;
    let before = (sums << 8 >> shift) as u8;
    let mut left = word >> shift;
    for _ in u32::from(before)..n {
        left &= left - 1;
    }
    shift + left.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PositionRandom;

    /// Random words, from sparse to dense.
    fn random_words(n: u64) -> Vec<u64> {
        let word = |i| {
            let mut random = PositionRandom::new(3, 1, i);
            let mut next = || random.below(1 << 32) << 32 | random.below(1 << 32);
            match i % 5 {
                0 => next(),
                1 => next() & next() & next(),
                2 => next() | next() | next(),
                3 => 1 << (next() % 64),
                _ => u64::MAX >> (next() % 64),
            }
        };
        (0..n).map(word).collect()
    }

    #[test]
    fn selecting_in_a_word_is_what_looking_at_each_bit_gives() {
        for word in random_words(2000).into_iter().chain([u64::MAX, 1, 1 << 63]) {
            let set = (0..64u32).filter(|bit| word >> bit & 1 == 1);
            for (n, bit) in set.enumerate() {
                assert_eq!(select_in_word(word, n as u32), bit, "{word:x} {n}");
            }
        }
    }

    #[test]
    fn counts_and_selections_are_those_of_the_pixels_at_every_width() {
        for width in (1u32..=200).chain([255, 256, 257, 1920]) {
            let height = 3;
            let pixels: Vec<u8> = (0..u64::from(width * height))
                .map(|i| PositionRandom::new(9, u64::from(width), i).below(3) as u8 * 90)
                .collect();
            let mask = MaskBits::from_pixels(&pixels, width, height).unwrap();
            assert_eq!(mask.words().len() as u64, mask_words(width, height));
            // Bits beyond the width do not count.
            let mut dirty = mask.words().to_vec();
            if width % 64 != 0 {
                for row in dirty.chunks_mut(width.div_ceil(64) as usize) {
                    *row.last_mut().unwrap() |= u64::MAX << (width % 64);
                }
            }
            let dirty = MaskView::new(&dirty, width, height).unwrap();
            assert_eq!(dirty.to_bits(), mask);
            for view in [mask.view(), dirty] {
                let inside = |r: u32, c: u32| pixels[(r * width + c) as usize] != 0;
                let all = pixels.iter().filter(|p| **p != 0).count() as u64;
                assert_eq!(view.count(), all);
                for r in 0..height {
                    let turned = Range { start: 5, end: 4 };
                    let part = width / 3..width - width / 4;
                    for range in [0..width, 0..u32::MAX, part, turned] {
                        let set: Vec<u32> = (range.start..range.end.min(width))
                            .filter(|&c| inside(r, c))
                            .collect();
                        assert_eq!(view.count_in(r, range.clone()) as usize, set.len());
                        for (n, col) in (0..).zip(&set) {
                            assert_eq!(view.select_in(r, range.clone(), n), Some(*col));
                        }
                        assert_eq!(view.select_in(r, range, set.len() as u32), None);
                    }
                    assert!((0..width).all(|c| view.holds(r, c) == inside(r, c)));
                    assert!(!view.holds(r, width) && !view.holds(r, u32::MAX));
                }
                assert_eq!(view.count_row(height), 0);
                let mut unpacked = vec![9; pixels.len()];
                view.unpack(&mut unpacked);
                assert!((unpacked.iter().zip(&pixels)).all(|(u, p)| *u == u8::from(*p != 0)));
                assert_eq!(view.select(u32::MAX, 0), None);
            }
        }
    }

    #[test]
    fn both_masks_at_once() {
        let a = MaskBits::from_pixels(&[1, 1, 0, 0, 1, 0], 3, 2).unwrap();
        let b = MaskBits::from_pixels(&[1, 0, 255, 0, 7, 1], 3, 2).unwrap();
        let both = a.view().and(b.view()).unwrap();
        assert_eq!(
            both,
            MaskBits::from_pixels(&[1, 0, 0, 0, 1, 0], 3, 2).unwrap()
        );
        let turned = MaskBits::from_pixels(&[1; 6], 2, 3).unwrap();
        assert!(a.view().and(turned.view()).is_none());
    }

    #[test]
    fn what_has_another_size_is_no_mask() {
        assert!(MaskBits::from_pixels(&[1; 5], 3, 2).is_none());
        assert!(MaskView::new(&[0; 3], 65, 2).is_none());
        assert!(MaskView::new(&[0; 4], 65, 2).is_some());
        assert!(MaskView::new(&[], u32::MAX, u32::MAX).is_none());
        let none = MaskBits::from_pixels(&[], 0, 7).unwrap();
        assert_eq!((none.view().count(), none.view().select(0, 0)), (0, None));
    }
}
