//! A mask as bits within a rectangle of a picture: for masks that are moved, covered and united.

use crate::recipe::PixelRect;

/// The pixels of an object. All of them lie in a rectangle, which has a bit for each of its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BitMask {
    rect: PixelRect,
    /// Row after row, without gaps.
    words: Vec<u64>,
}

const EMPTY: PixelRect = PixelRect {
    left: 0,
    top: 0,
    width: 0,
    height: 0,
};

impl Default for BitMask {
    /// No pixel.
    fn default() -> Self {
        Self::within(EMPTY)
    }
}

impl BitMask {
    /// No pixel, with room for those of this rectangle.
    pub(crate) fn within(rect: PixelRect) -> Self {
        let bits = u64::from(rect.width) * u64::from(rect.height);
        Self {
            rect,
            words: vec![0; bits.div_ceil(64) as usize],
        }
    }

    /// Most bytes of a mask in a picture of this height and width.
    pub(crate) fn most_bytes((height, width): (u32, u32)) -> u64 {
        let words = (u64::from(height) * u64::from(width)).div_ceil(64);
        8 * words + size_of::<Self>() as u64
    }

    /// The bit of a pixel. None outside of the rectangle.
    fn bit(&self, x: u32, y: u32) -> Option<usize> {
        let rect = self.rect;
        let column = x.checked_sub(rect.left).filter(|x| *x < rect.width)?;
        let row = y.checked_sub(rect.top).filter(|y| *y < rect.height)?;
        Some(row as usize * rect.width as usize + column as usize)
    }

    /// Adds a pixel. One outside of the rectangle is not added.
    pub(crate) fn insert(&mut self, x: u32, y: u32) {
        if let Some(bit) = self.bit(x, y) {
            self.words[bit / 64] |= 1 << (bit % 64);
        }
    }

    pub(crate) fn contains(&self, x: u32, y: u32) -> bool {
        let bit = self.bit(x, y);
        bit.is_some_and(|bit| self.words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// The pixels: x and y, row after row.
    pub(crate) fn pixels(&self) -> impl Iterator<Item = (u32, u32)> {
        let rect = self.rect;
        let words = (0u64..).zip(&self.words);
        words.flat_map(move |(number, word)| {
            bits_of(*word).map(move |bit| place(rect, 64 * number + u64::from(bit)))
        })
    }

    /// The number of pixels.
    pub(crate) fn area(&self) -> u64 {
        let ones = self.words.iter().map(|word| u64::from(word.count_ones()));
        ones.sum()
    }

    /// The smallest rectangle with all pixels. None without any.
    pub(crate) fn bounds(&self) -> Option<PixelRect> {
        let mut all: Option<[u32; 4]> = None;
        for (x, y) in self.pixels() {
            let [left, top, right, bottom] = all.unwrap_or([x, y, x, y]);
            all = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
        }
        all.map(|[left, top, right, bottom]| PixelRect {
            left,
            top,
            width: right - left + 1,
            height: bottom - top + 1,
        })
    }

    /// The same pixels, moved right and down by this many. Those outside of `rect` are left out.
    pub(crate) fn shifted(&self, [x, y]: [i64; 2], rect: PixelRect) -> Self {
        let along = |at: u32, length: u32, by: i64, low: u32, size: u32| {
            let (low, high) = (i64::from(low), i64::from(low) + i64::from(size));
            let from = (i64::from(at) + by).clamp(low, high);
            let to = (i64::from(at) + i64::from(length) + by).clamp(from, high);
            (from as u32, (to - from) as u32)
        };
        let own = self.rect;
        let (left, width) = along(own.left, own.width, x, rect.left, rect.width);
        let (top, height) = along(own.top, own.height, y, rect.top, rect.height);
        let mut moved = Self::within(PixelRect {
            left,
            top,
            width,
            height,
        });
        for (column, row) in self.pixels() {
            let (column, row) = (i64::from(column) + x, i64::from(row) + y);
            if let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) {
                moved.insert(column, row);
            }
        }
        moved
    }

    /// Adds the pixels of another mask that lie in the rectangle.
    pub(crate) fn unite(&mut self, other: &Self) {
        other.pixels().for_each(|(x, y)| self.insert(x, y));
    }

    /// Removes pixels. Returns how many were there.
    pub(crate) fn remove(&mut self, is_removed: impl Fn(u32, u32) -> bool) -> u64 {
        let rect = self.rect;
        let mut removed = 0;
        for (number, word) in (0u64..).zip(&mut self.words) {
            for bit in bits_of(*word) {
                let (x, y) = place(rect, 64 * number + u64::from(bit));
                if is_removed(x, y) {
                    *word &= !(1 << bit);
                    removed += 1;
                }
            }
        }
        removed
    }
}

/// The numbers of the bits that are set.
fn bits_of(word: u64) -> impl Iterator<Item = u32> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some(bit)
    })
}

/// The pixel of a bit.
fn place(rect: PixelRect, bit: u64) -> (u32, u32) {
    let width = u64::from(rect.width);
    let (column, row) = (bit % width, bit / width);
    (rect.left + column as u32, rect.top + row as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect(left: u32, top: u32, width: u32, height: u32) -> PixelRect {
        PixelRect {
            left,
            top,
            width,
            height,
        }
    }

    /// Pixels by a rule that fills no whole word.
    fn some(within: PixelRect) -> BitMask {
        let mut mask = BitMask::within(within);
        for y in 0..40 {
            for x in (0..40).filter(|x| (3 * x + y) % 5 < 2) {
                mask.insert(x, y);
            }
        }
        mask
    }

    #[test]
    fn pixels_are_those_of_the_rectangle() {
        let within = rect(3, 5, 13, 11);
        let mask = some(within);
        let want: Vec<_> = (5..16)
            .flat_map(|y| (3..16).map(move |x| (x, y)))
            .filter(|(x, y)| (3 * x + y) % 5 < 2)
            .collect();
        assert_eq!(mask.pixels().collect::<Vec<_>>(), want);
        assert_eq!(mask.area(), want.len() as u64);
        for y in 0..40 {
            for x in 0..40 {
                assert_eq!(mask.contains(x, y), want.contains(&(x, y)));
            }
        }
        assert_eq!(BitMask::default().bounds(), None);
        let mut two = BitMask::within(rect(0, 0, 30, 30));
        two.insert(7, 20);
        two.insert(11, 4);
        assert_eq!(two.bounds(), Some(rect(7, 4, 5, 17)));
        let bytes = 8 * two.words.len() + size_of::<BitMask>();
        assert_eq!(BitMask::most_bytes((30, 30)), bytes as u64);
    }

    #[test]
    fn masks_are_shifted_and_cut() {
        let mask = some(rect(3, 5, 13, 11));
        for (x, y) in [(0, 0), (-9, 4), (20, -14), (-100, 100), (1 << 40, 0)] {
            let inside = rect(2, 1, 20, 9);
            let got = mask.shifted([x, y], inside);
            let shifted = mask.pixels().filter_map(|(column, row)| {
                let (column, row) = (i64::from(column) + x, i64::from(row) + y);
                let is_inside = (2..22).contains(&column) && (1..10).contains(&row);
                is_inside.then_some((column as u32, row as u32))
            });
            let want: Vec<_> = shifted.collect();
            assert_eq!(got.pixels().collect::<Vec<_>>(), want, "{x}, {y}");
        }
    }

    #[test]
    fn pixels_are_removed_and_united() {
        let (mut own, other) = (some(rect(3, 5, 13, 11)), some(rect(8, 0, 30, 9)));
        let (before, area) = (own.clone(), own.area());
        let common = before.pixels().filter(|(x, y)| other.contains(*x, *y));
        let common: Vec<_> = common.collect();
        assert!(common.len() > 5);
        assert_eq!(own.remove(|x, y| other.contains(x, y)), common.len() as u64);
        assert_eq!(own.area(), area - common.len() as u64);
        assert!(own.pixels().all(|(x, y)| !other.contains(x, y)));
        own.unite(&other);
        assert!(before == own, "of the other, those in the rectangle");
    }
}
