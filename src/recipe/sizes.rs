//! What an operation makes of a picture's size, where that follows from the size
//! alone.

use super::ops::{Resize, ResizeTo, Rounding};

impl Resize {
    /// Height and width of what becomes of a picture of this height and width:
    /// torchvision's sizes, or with `rounding: nearest` PaddleClas'; but for sides
    /// that would be 0.
    pub(crate) fn output(&self, (height, width): (u32, u32)) -> (u32, u32) {
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
