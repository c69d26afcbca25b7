//! A picture between its decoding and its emission: the buffers, and each step
//! on them.
//!
//! Crops, flips and quarter turns move nothing: they change which part of the
//! buffer counts, and how it is turned. Other steps work in place, or write the
//! other buffer of the same type. `recipe::needs` says what that takes in
//! advance, and a test holds the two together.

use super::resample::{Axes, Resampler, Source};
use super::view::{View, ViewMut};
use crate::recipe::Step;
use crate::recipe::fold::Fold;
use crate::recipe::{Dtype, Placement};

/// Two buffers of a type: one is read, the other written.
#[derive(Debug, Default)]
struct Pair<T> {
    here: Vec<T>,
    there: Vec<T>,
}

/// A picture, and memory for what becomes of it: a warm call allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    bytes: Pair<u8>,
    floats: Pair<f32>,
    rows: Vec<f32>,
    at: Part,
}

/// The part of a buffer that is the picture.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Part {
    is_floats: bool,
    /// Pixels in front of the first.
    first: usize,
    /// Pixels from one row to the next.
    stride: usize,
    width: usize,
    height: usize,
    placement: Placement,
}

/// The picture, in whichever type it is held.
pub(crate) enum Held<'a> {
    Bytes(View<'a, u8>),
    Floats(View<'a, f32>),
}

impl Canvas {
    /// Bytes that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        let floats = [&self.floats.here, &self.floats.there, &self.rows];
        let floats: usize = floats.iter().map(|v| v.capacity()).sum();
        self.bytes.here.capacity() + self.bytes.there.capacity() + floats * size_of::<f32>()
    }

    /// Gives all buffers back.
    pub(crate) fn give_back(&mut self) {
        *self = Self::default();
    }

    /// Begins with a tight picture of this stored width and height, in `u8`, which
    /// the caller fills.
    pub(crate) fn begin(&mut self, width: usize, height: usize, placement: Placement) -> &mut [u8] {
        let bytes = 3 * width * height;
        fit(&mut self.bytes.here, bytes);
        self.at = Part {
            is_floats: false,
            first: 0,
            stride: width,
            width,
            height,
            placement,
        };
        &mut self.bytes.here[..bytes]
    }

    /// Begins with a picture that lies in `buffer`, which changes places with one
    /// of the canvas: pixels in front of the first, pixels from row to row, width
    /// and height.
    pub(crate) fn adopt(
        &mut self,
        buffer: &mut Vec<u8>,
        (first, stride): (usize, usize),
        (width, height): (usize, usize),
        placement: Placement,
    ) {
        std::mem::swap(&mut self.bytes.here, buffer);
        self.at = Part {
            is_floats: false,
            first,
            stride,
            width,
            height,
            placement,
        };
    }

    /// Gives a buffer back to where the picture was adopted from, so that no two
    /// large ones stay.
    pub(crate) fn release(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes.here, buffer);
    }

    /// The picture, and how it is turned.
    pub(crate) fn held(&self) -> (Held<'_>, Placement) {
        let held = match self.at.is_floats {
            false => Held::Bytes(self.at.of(&self.bytes.here)),
            true => Held::Floats(self.at.of(&self.floats.here)),
        };
        (held, self.at.placement)
    }

    /// Does the first of `steps`, or more where a resize takes the crops behind
    /// it along. How many.
    pub(crate) fn apply<'a>(
        &mut self,
        steps: impl Iterator<Item = &'a Step> + Clone,
        fuses: bool,
        resampler: &mut Resampler,
    ) -> usize {
        let most = if fuses { usize::MAX } else { 1 };
        let Some(step) = steps.clone().next() else {
            return 0;
        };
        match *step {
            Step::Crop(_)
            | Step::Mirror
            | Step::UpsideDown
            | Step::Turn(_)
            | Step::Resize { .. } => {
                let stored = (self.at.width as u32, self.at.height as u32);
                let fold = Fold::of(steps.take(most), stored, self.at.placement);
                self.fold(&fold, resampler);
                return fold.steps;
            }
            _ => {}
        }
        1
    }

    fn fold(&mut self, fold: &Fold, resampler: &mut Resampler) {
        let at = &mut self.at;
        let rect = fold.rect;
        at.placement = fold.placement;
        at.first += rect.top as usize * at.stride + rect.left as usize;
        (at.width, at.height) = (rect.width as usize, rect.height as usize);
        let Some((x, y)) = fold.reads_all() else {
            return;
        };
        let axes = Axes { x, y };
        let (width, height) = (x.out_size as usize, y.out_size as usize);
        let pixels = 3 * width * height;
        if at.is_floats {
            fit(&mut self.floats.there, pixels);
            let _ = axes;
            std::mem::swap(&mut self.floats.here, &mut self.floats.there);
        } else {
            fit(&mut self.bytes.there, pixels);
            let source = Source {
                pixels: &self.bytes.here[3 * at.first..],
                width: at.width,
                height: at.height,
                stride: 3 * at.stride,
            };
            resampler.resample(source, axes, &mut self.bytes.there[..pixels]);
            std::mem::swap(&mut self.bytes.here, &mut self.bytes.there);
        }
        self.at.becomes(width, height);
    }
}

impl Part {
    fn of<'a, T>(&self, values: &'a [T]) -> View<'a, T> {
        View {
            pixels: &values.as_chunks().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    fn of_mut<'a, T>(&self, values: &'a mut [T]) -> ViewMut<'a, T> {
        ViewMut {
            pixels: &mut values.as_chunks_mut().0[self.first..],
            width: self.width,
            height: self.height,
            stride: self.stride,
        }
    }

    /// A tight picture of this stored size.
    fn becomes(&mut self, width: usize, height: usize) {
        (self.first, self.stride) = (0, width);
        (self.width, self.height) = (width, height);
    }
}

fn fit<T: Copy + Default>(v: &mut Vec<T>, len: usize) {
    if v.len() < len {
        v.resize(len, T::default());
    }
}
