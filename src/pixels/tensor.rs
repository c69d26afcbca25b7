//! torchvision's operations on `uint8` tensors, for its AugMix. They differ from Pillow's in the
//! rim of moved images and in the order of roundings.

use super::grey::fused;
use super::level::ChannelLevel;
use super::oriented_pixels::OrientedPixels;
use super::pixel_view::RgbPixel;
use super::rotate::{filled, sampled};
use crate::recipe::InterpolationMode;

/// Fills `out`, which is tight, upright and of the image's size: `affine` of a tensor.
///
/// `matrix` = a, b, c, d, e, f: pixel `(y, x)`, counted from the middle, comes from `a x + b y + c`
/// to the right and `d x + e y + f` down. Places are `f64`, where torch has `f32`. `fill` as in
/// `rotate`; without one, pixels outside are black.
pub(super) fn affine(
    src: &OrientedPixels<'_, u8>,
    [a, b, c, d, e, f]: [f64; 6],
    interpolation: InterpolationMode,
    fill: Option<[u8; 3]>,
    out: &mut [RgbPixel<u8>],
) {
    let middle = |n: usize| (n as f64 - 1.0) / 2.0;
    let (across, down) = (middle(src.width), middle(src.height));
    let mixed = fill.map(|fill| fill.map(f32::from));
    for (y, row) in out.chunks_exact_mut(src.width.max(1)).enumerate() {
        let y = y as f64 - down;
        for (x, out) in row.iter_mut().enumerate() {
            let x = x as f64 - across;
            let (sx, sy) = (a * x + b * y + c + across, d * x + e * y + f + down);
            *out = match interpolation {
                InterpolationMode::Nearest => {
                    let (x, y) = (sx.round_ties_even(), sy.round_ties_even());
                    src.at(x as i64, y as i64)
                        .unwrap_or(fill.unwrap_or_default())
                }
                _ => {
                    let (sums, mask) = sampled(src, sx, sy);
                    let sums = mixed.map_or(sums, |fill| filled(sums, mask, fill));
                    sums.map(u8::rounded)
                }
            };
        }
    }
}

/// One level by `adjust_sharpness`: `v + (1 - factor) * (smooth - v)`, rounded once, truncated.
#[inline(always)]
pub(super) fn sharpened(smooth: u8, v: u8, factor: f32) -> u8 {
    let v = f32::from(v);
    let rest = (1.0 - f64::from(factor)) as f32;
    fused(v, f32::from(smooth) - v, rest).clamp(0.0, 255.0) as u8
}

/// One level by `autocontrast`, if the channel has levels from `least` to `most`.
pub(super) fn stretched(level: u8, least: u8, most: u8) -> u8 {
    let (level, least, most) = (f32::from(level), f32::from(least), f32::from(most));
    let scale = (most - least) * (1.0 / 255.0);
    ((level - least) / scale).clamp(0.0, 255.0) as u8
}
