//! Nearest neighbour: output pixels are input pixels, so nothing is weighed.
//! One form for bytes and floats, without a path for an instruction set: it is
//! bound by memory.

use crate::pixels::pixel_view::RgbPixel;

/// The input pixels that one axis takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum NearestPixels<'a> {
    /// So many, one after the other from the first.
    From(usize, usize),
    /// These, none before the one in front of it.
    Each(&'a [u32]),
}

impl NearestPixels<'_> {
    fn len(&self) -> usize {
        match *self {
            Self::From(_, count) => count,
            Self::Each(all) => all.len(),
        }
    }

    /// What output pixel `o` is.
    pub(super) fn at(&self, o: usize) -> usize {
        match *self {
            Self::From(first, _) => first + o,
            Self::Each(all) => all[o] as usize,
        }
    }

    /// One row.
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

    /// All rows that `down` takes, each from its first column on as `row` gives it.
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
