//! A part of an image that is used as the whole image.
//!
//! Pure. The same in every process.

use std::fmt;

use crate::error::{FaultKind, SampleFault};

/// The part of an image that is used as the whole image, in whole pixels of the oriented image. x
/// runs to the right and y down. Right and bottom are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PixelBox {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

impl PixelBox {
    /// Whether it has no pixels.
    pub(crate) fn is_empty(self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    /// The part of the box inside an image of this height and width.
    ///
    /// # Errors
    /// That part is empty.
    pub(crate) fn within(self, (height, width): (u32, u32)) -> Result<Self, SampleFault> {
        let part = Self {
            right: self.right.min(width),
            bottom: self.bottom.min(height),
            ..self
        };
        match part.is_empty() {
            false => Ok(part),
            true => Err(FaultKind::TooSmall.fault(format!(
                "its box {self} (x0 y0 x1 y1) lies outside of the picture, which is {width} \
                     x {height}"
            ))),
        }
    }

    /// Height and width of a box that is not empty.
    pub(crate) fn size(self) -> (u32, u32) {
        (self.bottom - self.top, self.right - self.left)
    }
}

/// The order of a box file: x0, y0, x1, y1.
impl fmt::Display for PixelBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            left,
            top,
            right,
            bottom,
        } = self;
        write!(f, "{left} {top} {right} {bottom}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_cut_to_its_picture() {
        let of = |[left, top, right, bottom]: [u32; 4]| PixelBox {
            left,
            top,
            right,
            bottom,
        };
        let cut = |numbers| of(numbers).within((30, 40));
        assert_eq!(cut([1, 2, 4, 6]).unwrap().size(), (4, 3));
        assert_eq!(cut([0, 0, 40, 30]).unwrap(), of([0, 0, 40, 30]));
        assert_eq!(cut([39, 7, 99, u32::MAX]).unwrap(), of([39, 7, 40, 30]));
        for outside in [[40, 0, 50, 9], [0, 30, 9, 31]] {
            let fault = cut(outside).unwrap_err();
            assert_eq!(fault.kind, FaultKind::TooSmall);
            let said = fault.reason;
            assert!(said.contains(&format!("box {}", of(outside))), "{said}");
            assert!(said.contains("40 x 30"), "{said}");
        }
    }
}
