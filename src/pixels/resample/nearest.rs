//! Nearest neighbour: output pixels are copies of input pixels. The same code serves bytes and
//! floats. It has no SIMD path, because memory limits its speed.

use crate::pixels::pixel_view::RgbPixel;

/// The input pixels that one axis uses.
#[derive(Debug, Clone, Copy)]
pub(super) enum NearestPixels<'a> {
    /// First pixel and count of consecutive pixels.
    From(usize, usize),
    /// The index of each pixel, in ascending order.
    Each(&'a [u32]),
}

impl NearestPixels<'_> {
    fn len(&self) -> usize {
        match *self {
            Self::From(_, count) => count,
            Self::Each(all) => all.len(),
        }
    }

    /// Input pixel of output pixel `o`.
    pub(super) fn at(&self, o: usize) -> usize {
        match *self {
            Self::From(first, _) => first + o,
            Self::Each(all) => all[o] as usize,
        }
    }

    /// Copies one row.
    pub(super) fn across<T: Copy>(&self, row: &[RgbPixel<T>], out: &mut [RgbPixel<T>]) {
        match *self {
            Self::From(first, count) => out.copy_from_slice(&row[first..first + count]),
            Self::Each(all) => {
                for (out, &from) in out.iter_mut().zip(all) {
                    *out = row[from as usize];
                }
            }
        }
    }

    /// Copies all rows that `down` uses. `row` returns each from its first column on.
    pub(super) fn rows_by<'s, T: Copy + 's>(
        &self,
        down: NearestPixels<'_>,
        row: impl Fn(usize) -> &'s [RgbPixel<T>],
        out: &mut [RgbPixel<T>],
    ) {
        let width = self.len();
        for o in 0..down.len() {
            let at = o * width;
            if o > 0 && down.at(o) == down.at(o - 1) {
                out.copy_within(at - width..at, at);
            } else {
                self.across(row(down.at(o)), &mut out[at..at + width]);
            }
        }
    }
}
