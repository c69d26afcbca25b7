//! An upright view of an image in any stored orientation.

use super::pixel_view::{PixelView, RgbPixel};
use crate::recipe::PixelPlacement;

/// The image as `placement` shows it: its size, and the stored position of each pixel.
pub(super) struct OrientedPixels<'a, T> {
    pixels: &'a [RgbPixel<T>],
    pub(super) width: usize,
    pub(super) height: usize,
    /// Stored index of pixel (0, 0), and the steps to the right and down.
    origin: isize,
    right: isize,
    down: isize,
}

impl<'a, T: Copy> OrientedPixels<'a, T> {
    pub(super) fn new(src: PixelView<'a, T>, placement: PixelPlacement) -> Self {
        let (width, height) = placement.output_size(src.width, src.height);
        let (mut x, mut y) = (1, src.stride as isize);
        let mut origin = 0;
        if placement.flip_x {
            origin += src.width as isize - 1;
            x = -x;
        }
        if placement.flip_y {
            origin += y * (src.height as isize - 1);
            y = -y;
        }
        let (right, down) = match placement.transpose {
            true => (y, x),
            false => (x, y),
        };
        Self {
            pixels: src.pixels,
            width,
            height,
            origin,
            right,
            down,
        }
    }

    /// Pixel `(y, x)` of the upright image. `None` outside it.
    pub(super) fn at(&self, x: i64, y: i64) -> Option<RgbPixel<T>> {
        let inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        inside.then(|| self.pixel(x as usize, y as usize))
    }

    /// Pixel `(y, x)` of the upright image, which must be inside it.
    #[inline(always)]
    pub(super) fn pixel(&self, x: usize, y: usize) -> RgbPixel<T> {
        self.pixels[self.index(x, y)]
    }

    /// The stored index of pixel `(y, x)`.
    #[inline(always)]
    pub(super) fn index(&self, x: usize, y: usize) -> usize {
        (self.origin + x as isize * self.right + y as isize * self.down) as usize
    }

    /// The channels of all stored pixels.
    pub(super) fn bytes(&self) -> &'a [T] {
        self.pixels.as_flattened()
    }

    /// True if horizontally adjacent pixels are adjacent in memory, in the same order.
    #[inline(always)]
    pub(super) fn lies_in_rows(&self) -> bool {
        self.right == 1
    }

    /// `count` pixels from `x` on. Requires [`OrientedPixels::lies_in_rows`]. Rows beyond an edge
    /// repeat the edge.
    #[inline(always)]
    pub(super) fn row_run(&self, x: usize, y: i64, count: usize) -> &'a [RgbPixel<T>] {
        debug_assert!(self.lies_in_rows());
        let y = y.clamp(0, self.height as i64 - 1) as isize;
        let at = self.origin + x as isize + y * self.down;
        &self.pixels[at as usize..][..count]
    }

    /// Calls `f` with each upright pixel, row by row, and its element of `out`, which is tight.
    pub(super) fn write_each<U>(&self, out: &mut [U], mut f: impl FnMut(RgbPixel<T>, &mut U)) {
        for (y, row) in out.chunks_exact_mut(self.width.max(1)).enumerate() {
            for (x, out) in row.iter_mut().enumerate() {
                f(self.pixel(x, y), out);
            }
        }
    }
}
