//! `(v / unit - mean) / std`, each step rounded to `f32`: what
//! [`Emitter`](super::emit::Emitter) does at the end, for the middle of a chain.

use super::level::Level;
use super::view::{Pixel, View, ViewMut};

/// The three numbers; mean and deviation one a channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scaling {
    /// What becomes 1: 255 for levels.
    pub(crate) unit: f32,
    pub(crate) mean: [f32; 3],
    pub(crate) std: [f32; 3],
}

impl Scaling {
    #[inline(always)]
    pub(super) fn of(&self, channel: usize, v: f32) -> f32 {
        (v / self.unit - self.mean[channel]) / self.std[channel]
    }

    #[inline(always)]
    fn pixel(&self, [a, b, c]: Pixel<f32>) -> Pixel<f32> {
        [self.of(0, a), self.of(1, b), self.of(2, c)]
    }
}

/// Fills `out`, rows without gaps.
pub(crate) fn normalise<T: Level>(pixels: View<'_, T>, scaling: Scaling, out: &mut [Pixel<f32>]) {
    let rows = out.chunks_exact_mut(pixels.width).zip(pixels.rows());
    for (out, row) in rows {
        for (to, pixel) in out.iter_mut().zip(row) {
            *to = scaling.pixel(pixel.map(T::level));
        }
    }
}

pub(crate) fn normalise_in_place(mut pixels: ViewMut<'_, f32>, scaling: Scaling) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = scaling.pixel(*pixel);
        }
    }
}
