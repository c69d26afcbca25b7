//! A rotation by any angle about the centre: torchvision's `rotate` of tensors, for bytes and
//! floats.
//!
//! It allocates nothing. Places are `f64`, where torchvision has `f32`. So a place that rounding
//! puts exactly between two pixels in torchvision is computed more precisely here. Sine and cosine
//! are libm's, and exact for quarter turns.

use super::level::ChannelLevel;
use super::oriented_pixels::OrientedPixels;
use super::pixel_view::{PixelView, RgbPixel};
use crate::recipe::geometry::cos_sin;
use crate::recipe::{InterpolationMode, PixelPlacement};

/// Fills `out`, which is tight, upright and of `size` (width, height). It shows the image with
/// orientation `placement`, rotated by `degrees` counter-clockwise about the centres of both.
/// `size` may differ from the image's size.
///
/// `Nearest` shows `fill` where no pixel's area contains the place. All other modes are bilinear,
/// exactly as in torchvision: pixels outside are black, and `fill` is then mixed in by the weight
/// of those pixels. So the last half pixel of an image is slightly darker than a plain blend.
pub(crate) fn rotate<T: ChannelLevel>(
    src: PixelView<'_, T>,
    placement: PixelPlacement,
    degrees: f64,
    interpolation: InterpolationMode,
    size: (usize, usize),
    fill: [f32; 3],
    out: &mut [RgbPixel<T>],
) {
    assert_eq!(
        out.len(),
        size.0 * size.1,
        "the output does not hold {} x {} pixels",
        size.1,
        size.0
    );
    if out.is_empty() {
        return;
    }
    let shown = OrientedPixels::new(src, placement);
    let (cos, sin) = cos_sin(degrees);
    let middle = |n: usize| (n as f64 - 1.0) / 2.0;
    let filler = fill.map(T::rounded);
    for (y, row) in out.chunks_exact_mut(size.0).enumerate() {
        let dy = y as f64 - middle(size.1);
        for (x, out) in row.iter_mut().enumerate() {
            let dx = x as f64 - middle(size.0);
            let sx = (dx * cos - dy * sin) + middle(shown.width);
            let sy = (dx * sin + dy * cos) + middle(shown.height);
            *out = match interpolation {
                InterpolationMode::Nearest => {
                    let (x, y) = (sx.round_ties_even(), sy.round_ties_even());
                    shown.at(x as i64, y as i64).unwrap_or(filler)
                }
                _ => between(&shown, sx, sy, fill),
            };
        }
    }
}

/// Mixes the four pixels around a place by their distance, and the fill.
pub(super) fn between<T: ChannelLevel>(
    shown: &OrientedPixels<'_, T>,
    x: f64,
    y: f64,
    fill: [f32; 3],
) -> RgbPixel<T> {
    let (sums, mask) = sampled(shown, x, y);
    filled(sums, mask, fill).map(T::rounded)
}

/// Mixes the fill in by the weight of the pixels outside the image.
#[inline(always)]
pub(super) fn filled(sums: [f32; 3], mask: f32, fill: [f32; 3]) -> [f32; 3] {
    let mut out = [0.0; 3];
    for ((out, sum), fill) in out.iter_mut().zip(sums).zip(fill) {
        *out = (sum - fill) * mask + fill;
    }
    out
}

/// The four pixels around a place, weighted by their distance, and the sum of the weights. Pixels
/// outside the image are black, without a weight.
#[inline(always)]
pub(super) fn sampled<T: ChannelLevel>(
    shown: &OrientedPixels<'_, T>,
    x: f64,
    y: f64,
) -> ([f32; 3], f32) {
    let (left, top) = (x.floor(), y.floor());
    let (right, down) = ((x - left) as f32, (y - top) as f32);
    let (left, top) = (left as i64, top as i64);
    let mut sums = [0.0f32; 3];
    let mut mask = 0.0f32;
    for (dx, dy, weight) in [
        (0, 0, (1.0 - right) * (1.0 - down)),
        (1, 0, right * (1.0 - down)),
        (0, 1, (1.0 - right) * down),
        (1, 1, right * down),
    ] {
        if let Some(pixel) = shown.at(left + dx, top + dy) {
            for (sum, v) in sums.iter_mut().zip(pixel) {
                *sum += v.level() * weight;
            }
            mask += weight;
        }
    }
    (sums, mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::geometry::rotated_size;

    const ALL: [InterpolationMode; 2] = [InterpolationMode::Nearest, InterpolationMode::Bilinear];

    fn placements() -> impl Iterator<Item = PixelPlacement> {
        (0..8).map(|i| PixelPlacement {
            flip_x: i & 1 != 0,
            flip_y: i & 2 != 0,
            transpose: i & 4 != 0,
        })
    }

    /// The upright image, without gaps.
    fn upright(src: PixelView<'_, u8>, p: PixelPlacement) -> (Vec<RgbPixel<u8>>, (usize, usize)) {
        let size = p.output_size(src.width, src.height);
        let mut out = Vec::new();
        for y in 0..size.1 {
            for x in 0..size.0 {
                let (mut sy, mut sx) = if p.transpose { (x, y) } else { (y, x) };
                if p.flip_x {
                    sx = src.width - 1 - sx;
                }
                if p.flip_y {
                    sy = src.height - 1 - sy;
                }
                out.push(src.row(sy)[sx]);
            }
        }
        (out, size)
    }

    fn picture(n: usize) -> Vec<RgbPixel<u8>> {
        let v = |i: usize| (i * 89 % 251) as u8;
        (0..n).map(|i| [v(i), v(i + 7), v(i * 3)]).collect()
    }

    #[test]
    fn a_stored_picture_turns_as_the_upright_one() {
        let pixels = picture(9 * 6);
        let src = PixelView {
            pixels: &pixels,
            width: 7,
            height: 6,
            stride: 9,
        };
        let fill = [200.0, 3.0, 77.5];
        for p in placements() {
            let (whole, (w, h)) = upright(src, p);
            let tight = PixelView::tight(&whole, w, h);
            for degrees in [0.0, 33.3, -120.5, 90.0, 180.0, 270.0] {
                for how in ALL {
                    let (ow, oh) = rotated_size(w as u32, h as u32, degrees);
                    for size in [(w, h), (ow as usize, oh as usize)] {
                        let mut a = vec![[1; 3]; size.0 * size.1];
                        let mut b = a.clone();
                        rotate(src, p, degrees, how, size, fill, &mut a);
                        let none = PixelPlacement::default();
                        rotate(tight, none, degrees, how, size, fill, &mut b);
                        assert_eq!(a, b, "{p:?} {degrees} {how:?} {size:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn quarters_move_pixels_and_change_none() {
        let pixels = picture(35);
        let src = PixelView::tight(&pixels, 7, 5);
        for quarters in 0..4u8 {
            let (expected, (w, h)) = upright(src, PixelPlacement::default().turned(quarters));
            for degrees in [90.0, -270.0, 450.0].map(|d| d * f64::from(quarters)) {
                let size = rotated_size(7, 5, degrees);
                let how_many = (degrees / 90.0).rem_euclid(4.0) as u8;
                if how_many != quarters {
                    continue;
                }
                assert_eq!((size.0 as usize, size.1 as usize), (w, h));
                for how in ALL {
                    let mut out = vec![[0; 3]; w * h];
                    let none = PixelPlacement::default();
                    rotate(src, none, degrees, how, (w, h), [99.0; 3], &mut out);
                    assert_eq!(out, expected, "{degrees} {how:?}");
                }
            }
        }
    }

    #[test]
    fn sizes_are_torchvisions() {
        for (w, h, degrees, size) in [
            (37, 29, 0.0, (37, 29)),
            (37, 29, 90.0, (29, 37)),
            (37, 29, -90.0, (29, 37)),
            (37, 29, 360.0, (37, 29)),
            (100, 100, 45.0, (142, 142)),
            (1, 1, 45.0, (3, 3)),
        ] {
            assert_eq!(rotated_size(w, h, degrees), size, "{w} x {h} by {degrees}");
        }
    }
}
