//! What an operation makes of a picture's size, where that follows from the size
//! alone.

use super::geometry::Rect;
use super::ops::{Anchor, CenterCrop, PadTo, Padding, Resize, ResizeTo, Rounding};

/// Height, width.
type Sides = (u32, u32);

impl Resize {
    /// Height and width of what becomes of a picture of this height and width:
    /// torchvision's sizes, or with `rounding: nearest` PaddleClas'; but for sides
    /// that would be 0.
    pub(crate) fn output(&self, (height, width): Sides) -> Sides {
        let (short, long) = (height.min(width), height.max(width));
        // `b` times the factor that makes `a` of `c`.
        let scaled = |a: u32, b: u32, c: u32| match self.rounding {
            // In whole numbers, as torchvision's int(): a float quotient may fall just
            // below the whole number that it stands for.
            Rounding::Down => {
                let v = u64::from(a) * u64::from(b) / u64::from(c.max(1));
                v.clamp(1, u64::from(u32::MAX)) as u32
            }
            // In floats, the factor first, as there: halves are what that makes of them.
            Rounding::Nearest => {
                let factor = f64::from(a) / f64::from(c.max(1));
                ((f64::from(b) * factor).round_ties_even() as u32).max(1)
            }
        };
        let (new_short, new_long) = match (self.size, self.max_size) {
            (Some(ResizeTo::Exact(size)), _) => return (size.height, size.width),
            (Some(ResizeTo::Shorter(side)), max) => {
                let new_long = scaled(side, long, short);
                match max.filter(|max| new_long > *max) {
                    Some(max) => (scaled(max, side, new_long), max),
                    None => (side, new_long),
                }
            }
            (None, Some(max)) => (scaled(max, short, long), max),
            // Refused by `check`.
            (None, None) => (short, long),
        };
        if height <= width {
            (new_short, new_long)
        } else {
            (new_long, new_short)
        }
    }
}

impl CenterCrop {
    /// Height and width of the part; of a picture that is too small too.
    pub(crate) fn output(&self, (height, width): Sides) -> Sides {
        match (self.size, self.ratio) {
            (Some(size), _) => (size.height, size.width),
            (None, Some(ratio)) => {
                let shorter = height.min(width);
                // The cast cuts.
                let side = ((ratio * f64::from(shorter)) as u32).clamp(1, shorter.max(1));
                (side, side)
            }
            // Refused by `check`.
            (None, None) => (height, width),
        }
    }

    /// The part, of a picture that is large enough.
    pub(crate) fn part(&self, (height, width): Sides) -> Rect {
        let (h, w) = self.output((height, width));
        let middle = |all: u32, some: u32| match self.rounding {
            Rounding::Nearest => (f64::from(all - some) / 2.0).round_ties_even() as u32,
            Rounding::Down => (all - some) / 2,
        };
        Rect {
            top: middle(height, h),
            left: middle(width, w),
            width: w,
            height: h,
        }
    }
}

impl PadTo {
    /// Height and width of the padded picture; of one that is too large too.
    pub(crate) fn output(&self, (height, width): Sides) -> Sides {
        match (self.size, self.multiple_of) {
            (Some(size), _) => (size.height, size.width),
            (None, Some(of)) => {
                let next =
                    |side: u32, of: u32| side.checked_next_multiple_of(of).unwrap_or(u32::MAX);
                (next(height, of.height), next(width, of.width))
            }
            // Refused by `check`.
            (None, None) => (height, width),
        }
    }

    /// What is added around a picture of this height and width. None: there is no
    /// room for it.
    pub(crate) fn padding(&self, (height, width): Sides) -> Option<Padding> {
        let (h, w) = self.output((height, width));
        let (y, x) = (h.checked_sub(height)?, w.checked_sub(width)?);
        let (left, top) = match (self.offset, self.anchor) {
            _ if (x, y) == (0, 0) => (0, 0),
            (Some([left, top]), _) => (left, top),
            (None, Anchor::TopLeft) => (0, 0),
            (None, Anchor::Center) => (x / 2, y / 2),
            (None, Anchor::BottomRight) => (x, y),
        };
        Some(Padding {
            left,
            top,
            right: x.checked_sub(left)?,
            bottom: y.checked_sub(top)?,
        })
    }
}
