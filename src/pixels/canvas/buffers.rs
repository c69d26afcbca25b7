//! The memory of a canvas: two buffers of a type, and which part of one is the picture.

use crate::pixels::view::{Pixel, View, ViewMut};
use crate::recipe::Placement;

/// Two buffers of a type: one is read, the other written. Every sample begins in
/// the same one, so each grows to the most of what it is for, and not both to the
/// larger.
#[derive(Debug, Default)]
pub(super) struct Pair<T> {
    pub(super) here: Vec<T>,
    pub(super) there: Vec<T>,
    swapped: bool,
}

impl<T> Pair<T> {
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.here, &mut self.there);
        self.swapped = !self.swapped;
    }

    /// As before the first swap.
    pub(super) fn home(&mut self) {
        if self.swapped {
            self.swap();
        }
    }
}

/// The part of a buffer that is the picture.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    pub(super) is_floats: bool,
    /// Pixels in front of the first.
    pub(super) first: usize,
    /// Pixels from one row to the next.
    pub(super) stride: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) placement: Placement,
}

impl Part {
    /// Bytes from the start of their buffer on, row by row.
    pub(super) fn tight(width: usize, height: usize, placement: Placement) -> Self {
        Self {
            is_floats: false,
            first: 0,
            stride: width,
            width,
            height,
            placement,
        }
    }

    pub(super) fn of<'a, T>(&self, values: &'a [T]) -> View<'a, T> {
        View {
            pixels: &values.as_chunks().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    pub(super) fn of_mut<'a, T>(&self, values: &'a mut [T]) -> ViewMut<'a, T> {
        ViewMut {
            pixels: &mut values.as_chunks_mut().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    /// A tight picture of this stored size.
    pub(super) fn becomes(&mut self, width: usize, height: usize) {
        (self.first, self.stride) = (0, width);
        (self.width, self.height) = (width, height);
    }
}

/// Room for so many pixels.
pub(super) fn room<T: Copy + Default>(v: &mut Vec<T>, pixels: usize) -> &mut [Pixel<T>] {
    fit(v, 3 * pixels);
    &mut v.as_chunks_mut().0[..pixels]
}

pub(super) fn fit<T: Copy + Default>(v: &mut Vec<T>, len: usize) {
    if v.len() < len {
        // Nothing of the content is needed, and no more than was said is taken.
        v.clear();
        v.reserve_exact(len);
        v.resize(len, T::default());
    }
}
