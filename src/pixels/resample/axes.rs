//! What is resized to what: pixels at hand, and how each axis becomes what is wanted of
//! it. And the room that all passes reckon with.

#[cfg(any(test, feature = "internals"))]
use crate::recipe::geometry::FractionalBox;
use crate::recipe::weights::{AxisGeometry, ResizeFilter};

/// Bytes of a pixel.
pub(super) const PIXEL: usize = 3;

/// Pixels to read: rows of packed RGB, `stride` bytes apart.
#[derive(Debug, Clone, Copy)]
pub struct PixelSource<'a> {
    pub pixels: &'a [u8],
    pub width: usize,
    pub height: usize,
    pub stride: usize,
}

impl<'a> PixelSource<'a> {
    /// Rows without a gap.
    #[cfg(any(test, feature = "internals"))]
    pub fn tight(pixels: &'a [u8], width: usize, height: usize) -> Self {
        Self {
            pixels,
            width,
            height,
            stride: width * PIXEL,
        }
    }

    pub(super) fn check(&self) {
        assert!(self.width >= 1 && self.height >= 1, "an empty source");
        assert!(
            self.width <= i32::MAX as usize && self.height <= i32::MAX as usize,
            "a source of {} x {}",
            self.height,
            self.width
        );
        assert!(
            self.stride >= self.width * PIXEL,
            "rows of {} pixels in {} bytes",
            self.width,
            self.stride
        );
        let needed = (self.height - 1)
            .checked_mul(self.stride)
            .and_then(|n| n.checked_add(self.width * PIXEL));
        assert!(
            needed.is_some_and(|n| n <= self.pixels.len()),
            "{} bytes for {} rows of {}",
            self.pixels.len(),
            self.height,
            self.stride
        );
    }
}

/// The wanted picture: its size, and how its pixels are gathered.
#[cfg(any(test, feature = "internals"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeTarget {
    pub width: usize,
    pub height: usize,
    pub filter: ResizeFilter,
    pub antialias: bool,
}

/// A resize of pixels at hand: how each axis becomes what is wanted of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeAxes {
    pub x: AxisGeometry,
    pub y: AxisGeometry,
}

impl ResizeAxes {
    /// The box `bx` of a picture of `size` (width, height), all of it at hand.
    #[cfg(any(test, feature = "internals"))]
    pub fn new((width, height): (usize, usize), bx: FractionalBox, target: ResizeTarget) -> Self {
        let axis = |in_size: usize, in0, in1, out: usize| AxisGeometry {
            in_size: in_size as u32,
            in0,
            in1,
            origin: 0,
            full_size: out as u32,
            first: 0,
            out_size: out as u32,
            filter: target.filter,
            antialias: target.antialias,
        };
        Self {
            x: axis(width, bx.x0, bx.x1, target.width),
            y: axis(height, bx.y0, bx.y1, target.height),
        }
    }

    /// True where every output pixel is an input pixel.
    pub(super) fn pick(&self) -> bool {
        let picks =
            |axis: &AxisGeometry| axis.filter == ResizeFilter::Nearest || axis.is_identity();
        picks(&self.x) && picks(&self.y)
    }

    /// Width and height of the output.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.x.out_size as usize, self.y.out_size as usize)
    }
}

/// Bytes beyond the last weighted pixel that a path may load (never use).
pub(super) const fn slack(taps: usize) -> usize {
    taps * PIXEL + 32
}

/// Distance between rows of the ring.
pub(super) const fn ring_stride(width: usize) -> usize {
    (width * PIXEL).next_multiple_of(32)
}

/// Lengthens to `len`, and by no more than that: scratch is reckoned with in
/// advance.
pub(super) fn grow<T: Copy + Default>(v: &mut Vec<T>, len: usize) {
    if let Some(missing) = len.checked_sub(v.len()) {
        v.reserve_exact(missing);
        v.resize(len, T::default());
    }
}
