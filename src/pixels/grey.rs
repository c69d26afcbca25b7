//! Grey images with three equal channels: torchvision's and Pillow's.

use super::level::ChannelLevel;
use super::pixel_view::{PixelViewMut, RgbPixel};

/// torchvision's `rgb_to_grayscale`: 0.2989 R + 0.587 G + 0.114 B. `u8` levels are truncated, so
/// white becomes 254.
pub(crate) fn grayscale<T: ChannelLevel>(mut pixels: PixelViewMut<'_, T>) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = [T::truncated(weighted(*pixel)); 3];
        }
    }
}

/// Pillow's `L`, for whole levels only.
pub(crate) fn luma(mut pixels: PixelViewMut<'_, u8>) {
    for row in pixels.rows_mut() {
        for pixel in row {
            let [r, g, b] = pixel.map(u32::from);
            *pixel = [((19_595 * r + 38_470 * g + 7_471 * b + 0x8000) >> 16) as u8; 3];
        }
    }
}

/// The sum by torchvision's weights, with torch's roundings: a product, then two products added
/// before rounding. On x86-64 torch fuses those two. Here the product of two `f32` is exact in
/// `f64`, on every CPU.
#[inline(always)]
pub(super) fn weighted<T: ChannelLevel>(pixel: RgbPixel<T>) -> f32 {
    let [r, g, b] = pixel.map(T::level);
    fused(fused(r * 0.2989, g, 0.587), b, 0.114)
}

/// `sum + v * factor`, rounded once.
#[inline(always)]
pub(super) fn fused(sum: f32, v: f32, factor: f32) -> f32 {
    (f64::from(sum) + f64::from(v) * f64::from(factor)) as f32
}
