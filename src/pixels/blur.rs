//! torchvision's `gaussian_blur`, one axis after the other.
//!
//! Both neighbours at a distance are added before they are weighted. So a mirrored image gives the
//! mirrored result, bit for bit. A transposed image does not, because rows are summed first. Edges
//! are mirrored without repeating the edge pixel. A kernel larger than the image mirrors again and
//! again, where torch reports an error. An axis of one pixel repeats that pixel.

use crate::decode_plan::canvas_memory::blur_floats;
use crate::pixels::level::ChannelLevel;
use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::recipe::Size;

/// Channels of a pixel.
const CHANNELS: usize = 3;

/// Fills `out`, rows without gaps. The kernel's sides are odd, and `sigma` is above 0. `u8` levels
/// are rounded, halves to even.
///
/// `scratch` grows to the length that [`scratch_len`] returns.
pub(crate) fn gaussian_blur<T: ChannelLevel>(
    pixels: PixelView<'_, T>,
    kernel: Size,
    sigma: f64,
    out: &mut [RgbPixel<T>],
    scratch: &mut Vec<f32>,
) {
    let (width, height) = (pixels.width, pixels.height);
    let (rx, ry) = (radius(kernel.width), radius(kernel.height));
    let kept = kept_rows(height, ry);
    let needed = scratch_len(width, height, kernel);
    if scratch.len() < needed {
        scratch.resize(needed, 0.0);
    }
    let (across, rest) = scratch.split_at_mut(rx + 1);
    let (down, rest) = rest.split_at_mut(ry + 1);
    let (padded, rest) = rest.split_at_mut(CHANNELS * (width + 2 * rx));
    let (sum, rest) = rest.split_at_mut(CHANNELS * width);
    let window = &mut rest[..kept * CHANNELS * width];
    half_kernel(sigma, across);
    half_kernel(sigma, down);

    let row_at = |y: usize| {
        let at = y % kept * CHANNELS * width;
        at..at + CHANNELS * width
    };
    let mut blurred = 0;
    for (y, out) in out.chunks_exact_mut(width).take(height).enumerate() {
        while blurred < height && blurred <= y + ry {
            pad(pixels.row(blurred), rx, padded);
            blur_row(padded, across, &mut window[row_at(blurred)]);
            blurred += 1;
        }
        scale(&window[row_at(y)], down[0], sum);
        for (k, &weight) in down.iter().enumerate().skip(1) {
            let (above, below) = (
                reflected(y as isize - k as isize, height),
                reflected((y + k) as isize, height),
            );
            add(&window[row_at(above)], &window[row_at(below)], weight, sum);
        }
        for (to, from) in out.iter_mut().zip(sum.as_chunks::<CHANNELS>().0) {
            *to = from.map(T::rounded);
        }
    }
}

/// Floats that a call needs beside the images.
pub(crate) fn scratch_len(width: usize, height: usize, kernel: Size) -> usize {
    blur_floats((width as u32, height as u32), kernel) as usize
}

fn radius(side: u32) -> usize {
    (side / 2) as usize
}

/// Input rows that one output row depends on.
fn kept_rows(height: usize, radius: usize) -> usize {
    height.min(2 * radius + 1)
}

/// The weights from the centre outwards. Like torchvision, it spaces the points by 1 / sqrt(2)
/// pixels, so that their square is the exponent. It computes in `f64`, torch in `f32`.
pub(crate) fn half_kernel(sigma: f64, weights: &mut [f32]) {
    let exponential = |k: usize| {
        let x = k as f64 / sigma;
        libm::exp(-0.5 * x * x)
    };
    let total: f64 = (1..weights.len()).rev().map(exponential).sum::<f64>() * 2.0 + 1.0;
    for (k, weight) in weights.iter_mut().enumerate() {
        *weight = (exponential(k) / total) as f32;
    }
}

/// The one of `n` pixels that is at `i` after mirroring: ... 2 1 0 1 2 ... n-2 n-1 n-2 ...
pub(super) fn reflected(i: isize, n: usize) -> usize {
    if n == 1 {
        return 0;
    }
    let period = 2 * (n - 1);
    let i = i.rem_euclid(period as isize) as usize;
    i.min(period - i)
}

/// Converts the row to floats, with `radius` mirrored pixels at both ends.
fn pad<T: ChannelLevel>(row: &[RgbPixel<T>], radius: usize, padded: &mut [f32]) {
    let n = row.len();
    let padded = padded.as_chunks_mut::<CHANNELS>().0;
    let (left, rest) = padded.split_at_mut(radius);
    let (middle, right) = rest.split_at_mut(n);
    for (to, from) in middle.iter_mut().zip(row) {
        *to = from.map(T::level);
    }
    for (k, (left, right)) in (1..).zip(left.iter_mut().rev().zip(right)) {
        *left = middle[reflected(-k, n)];
        *right = middle[reflected(n as isize - 1 + k, n)];
    }
}

fn blur_row(padded: &[f32], weights: &[f32], out: &mut [f32]) {
    let radius = weights.len() - 1;
    let n = out.len();
    scale(&padded[CHANNELS * radius..][..n], weights[0], out);
    for (k, &weight) in weights.iter().enumerate().skip(1) {
        let left = &padded[CHANNELS * (radius - k)..][..n];
        let right = &padded[CHANNELS * (radius + k)..][..n];
        add(left, right, weight, out);
    }
}

pub(super) fn scale(row: &[f32], weight: f32, sum: &mut [f32]) {
    for (sum, v) in sum.iter_mut().zip(row) {
        *sum = v * weight;
    }
}

pub(super) fn add(one: &[f32], other: &[f32], weight: f32, sum: &mut [f32]) {
    for ((sum, a), b) in sum.iter_mut().zip(one).zip(other) {
        *sum += (a + b) * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_goes_back_and_forth() {
        let seen = |n: usize| -> Vec<usize> { (-5..8).map(|i| reflected(i, n)).collect() };
        assert_eq!(seen(1), [0; 13]);
        assert_eq!(seen(2), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(seen(3), [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!(seen(4), [1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]);
    }

    /// The definition, pixel by pixel: a two-dimensional kernel in `f64`.
    fn plainly(pixels: PixelView<'_, f32>, kernel: Size, sigma: f64) -> Vec<[f64; 3]> {
        let weights = |side: u32| -> Vec<f64> {
            let middle = f64::from(side / 2);
            let w: Vec<f64> = (0..side)
                .map(|i| f64::exp(-(f64::from(i) - middle).powi(2) / (2.0 * sigma * sigma)))
                .collect();
            let total: f64 = w.iter().sum();
            w.into_iter().map(|w| w / total).collect()
        };
        let (wx, wy) = (weights(kernel.width), weights(kernel.height));
        let mut out = Vec::new();
        for y in 0..pixels.height {
            for x in 0..pixels.width {
                let mut sum = [0.0; 3];
                for (j, wy) in wy.iter().enumerate() {
                    let sy = (y + j) as isize - (kernel.height / 2) as isize;
                    let row = pixels.row(reflected(sy, pixels.height));
                    for (i, wx) in wx.iter().enumerate() {
                        let sx = (x + i) as isize - (kernel.width / 2) as isize;
                        let pixel = row[reflected(sx, pixels.width)];
                        for (sum, v) in sum.iter_mut().zip(pixel) {
                            *sum += f64::from(v) * wx * wy;
                        }
                    }
                }
                out.push(sum);
            }
        }
        out
    }

    /// Includes kernels that reach beyond the image, which torch rejects.
    #[test]
    fn every_size_of_picture_and_kernel_follows_the_definition() {
        let mut scratch = Vec::new();
        for (width, height) in [(1, 1), (1, 7), (6, 1), (2, 2), (3, 5), (4, 9), (13, 6)] {
            let pixels: Vec<RgbPixel<f32>> = (0..width * height)
                .map(|i| [0, 1, 2].map(|c| ((i * 37 + c * 101 + i * i) % 256) as f32))
                .collect();
            let view = PixelView::tight(&pixels, width, height);
            for (h, w) in [(1, 1), (3, 3), (1, 9), (9, 1), (5, 23), (23, 7)] {
                for sigma in [0.1, 1.3, 8.0] {
                    let kernel = Size::from((h, w));
                    let want = plainly(view, kernel, sigma);
                    let mut out = vec![[f32::NAN; 3]; pixels.len()];
                    gaussian_blur(view, kernel, sigma, &mut out, &mut scratch);
                    for (got, want) in out.as_flattened().iter().zip(want.as_flattened()) {
                        assert!(
                            (f64::from(*got) - want).abs() < 1e-3,
                            "{width}x{height}, {kernel}, {sigma}: {got}, not {want}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_warm_call_leaves_the_scratch_as_long_as_it_was() {
        let pixels = vec![[9u8; 3]; 40 * 30];
        let (mut out, mut scratch) = (pixels.clone(), Vec::new());
        let kernel = Size::from(9);
        for _ in 0..2 {
            let view = PixelView::tight(&pixels, 40, 30);
            gaussian_blur(view, kernel, 2.0, &mut out, &mut scratch);
            assert_eq!(scratch.len(), scratch_len(40, 30, kernel));
        }
        assert_eq!(out, pixels);
    }
}
