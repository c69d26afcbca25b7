//! Erodes a mask: keeps the positions where a whole patch fits.
//!
//! Used in every process that fills the image store. The window is square, so erosion is separable.
//! It works on whole words, with log2(size) passes over rows and as many over columns.

use super::mask_bits::{MaskBits, MaskView};

/// Returns the top-left corners of all patches of `size` x `size` pixels, `dilation` apart, that
/// lie completely in the mask. The result has the size of the mask.
pub(crate) fn erode(mask: MaskView<'_>, size: u32, dilation: u32) -> MaskBits {
    // Zeros beyond the width: bits shifted in from there are not pixels.
    let mut bits = mask.to_bits();
    let (stride, words) = bits.rows_mut();
    for row in words.chunks_mut(stride.max(1)) {
        doubling_shifts(size, dilation, |by| and_shifted(row, by));
    }
    let rows_at = |by: u64| {
        usize::try_from(by)
            .unwrap_or(usize::MAX)
            .saturating_mul(stride)
    };
    doubling_shifts(size, dilation, |by| and_later_words(words, rows_at(by)));
    bits
}

/// Calls `and` with the shifts that build up a row of `size`. A position with room for 1 pixel has
/// room for 2 if the next position has room too, and so on.
fn doubling_shifts(size: u32, dilation: u32, mut and: impl FnMut(u64)) {
    let mut done = 1;
    while done < size {
        let step = done.min(size - done);
        and(u64::from(step) * u64::from(dilation));
        done += step;
    }
}

/// Ands each bit with the one `by` bits later; beyond the end is 0.
fn and_shifted(row: &mut [u64], by: u64) {
    let words = usize::try_from(by / 64).unwrap_or(usize::MAX);
    let bits = (by % 64) as u32;
    for i in 0..row.len() {
        let at = |i: Option<usize>| i.and_then(|i| row.get(i)).copied().unwrap_or(0);
        let low = at(i.checked_add(words)) >> bits;
        let high = at(i.checked_add(words).and_then(|i| i.checked_add(1)));
        // Shifted in two steps, because a shift by 64 is not defined.
        row[i] &= low | high << 1 << (63 - bits);
    }
}

/// Ands each word with the one `by` words later; beyond the end is 0.
fn and_later_words(words: &mut [u64], by: usize) {
    for i in 0..words.len() {
        let behind = i.checked_add(by).and_then(|i| words.get(i));
        words[i] &= behind.copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::PositionRandom;

    fn erode_by_definition(mask: MaskView<'_>, size: u32, dilation: u32) -> Vec<u8> {
        let (width, height) = mask.size();
        let fits = |row: u32, col: u32| {
            let steps = || (0..size).map(|i| i * dilation);
            steps().all(|y| steps().all(|x| mask.holds(row + y, col + x)))
        };
        (0..height)
            .flat_map(|r| (0..width).map(move |c| (r, c)))
            .map(|(r, c)| u8::from(fits(r, c)))
            .collect()
    }

    #[test]
    fn the_fast_erosion_is_the_brute_one_at_every_width() {
        let mut kept = 0;
        for width in 1..=200u32 {
            let height = 1 + width * 7 % 23;
            // Few holes, so that patches are left.
            let pixels: Vec<u8> = (0..u64::from(width * height))
                .map(|i| PositionRandom::new(4, u64::from(width), i).below(60) as u8)
                .collect();
            let mask = MaskBits::from_pixels(&pixels, width, height).unwrap();
            for (size, dilation) in [(1, 1), (2, 1), (3, 1), (5, 1), (4, 2), (3, 7), (2, 64)] {
                let fast = erode(mask.view(), size, dilation);
                let erode_by_definition = erode_by_definition(mask.view(), size, dilation);
                let erode_by_definition =
                    MaskBits::from_pixels(&erode_by_definition, width, height).unwrap();
                assert_eq!(
                    fast, erode_by_definition,
                    "{width} x {height}, {size} by {dilation}"
                );
                kept += fast.view().count();
            }
        }
        assert!(kept > 500_000, "{kept}");
    }

    #[test]
    fn large_windows_leave_the_corners_that_have_room() {
        let full = MaskBits::from_pixels(&[1; 200 * 130], 200, 130).unwrap();
        for (size, dilation) in [(130, 1), (65, 2), (2, 129), (33, 4), (64, 1), (17, 8)] {
            let far = (size - 1) * dilation;
            let left = u64::from((200 - far) * (130 - far));
            assert_eq!(erode(full.view(), size, dilation).view().count(), left);
        }
        for (size, dilation) in [(131, 1), (2, 130), (u32::MAX, u32::MAX), (2, u32::MAX)] {
            assert_eq!(erode(full.view(), size, dilation).view().count(), 0);
        }
        let none = MaskBits::from_pixels(&[], 0, 3).unwrap();
        assert_eq!(erode(none.view(), 3, 1), none);
    }
}
