//! The reference resize: `f32`, directly from the weight table, without rounding between the
//! passes. Tests compare the fast path and the CUDA kernel with it.
//!
//! Slow and readable; it allocates.

use crate::pixels::pixel_view::PixelView;
use crate::pixels::resample::ResizeAxes;
use crate::pixels::resample::axes::{PIXEL, PixelSource};
use crate::recipe::weights::WeightTable;

/// Levels, 0 to 255 for most filters, as RGB rows without gaps.
pub(super) fn resample_f32(src: PixelSource, axes: ResizeAxes) -> Vec<f32> {
    src.check();
    let (width, height) = axes.size();
    let (mut across, mut down) = (WeightTable::default(), WeightTable::default());
    across.prepare(axes.x);
    down.prepare(axes.y);

    let mut between = vec![0.0f32; src.height * width * PIXEL];
    for (row, out) in between.chunks_exact_mut(width * PIXEL).enumerate() {
        let line = &src.pixels[row * src.stride..];
        for (o, pixel) in out.as_chunks_mut::<PIXEL>().0.iter_mut().enumerate() {
            let (start, weights) = across.row(o);
            for (i, &w) in weights.iter().enumerate() {
                for (c, v) in pixel.iter_mut().enumerate() {
                    *v += f32::from(line[(start + i) * PIXEL + c]) * w as f32;
                }
            }
        }
    }
    let mut out = vec![0.0f32; height * width * PIXEL];
    let width = width * PIXEL;
    for (o, line) in out.chunks_exact_mut(width).enumerate() {
        let (start, weights) = down.row(o);
        for (i, &w) in weights.iter().enumerate() {
            let from = &between[(start + i) * width..(start + i + 1) * width];
            for (v, &b) in line.iter_mut().zip(from) {
                *v += b * w as f32;
            }
        }
    }
    out
}

/// The same for float pixels, in `f64` throughout. Tests compare the float resize with it. Each
/// pixel is one sum over all its rows and columns.
pub(super) fn resample_f64(src: PixelView<'_, f32>, axes: ResizeAxes) -> Vec<f64> {
    let (width, height) = axes.size();
    let (mut across, mut down) = (WeightTable::default(), WeightTable::default());
    across.prepare(axes.x);
    down.prepare(axes.y);
    let mut out = Vec::with_capacity(width * height * PIXEL);
    for o in 0..height {
        let (top, rows) = down.row(o);
        for o in 0..width {
            let (left, columns) = across.row(o);
            let mut sum = [0.0; PIXEL];
            for (y, wy) in (top..).zip(rows) {
                for (pixel, wx) in src.row(y)[left..].iter().zip(columns) {
                    for (sum, &v) in sum.iter_mut().zip(pixel) {
                        *sum += f64::from(v) * wx * wy;
                    }
                }
            }
            out.extend(sum);
        }
    }
    out
}
