//! torchvision's `elastic`, for bytes and floats: every pixel comes from a place near it.
//!
//! The displacement is noise between -1 and 1, blurred, times `alpha`. Noise is a pure function of
//! a key and of the pixel's number in the upright image. So its rows are made, blurred and dropped
//! one by one, and no whole field is kept. Places are `f32` with torchvision's operations. The sums
//! of the blur have another order, which moves a place by less than a thousandth of a pixel.

use super::blur::{add, half_kernel, reflected, scale};
use super::erase::mixed;
use super::level::ChannelLevel;
use super::oriented_pixels::OrientedPixels;
use super::pixel_view::{PixelView, RgbPixel};
use super::rotate::between;
use crate::decode_plan::canvas_memory::{elastic_floats, elastic_radii};
use crate::recipe::{InterpolationMode, PixelPlacement};

/// The displacement of an image's pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DisplacementField {
    pub(crate) key: u64,
    /// Along the width and the height.
    pub(crate) alpha: [f64; 2],
    pub(crate) sigma: [f64; 2],
}

/// Fills `out`, which is tight, upright and of the image's size. `Nearest` shows `fill` where no
/// pixel's area contains the place. All other modes are bilinear, as in
/// [`rotate`](super::rotate::rotate).
///
/// `scratch` grows to the length that [`scratch_len`] returns.
pub(crate) fn elastic<T: ChannelLevel>(
    src: PixelView<'_, T>,
    placement: PixelPlacement,
    by: DisplacementField,
    interpolation: InterpolationMode,
    fill: [f32; 3],
    out: &mut [RgbPixel<T>],
    scratch: &mut Vec<f32>,
) {
    let shown = OrientedPixels::new(src, placement);
    let filler = fill.map(T::rounded);
    let mut out = out.iter_mut();
    each_place((shown.width, shown.height), by, scratch, |sx, sy| {
        let Some(out) = out.next() else { return };
        *out = match interpolation {
            InterpolationMode::Nearest => {
                let (x, y) = (sx.round_ties_even(), sy.round_ties_even());
                shown.at(x as i64, y as i64).unwrap_or(filler)
            }
            _ => between(&shown, f64::from(sx), f64::from(sy), fill),
        };
    });
}

/// Calls `at` with the source of each pixel of an image of this width and height, row by row: to
/// the right and down, in pixels. The centre of the first pixel is 0.
///
/// `scratch` grows to the length that [`scratch_len`] returns.
#[inline(always)]
pub(crate) fn each_place(
    (width, height): (usize, usize),
    by: DisplacementField,
    scratch: &mut Vec<f32>,
    mut at: impl FnMut(f32, f32),
) {
    let needed = scratch_len(width, height, by.sigma);
    if scratch.len() < needed {
        scratch.resize(needed, 0.0);
    }
    let mut rest = &mut scratch[..needed];
    let pixels = (width * height) as u64;
    let [rx, ry] = elastic_radii(by.sigma).map(|radius| radius as usize);
    let mut along_x = AxisNoise::new(by, (width, height), rx, 0, &mut rest);
    let mut along_y = AxisNoise::new(by, (width, height), ry, pixels, &mut rest);
    let by_x = (by.alpha[0] as f32, width as f32);
    let by_y = (by.alpha[1] as f32, height as f32);
    for y in 0..height {
        let (right, down) = (along_x.row(y), along_y.row(y));
        let base = regular(y, height);
        for (x, (right, down)) in right.iter().zip(down).enumerate() {
            let sx = regular(x, width) + right * by_x.0 / by_x.1;
            let sy = base + down * by_y.0 / by_y.1;
            at(place(sx, by_x.1), place(sy, by_y.1));
        }
    }
}

/// Floats that a call needs beside the images.
pub(crate) fn scratch_len(width: usize, height: usize, sigma: [f64; 2]) -> usize {
    elastic_floats((width as u32, height as u32), sigma) as usize
}

/// Position of pixel `at` of `n` in an image from -1 to 1: torch's `linspace`, computed from both
/// ends.
#[inline(always)]
fn regular(at: usize, n: usize) -> f32 {
    let last = ((n as f64 - 1.0) / n as f64) as f32;
    let step = (last + last) / (n.max(2) - 1) as f32;
    match at < n / 2 || n == 1 {
        true => step * at as f32 - last,
        false => last - step * (n - 1 - at) as f32,
    }
}

/// Converts -1 to 1 to pixels of `n`.
#[inline(always)]
fn place(at: f32, n: f32) -> f32 {
    (at + 1.0) * (n * 0.5) - 0.5
}

/// The blurred noise of an axis, row by row from the top.
struct AxisNoise<'a> {
    key: u64,
    /// Number of the first pixel's element.
    first: u64,
    width: usize,
    height: usize,
    radius: usize,
    /// Rows of noise blurred along the width so far.
    blurred: usize,
    /// Rows that are kept.
    kept: usize,
    across: &'a mut [f32],
    down: &'a mut [f32],
    padded: &'a mut [f32],
    sum: &'a mut [f32],
    window: &'a mut [f32],
}

impl<'a> AxisNoise<'a> {
    fn new(
        by: DisplacementField,
        (width, height): (usize, usize),
        radius: usize,
        first: u64,
        rest: &mut &'a mut [f32],
    ) -> Self {
        let kept = height.min(2 * radius + 1);
        let mut take = |len: usize| -> &'a mut [f32] {
            let (taken, left) = std::mem::take(rest).split_at_mut(len);
            *rest = left;
            taken
        };
        let noise = Self {
            key: by.key,
            first,
            width,
            height,
            radius,
            blurred: 0,
            kept,
            across: take(radius + 1),
            down: take(radius + 1),
            padded: take(width + 2 * radius),
            sum: take(width),
            window: take(kept * width),
        };
        weights(by.sigma[0], noise.across);
        weights(by.sigma[1], noise.down);
        noise
    }

    /// Computes the next row, `y`.
    fn row(&mut self, y: usize) -> &[f32] {
        while self.blurred < self.height && self.blurred <= y + self.radius {
            self.blur(self.blurred);
            self.blurred += 1;
        }
        let held = |y: usize| &self.window[y % self.kept * self.width..][..self.width];
        scale(held(y), self.down[0], self.sum);
        for (k, weight) in self.down.iter().enumerate().skip(1) {
            let above = reflected(y as isize - k as isize, self.height);
            let below = reflected((y + k) as isize, self.height);
            add(held(above), held(below), *weight, self.sum);
        }
        self.sum
    }

    /// Makes a row of noise and blurs it along the width.
    fn blur(&mut self, y: usize) {
        let (radius, width) = (self.radius, self.width);
        let row = self.first + (y * width) as u64;
        let (left, rest) = self.padded.split_at_mut(radius);
        let (middle, right) = rest.split_at_mut(width);
        for (x, out) in (row..).zip(&mut *middle) {
            *out = noise(self.key, x);
        }
        for (k, (left, right)) in (1..).zip(left.iter_mut().rev().zip(right)) {
            *left = middle[reflected(-k, width)];
            *right = middle[reflected(width as isize - 1 + k, width)];
        }
        let out = &mut self.window[y % self.kept * width..][..width];
        scale(&self.padded[radius..][..width], self.across[0], out);
        for (k, weight) in self.across.iter().enumerate().skip(1) {
            let left = &self.padded[radius - k..][..width];
            let right = &self.padded[radius + k..][..width];
            add(left, right, *weight, out);
        }
    }
}

/// For a `sigma` of 0, only the pixel itself.
fn weights(sigma: f64, weights: &mut [f32]) {
    match sigma > 0.0 {
        true => half_kernel(sigma, weights),
        false => weights.fill(1.0),
    }
}

/// Uniform in -1 to below 1, in steps of 2^-23: torch's `rand`, doubled.
#[inline(always)]
fn noise(key: u64, element: u64) -> f32 {
    const STEP: f32 = 1.0 / 8_388_608.0;
    (mixed(key, element) >> 40) as f32 * STEP - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 9;
    const HEIGHT: usize = 7;

    fn picture() -> Vec<RgbPixel<u8>> {
        let v = |i: usize| (i * 89 % 251) as u8;
        (0..WIDTH * HEIGHT)
            .map(|i| [v(i), v(i + 7), v(i * 3)])
            .collect()
    }

    fn made(
        src: PixelView<'_, u8>,
        placement: PixelPlacement,
        by: DisplacementField,
        how: InterpolationMode,
    ) -> Vec<RgbPixel<u8>> {
        let mut out = vec![[1; 3]; WIDTH * HEIGHT];
        let (fill, mut scratch) = ([9.0, 8.0, 7.0], vec![f32::NAN; 3]);
        elastic(src, placement, by, how, fill, &mut out, &mut scratch);
        let (width, height) = placement.output_size(src.width, src.height);
        assert_eq!(scratch.len(), scratch_len(width, height, by.sigma));
        out
    }

    #[test]
    fn a_stored_picture_moves_as_the_upright_one() {
        let upright = picture();
        let tight = PixelView::tight(&upright, WIDTH, HEIGHT);
        for (key, sigma) in [(1, [0.0; 2]), (2, [0.4, 0.4]), (3, [1.5, 0.2])] {
            let alpha = [30.0, 12.0];
            let by = DisplacementField { key, alpha, sigma };
            for how in [InterpolationMode::Nearest, InterpolationMode::Bilinear] {
                let want = made(tight, PixelPlacement::default(), by, how);
                assert_ne!(want, upright);
                for quarters in 1..4 {
                    // Stored so that this number of quarter turns makes it upright.
                    let back = PixelPlacement::default().turned(quarters);
                    let turned =
                        OrientedPixels::new(tight, PixelPlacement::default().turned(4 - quarters));
                    let mut stored = vec![[0; 3]; upright.len()];
                    turned.write_each(&mut stored, |pixel, out| *out = pixel);
                    let view = PixelView::tight(&stored, turned.width, turned.height);
                    assert_eq!(made(view, back, by, how), want, "{by:?} {quarters}");
                }
            }
        }
    }

    /// Includes kernels that reach beyond the image, which torch rejects.
    #[test]
    fn no_displacement_leaves_the_picture() {
        let upright = picture();
        for sigma in [[0.0; 2], [0.5, 0.5], [20.0, 3.0]] {
            let by = DisplacementField {
                key: 5,
                alpha: [0.0; 2],
                sigma,
            };
            for how in [InterpolationMode::Nearest, InterpolationMode::Bilinear] {
                let tight = PixelView::tight(&upright, WIDTH, HEIGHT);
                assert_eq!(made(tight, PixelPlacement::default(), by, how), upright);
            }
        }
    }

    #[test]
    fn noise_is_uniform_about_zero() {
        const MANY: u64 = 100_000;
        let all: Vec<f64> = (0..MANY).map(|i| noise(77, i).into()).collect();
        let mean = all.iter().sum::<f64>() / MANY as f64;
        let square = all.iter().map(|v| v * v).sum::<f64>() / MANY as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.01, "{square}");
        assert!(all.iter().all(|v| (-1.0..1.0).contains(v)));
        assert_ne!(noise(78, 0), noise(77, 0));
    }
}
