//! AugMix: adds weighted variants of an image and mixes the sum with the original.
//!
//! As NumPy computes it on bytes with `f32` weights: products in `f32`, sums in `f64`. All kept
//! images are upright and tight.

use super::blend::blended;
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;

/// Copies the image, upright and tight.
pub(crate) fn copy(picture: &OrientedPixels<'_, u8>, to: &mut [RgbPixel<u8>]) {
    picture.write_each(to, |pixel, to| *to = pixel);
}

/// Adds the image with this weight.
pub(crate) fn add(picture: &OrientedPixels<'_, u8>, weight: f32, sum: &mut [RgbPixel<f64>]) {
    picture.write_each(sum, |pixel, sum| {
        for (sum, v) in sum.iter_mut().zip(pixel) {
            *sum += f64::from(weight * f32::from(v));
        }
    });
}

/// As [`add`], with sums in single precision, as torch adds.
pub(crate) fn add_single(picture: &OrientedPixels<'_, u8>, weight: f32, sum: &mut [RgbPixel<f64>]) {
    picture.write_each(sum, |pixel, sum| {
        for (sum, v) in sum.iter_mut().zip(pixel) {
            *sum = f64::from(*sum as f32 + weight * f32::from(v));
        }
    });
}

/// Mixes the image into whole levels by Pillow's `Image.blend`.
pub(crate) fn mix_in(picture: &OrientedPixels<'_, u8>, by: f32, sum: &mut [RgbPixel<f64>]) {
    picture.write_each(sum, |pixel, sum| {
        for (sum, v) in sum.iter_mut().zip(pixel) {
            *sum = f64::from(blended(*sum as u8, v, by));
        }
    });
}

/// Pillow's `Image.blend` of the kept image and the sum, truncated.
pub(crate) fn blend_total(
    kept: &[RgbPixel<u8>],
    sum: &[RgbPixel<f64>],
    by: f32,
    out: &mut [RgbPixel<u8>],
) {
    let values = kept.as_flattened().iter().zip(sum.as_flattened());
    for (out, (kept, sum)) in out.as_flattened_mut().iter_mut().zip(values) {
        *out = blended(*kept, *sum as u8, by);
    }
}

/// The sum, truncated.
pub(crate) fn total(sum: &[RgbPixel<f64>], out: &mut [RgbPixel<u8>]) {
    for (out, sum) in out.as_flattened_mut().iter_mut().zip(sum.as_flattened()) {
        *out = *sum as u8;
    }
}

/// `(1 - by) * kept + by * sum`, truncated.
pub(crate) fn blend(
    kept: &[RgbPixel<u8>],
    sum: &[RgbPixel<f64>],
    by: f32,
    out: &mut [RgbPixel<u8>],
) {
    let rest = 1.0 - by;
    let values = kept.as_flattened().iter().zip(sum.as_flattened());
    for (out, (kept, sum)) in out.as_flattened_mut().iter_mut().zip(values) {
        let v = f64::from(rest * f32::from(*kept)) + f64::from(by) * sum;
        *out = v as u8;
    }
}
