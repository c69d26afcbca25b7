//! Source and target of a resize: the available pixels, and the mapping of each axis. Also the
//! sizes of scratch memory, which all passes share.

#[cfg(any(test, feature = "internals"))]
use crate::recipe::geometry::FractionalBox;
use crate::recipe::weights::AxisGeometry;
#[cfg(any(test, feature = "internals"))]
use crate::recipe::weights::ResizeFilter;

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
    /// A source of rows without gaps.
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

/// The target image: its size, and the filter.
#[cfg(any(test, feature = "internals"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeTarget {
    pub width: usize,
    pub height: usize,
    pub filter: ResizeFilter,
    pub antialias: bool,
}

/// A resize of available pixels: the mapping of each axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeAxes {
    pub x: AxisGeometry,
    pub y: AxisGeometry,
}

impl ResizeAxes {
    /// Resizes the box `bx` of an image of `size` (width, height), all of it available.
    #[cfg(any(test, feature = "internals"))]
    pub fn new((width, height): (usize, usize), bx: FractionalBox, target: ResizeTarget) -> Self {
        let axis = |in_size: usize, in0, in1, out: usize, is_down| AxisGeometry {
            in_size: in_size as u32,
            in0,
            in1,
            origin: 0,
            full_size: out as u32,
            first: 0,
            out_size: out as u32,
            filter: target.filter,
            is_down,
            antialias: target.antialias,
        };
        Self {
            x: axis(width, bx.x0, bx.x1, target.width, false),
            y: axis(height, bx.y0, bx.y1, target.height, true),
        }
    }

    /// True if every output pixel is a copy of an input pixel.
    pub(super) fn pick(&self) -> bool {
        let picks = |axis: &AxisGeometry| axis.filter.copies() || axis.is_identity();
        picks(&self.x) && picks(&self.y)
    }

    /// Width and height of the output.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.x.out_size as usize, self.y.out_size as usize)
    }
}

/// Bytes after the last weighted pixel that a path may load without using them.
pub(super) const fn slack(taps: usize) -> usize {
    taps * PIXEL + 32
}

/// Distance between rows of the ring.
pub(super) const fn ring_stride(width: usize) -> usize {
    (width * PIXEL).next_multiple_of(32)
}

/// Lengthens to exactly `len`, to keep to the computed memory.
pub(super) fn grow<T: Copy + Default>(v: &mut Vec<T>, len: usize) {
    if let Some(missing) = len.checked_sub(v.len()) {
        v.reserve_exact(missing);
        v.resize(len, T::default());
    }
}
