//! The resize as it should be: `f32`, straight from the weight table, no
//! rounding between the passes. What the fast path and the CUDA kernel are
//! measured against.
//!
//! Runs where a check runs, and on the CPU stage of the device. Slow and
//! readable; allocates.

use crate::pixels::pixel_view::PixelView;
use crate::pixels::resample::ResizeAxes;
use crate::pixels::resample::axes::{PIXEL, PixelSource};
use crate::recipe::weights::WeightTable;

/// Levels, 0 to 255 for most filters, as tight rows of RGB.
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

/// The same of pixels that are floats, in `f64` throughout: what the resize of
/// floats is tested against. One sum a pixel, over all its rows and columns.
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
