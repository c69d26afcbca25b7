//! The part of a JPEG to decode, and the scale.
//!
//! Pure arithmetic on header fields.

use super::header::JpegHeader;

/// A decode at 1, 1/2, 1/4 or 1/8 of the size. At these scales the inverse DCT is faster than at
/// full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeScale {
    Full,
    Half,
    Quarter,
    Eighth,
}

impl DecodeScale {
    pub(crate) const ALL: [Self; 4] = [Self::Full, Self::Half, Self::Quarter, Self::Eighth];

    pub(crate) fn denominator(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => 8,
        }
    }

    /// The scale with this denominator; full for any other number.
    pub(crate) fn of_denominator(denominator: u32) -> Self {
        Self::ALL
            .into_iter()
            .find(|s| s.denominator() == denominator)
            .unwrap_or(Self::Full)
    }

    /// The size at this scale of a picture of `size` (width, height).
    pub(crate) fn of_size(self, (width, height): (u32, u32)) -> (u32, u32) {
        let d = self.denominator();
        (width.div_ceil(d), height.div_ceil(d))
    }
}

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelRegion {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) w: u32,
    pub(crate) h: u32,
}

impl PixelRegion {
    /// Whether it is not empty, and inside a picture of this size.
    pub(crate) fn fits_in(self, (w, h): (u32, u32)) -> bool {
        let inside = |at: u32, len: u32, size: u32| {
            len > 0 && at.checked_add(len).is_some_and(|end| end <= size)
        };
        inside(self.x, self.w, w) && inside(self.y, self.h, h)
    }
}

#[cfg(test)]
impl PixelRegion {
    pub(crate) fn new(x: u32, y: u32, w: u32, h: u32) -> Self {
        Self { x, y, w, h }
    }

    pub(crate) fn whole((w, h): (u32, u32)) -> Self {
        Self::new(0, 0, w, h)
    }
}

/// The region of the scaled picture that a decode left in the scratch buffer: rows of `stride`
/// bytes of RGB, top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodedRegion {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) w: u32,
    pub(crate) h: u32,
    pub(crate) stride: usize,
}

/// The size of the decoded picture at this scale, in stored orientation.
pub(crate) fn scaled_size(header: &JpegHeader, scale: DecodeScale) -> (u32, u32) {
    scale.of_size((header.width, header.height))
}
