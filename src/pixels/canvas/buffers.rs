//! The memory of a canvas: two buffers of a type, and the part of one that is the image.

use crate::pixels::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::recipe::PixelPlacement;

/// Two buffers of a type: one is read, the other written. Every sample begins in the same one. So
/// each grows only to its own largest use, not both to the larger.
#[derive(Debug, Default)]
pub(super) struct BufferPair<T> {
    pub(super) here: Vec<T>,
    pub(super) there: Vec<T>,
    swapped: bool,
}

impl<T> BufferPair<T> {
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.here, &mut self.there);
        self.swapped = !self.swapped;
    }

    /// Restores the order before the first swap.
    pub(super) fn reset(&mut self) {
        if self.swapped {
            self.swap();
        }
    }
}

/// The part of a buffer that is the image.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PictureLayout {
    pub(super) is_floats: bool,
    /// Pixels before the first.
    pub(super) first: usize,
    /// Pixels from one row to the next.
    pub(super) stride: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) placement: PixelPlacement,
}

impl PictureLayout {
    /// A layout without gaps, from the start of the buffer.
    pub(super) fn tight(width: usize, height: usize, placement: PixelPlacement) -> Self {
        Self {
            is_floats: false,
            first: 0,
            stride: width,
            width,
            height,
            placement,
        }
    }

    pub(super) fn of<'a, T>(&self, values: &'a [T]) -> PixelView<'a, T> {
        PixelView {
            pixels: &values.as_chunks().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    pub(super) fn of_mut<'a, T>(&self, values: &'a mut [T]) -> PixelViewMut<'a, T> {
        PixelViewMut {
            pixels: &mut values.as_chunks_mut().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    /// Sets a layout without gaps for this stored size.
    pub(super) fn set_tight(&mut self, width: usize, height: usize) {
        (self.first, self.stride) = (0, width);
        (self.width, self.height) = (width, height);
    }
}

/// Makes room for this number of pixels.
pub(super) fn pixels_mut<T: Copy + Default>(v: &mut Vec<T>, pixels: usize) -> &mut [RgbPixel<T>] {
    ensure_len(v, 3 * pixels);
    &mut v.as_chunks_mut().0[..pixels]
}

pub(super) fn ensure_len<T: Copy + Default>(v: &mut Vec<T>, len: usize) {
    if v.len() < len {
        // The old content is not needed. Both blocks at once would leave a hole in the heap.
        // Reserving exactly keeps to the computed memory.
        v.clear();
        if v.capacity() < len {
            *v = Vec::new();
            v.reserve_exact(len);
        }
        v.resize(len, T::default());
    }
}
