//! `ImageEnhance`: mixes a degraded image (factor 0) with the original (factor 1). Factors above 1
//! extrapolate.

use super::table;
use crate::pixels::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::pixels::tensor;

/// `Image.blend` of one level: a product in `f32`, truncated and clamped to the range.
#[inline(always)]
pub(super) fn blended(from: u8, to: u8, factor: f32) -> u8 {
    let distance = f32::from(i16::from(to) - i16::from(from));
    (f32::from(from) + factor * distance) as u8
}

/// Pillow's `L`.
#[inline(always)]
fn luma(pixel: RgbPixel<u8>) -> u8 {
    let [r, g, b] = pixel.map(u32::from);
    ((19_595 * r + 38_470 * g + 7_471 * b + 0x8000) >> 16) as u8
}

/// Mixes with black.
pub(crate) fn brightness(pixels: PixelViewMut<'_, u8>, factor: f32) {
    table::map(pixels, &table::of(|level| blended(0, level, factor)));
}

/// Mixes with the rounded mean of the image's `L`.
pub(crate) fn contrast(pixels: PixelViewMut<'_, u8>, factor: f32) {
    let view = pixels.as_view();
    let count = (view.width * view.height) as f64;
    let sum: u64 = view.rows().flatten().map(|p| u64::from(luma(*p))).sum();
    let mean = (sum as f64 / count + 0.5) as u8;
    table::map(pixels, &table::of(|level| blended(mean, level, factor)));
}

/// Mixes with the pixel's own `L`.
pub(crate) fn color(mut pixels: PixelViewMut<'_, u8>, factor: f32) {
    for row in pixels.rows_mut() {
        for pixel in row {
            let grey = luma(*pixel);
            *pixel = pixel.map(|v| blended(grey, v, factor));
        }
    }
}

/// Mixes with the smoothed image and writes `out`, which is tight. Border pixels lack neighbours
/// and stay unchanged. The result does not depend on the stored orientation.
pub(crate) fn sharpness(pixels: PixelView<'_, u8>, factor: f32, out: &mut [RgbPixel<u8>]) {
    sharpen(pixels, |smooth, v| blended(smooth, v, factor), out);
}

/// As [`sharpness`], with torchvision's arithmetic of tensors.
pub(crate) fn tensor_sharpness(pixels: PixelView<'_, u8>, factor: f32, out: &mut [RgbPixel<u8>]) {
    sharpen(
        pixels,
        |smooth, v| tensor::sharpened(smooth, v, factor),
        out,
    );
}

/// `mix` receives the smoothed level and the level itself.
#[inline(always)]
fn sharpen(pixels: PixelView<'_, u8>, mix: impl Fn(u8, u8) -> u8, out: &mut [RgbPixel<u8>]) {
    let (width, height) = (pixels.width, pixels.height);
    for (y, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
        let row = pixels.row(y);
        out.copy_from_slice(row);
        if y == 0 || y + 1 >= height || width < 3 {
            continue;
        }
        let rows = [pixels.row(y - 1), row, pixels.row(y + 1)].map(<[_]>::as_flattened);
        let inner = &mut out.as_flattened_mut()[3..3 * (width - 1)];
        for (at, out) in inner.iter_mut().enumerate() {
            // Left, centre and right are three channels apart.
            let nine: u32 = (rows.iter())
                .map(|row| u32::from(row[at]) + u32::from(row[at + 3]) + u32::from(row[at + 6]))
                .sum();
            let middle = rows[1][at + 3];
            *out = mix(smooth(nine + 4 * u32::from(middle)), middle);
        }
    }
}

/// `ImageFilter.SMOOTH`: weights of 1, and 5 in the centre, divided by 13 and rounded.
#[inline(always)]
fn smooth(sum: u32) -> u8 {
    ((2 * sum + 13) / 26) as u8
}
