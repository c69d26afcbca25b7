//! Brightness, contrast, saturation and hue, by a factor; a colour added to all pixels;
//! another order of the channels.
//!
//! `u8` results equal torchvision's on `uint8` tensors, bit for bit: products in `f32`, clamped and
//! truncated. `f32` follows its float formulas, with 255 instead of 1. Factors are torchvision's:
//! from 0 up, where 1 changes nothing; for hue -0.5 to 0.5, where 0 changes nothing.

use super::grey::{fused, weighted};
use super::level::ChannelLevel;
use super::pixel_view::{PixelView, PixelViewMut, RgbPixel};

/// Mixes with black (factor 0) or away from it.
pub(crate) fn brightness<T: ChannelLevel>(pixels: PixelViewMut<'_, T>, factor: f32) {
    each(pixels, |pixel| pixel.map(|v| cut(v.level() * factor)));
}

/// Mixes with the mean grey of the image (factor 0) or away from it.
pub(crate) fn contrast<T: ChannelLevel>(pixels: PixelViewMut<'_, T>, factor: f32) {
    let mean = mean_grey(pixels.as_view());
    let blend = ColorBlend::new(factor);
    each(pixels, |pixel| pixel.map(|v| blend.of(v, mean)));
}

/// Mixes with the pixel's own grey (factor 0) or away from it.
pub(crate) fn saturation<T: ChannelLevel>(pixels: PixelViewMut<'_, T>, factor: f32) {
    let blend = ColorBlend::new(factor);
    each(pixels, |pixel| {
        let grey = whole::<T>(weighted(pixel));
        pixel.map(|v| blend.of(v, grey))
    });
}

/// Rotates the hue by this part of the circle.
pub(crate) fn hue<T: HueChannel>(pixels: PixelViewMut<'_, T>, factor: f32) {
    each(pixels, |pixel| {
        let (h, s, v) = hsv(pixel.map(|v| v.level() * (1.0 / 255.0)));
        let turned = part(h + factor);
        let turned = if turned < 0.0 { turned + 1.0 } else { turned };
        rgb(turned, s, v).map(T::of_unit)
    });
}

/// Adds a number to each channel. `u8` is rounded and clamped, `f32` is not.
pub(crate) fn shift<T: ChannelLevel>(pixels: PixelViewMut<'_, T>, by: [f32; 3]) {
    each(pixels, |pixel| {
        std::array::from_fn(|c| T::rounded(pixel[c].level() + by[c]))
    });
}

/// Channel `i` becomes the former channel `order[i]`.
pub(crate) fn permute<T: ChannelLevel>(pixels: PixelViewMut<'_, T>, order: [u8; 3]) {
    each(pixels, |pixel| order.map(|from| pixel[usize::from(from)]));
}

#[inline(always)]
fn each<T: ChannelLevel>(mut pixels: PixelViewMut<'_, T>, of: impl Fn(RgbPixel<T>) -> RgbPixel<T>) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = of(*pixel);
        }
    }
}

#[inline(always)]
fn cut<T: ChannelLevel>(level: f32) -> T {
    T::truncated(level.clamp(0.0, 255.0))
}

/// Truncates a level if the type is `u8`.
#[inline(always)]
fn whole<T: ChannelLevel>(level: f32) -> f32 {
    T::truncated(level).level()
}

/// torchvision's `_blend`.
#[derive(Clone, Copy)]
pub(crate) struct ColorBlend {
    ratio: f32,
    rest: f32,
}

impl ColorBlend {
    pub(crate) fn new(ratio: f32) -> Self {
        Self {
            ratio,
            // Subtracts in `f64`, then rounds.
            rest: (1.0 - f64::from(ratio)) as f32,
        }
    }

    /// The shares of both sides.
    pub(crate) fn numbers(self) -> [f32; 2] {
        [self.ratio, self.rest]
    }

    #[inline(always)]
    fn of<T: ChannelLevel>(self, v: T, other: f32) -> T {
        cut(fused(v.level() * self.ratio, other, self.rest))
    }
}

/// The mean of the grey levels. It has the same bits for every order of the pixels, so that
/// mirroring before or after changes nothing. For that, levels are summed as multiples of 2^-24,
/// which represent `u8` exactly.
fn mean_grey<T: ChannelLevel>(pixels: PixelView<'_, T>) -> f32 {
    const ONE: f64 = (1 << 24) as f64;
    let mut sum = 0i64;
    for row in pixels.rows() {
        for &pixel in row {
            let grey = f64::from(whole::<T>(weighted(pixel)));
            sum = sum.saturating_add((grey * ONE) as i64);
        }
    }
    let count = (pixels.width * pixels.height) as f64;
    (sum as f64 / ONE / count) as f32
}

/// Converts a channel between 0 and 1 to a level.
pub(crate) trait HueChannel: ChannelLevel {
    fn of_unit(v: f32) -> Self;
}

impl HueChannel for u8 {
    /// torchvision's `to_dtype` with `scale`: 256 ranges of equal width.
    #[inline(always)]
    fn of_unit(v: f32) -> Self {
        Self::truncated(v * 255.999)
    }
}

impl HueChannel for f32 {
    #[inline(always)]
    fn of_unit(v: f32) -> Self {
        (v * 255.0).clamp(0.0, 255.0)
    }
}

/// The fractional part, with the sign.
#[inline(always)]
fn part(v: f32) -> f32 {
    // Through an integer: std's `trunc` is a function call without SSE4.1.
    v - (v as i32) as f32
}

/// torchvision's `_rgb_to_hsv`, hue 0 to 1.
#[inline(always)]
fn hsv([r, g, b]: [f32; 3]) -> (f32, f32, f32) {
    let most = r.max(g).max(b);
    let range = most - r.min(g).min(b);
    if range == 0.0 {
        return (0.0, 0.0, most);
    }
    let [rc, gc, bc] = [r, g, b].map(|c| (most - c) / range);
    let sixths = if most == r {
        bc - gc
    } else if most == g {
        rc + 2.0 - bc
    } else {
        gc + 4.0 - rc
    };
    (part(sixths * (1.0 / 6.0) + 1.0), range / most, most)
}

/// torchvision's `_hsv_to_rgb`.
#[inline(always)]
fn rgb(h: f32, s: f32, v: f32) -> [f32; 3] {
    let sixths = h * 6.0;
    let i = sixths as i32;
    let f = sixths - i as f32;
    let sf = s * f;
    let rest = 1.0 - s;
    let q = ((1.0 - sf) * v).clamp(0.0, 1.0);
    let t = ((sf + rest) * v).clamp(0.0, 1.0);
    let p = (rest * v).clamp(0.0, 1.0);
    match i {
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        5 => [v, p, q],
        // 0, and 6 if a hue was rounded up to 1.
        _ => [v, t, p],
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::recipe::PcaLighting;
    use crate::tests_support::golden;

    #[derive(Deserialize)]
    struct Manifest {
        cases: Vec<Case>,
    }

    #[derive(Debug, Deserialize)]
    struct Case {
        alpha: [f64; 3],
        eigenvalues: [f64; 3],
        eigenvectors: [[f64; 3]; 3],
        unit: f64,
        pixel: [u8; 3],
        added: [f32; 3],
        behind: [f32; 3],
        whole: [u8; 3],
    }

    fn shifted<T: ChannelLevel>(pixel: RgbPixel<T>, by: [f32; 3]) -> RgbPixel<T> {
        let mut pixels = [pixel];
        let view = PixelViewMut {
            pixels: &mut pixels,
            width: 1,
            height: 1,
            stride: 1,
        };
        shift(view, by);
        pixels[0]
    }

    /// tests/goldens/lighting.tar, which scripts/op_goldens/lighting.py has written.
    #[test]
    fn colour_noise_is_that_of_numpy() {
        let manifest = golden("lighting", "manifest.json").unwrap();
        let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
        assert!(manifest.cases.len() >= 60);
        let mut moved = 0;
        for case in &manifest.cases {
            let op = PcaLighting {
                std: 1.0,
                eigenvalues: case.eigenvalues,
                eigenvectors: case.eigenvectors,
                unit: case.unit,
            };
            let by = op.noise(case.alpha);
            let floats = shifted(case.pixel.map(f32::from), by);
            // A sum of f64 in another order, then f32: about 2^-15 of a level.
            let near = |a: [f32; 3], b: [f32; 3]| {
                let mut pairs = a.iter().zip(b);
                pairs.all(|(a, b)| (a - b).abs() <= 1e-6 * (256.0 + b.abs()))
            };
            assert!(near(by, case.added), "{by:?} of {case:?}");
            assert!(near(floats, case.behind), "{floats:?} of {case:?}");
            assert_eq!(shifted(case.pixel, by), case.whole, "{case:?}");
            moved += u32::from(case.whole != case.pixel);
        }
        assert!(moved > 20, "only {moved} pixels changed as bytes");
    }
}
