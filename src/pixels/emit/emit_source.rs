//! The pixels of an image in the order of its upright form.

use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::recipe::PixelPlacement;

/// Channels of a source pixel.
pub(super) const CHANNELS: usize = 3;

/// An image, with its orientation.
#[derive(Clone, Copy)]
pub(super) struct EmitSource<'a, T> {
    pub(super) pixels: PixelView<'a, T>,
    pub(super) placement: PixelPlacement,
}

impl<'a, T: Copy> EmitSource<'a, T> {
    /// Width and height of the upright image.
    pub(super) fn output_size(self) -> (usize, usize) {
        let PixelView { width, height, .. } = self.pixels;
        self.placement.output_size(width, height)
    }

    /// The source pixels of output row `y` from `x` on, as many as `buffer` holds. Borrows them if
    /// they are in order in memory, else copies them to `buffer`.
    #[inline(always)]
    pub(super) fn run<'b>(
        self,
        y: usize,
        x: usize,
        buffer: &'b mut [RgbPixel<T>],
    ) -> &'b [RgbPixel<T>]
    where
        'a: 'b,
    {
        let PixelPlacement {
            flip_x,
            flip_y,
            transpose,
        } = self.placement;
        let PixelView {
            pixels,
            width,
            height,
            stride,
        } = self.pixels;
        let n = buffer.len();
        if transpose {
            let column = if flip_x { width - 1 - y } else { y };
            for (i, pixel) in (x..).zip(buffer.iter_mut()) {
                let row = if flip_y { height - 1 - i } else { i };
                *pixel = pixels[row * stride + column];
            }
            return buffer;
        }
        let row = self.pixels.row(if flip_y { height - 1 - y } else { y });
        if flip_x {
            let from = &row[width - x - n..width - x];
            for (pixel, &v) in buffer.iter_mut().rev().zip(from) {
                *pixel = v;
            }
            return buffer;
        }
        &row[x..x + n]
    }
}
