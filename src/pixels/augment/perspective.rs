//! `Image.transform(PERSPECTIVE)`: finds the source place of each output pixel.
//!
//! A place outside the image or at infinity shows the unmixed fill. Near an edge, missing taps
//! repeat the edge. Levels are truncated. Sums have Pillow's order.

use super::affine::holds;
use super::interpolate::{TransformOptions, interpolate};
use super::kernel::{CubicKernel, LinearKernel};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::recipe::InterpolationMode;

/// Fills `out`, which is tight, upright and of the image's size.
///
/// `coefficients` = a, b, c, d, e, f, g, h: the centre of pixel `(y, x)` comes from `(a x + b y +
/// c) / (g x + h y + 1)` to the right and `(d x + e y + f) / (g x + h y + 1)` down.
pub(crate) fn perspective(
    src: &OrientedPixels<'_, u8>,
    coefficients: [f64; 8],
    options: TransformOptions,
    out: &mut [RgbPixel<u8>],
) {
    let [a, b, c, d, e, f, g, h] = coefficients;
    let from = |x: f64, y: f64| {
        let depth = g * x + h * y + 1.0;
        ((a * x + b * y + c) / depth, (d * x + e * y + f) / depth)
    };
    match options.interpolation {
        InterpolationMode::Nearest => {
            for (y, row) in out.chunks_exact_mut(src.width.max(1)).enumerate() {
                for (x, out) in row.iter_mut().enumerate() {
                    let (right, down) = from(x as f64 + 0.5, y as f64 + 0.5);
                    *out = match (holds(right, src.width), holds(down, src.height)) {
                        (Some(x), Some(y)) => src.pixel(x, y),
                        _ => options.fill,
                    };
                }
            }
        }
        InterpolationMode::Bicubic => interpolate::<CubicKernel>(src, from, options, out),
        mode => {
            debug_assert_eq!(mode, InterpolationMode::Bilinear);
            interpolate::<LinearKernel>(src, from, options, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::augment::affine::affine;
    use crate::pixels::pixel_view::PixelView;
    use crate::recipe::PixelPlacement;

    const FILL: RgbPixel<u8> = [9, 8, 7];

    fn picture() -> Vec<RgbPixel<u8>> {
        let v = |i: usize| (i * 89 % 251) as u8;
        (0..11 * 8).map(|i| [v(i), v(i + 7), v(i * 3)]).collect()
    }

    #[test]
    fn without_vanishing_points_it_is_affine() {
        let pixels = picture();
        let shown =
            OrientedPixels::new(PixelView::tight(&pixels, 11, 8), PixelPlacement::default());
        let matrix = [0.8, 0.3, 1.3, -0.25, 1.1, 2.5];
        let [a, b, c, d, e, f] = matrix;
        for how in [InterpolationMode::Bilinear, InterpolationMode::Bicubic] {
            let (mut got, mut want) = (vec![[0; 3]; 88], vec![[1; 3]; 88]);
            let options = TransformOptions::whole(&shown, how, FILL);
            perspective(&shown, [a, b, c, d, e, f, 0.0, 0.0], options, &mut got);
            affine(&shown, matrix, options, &mut want);
            assert_eq!(got, want);
        }
    }

    #[test]
    fn places_that_are_nowhere_show_the_fill() {
        let pixels = picture();
        let shown =
            OrientedPixels::new(PixelView::tight(&pixels, 11, 8), PixelPlacement::default());
        let far = [0.0, 0.0, 1e300, 0.0, 0.0, -1e300, 1e-300, 0.0];
        let no_number = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, f64::INFINITY];
        let divided = [f64::INFINITY, 0.0, 0.0, 0.0, 0.0, 0.0, f64::INFINITY, 0.0];
        for how in [
            InterpolationMode::Nearest,
            InterpolationMode::Bilinear,
            InterpolationMode::Bicubic,
        ] {
            for coefficients in [far, divided] {
                let mut out = vec![[0; 3]; 88];
                let options = TransformOptions::whole(&shown, how, FILL);
                perspective(&shown, coefficients, options, &mut out);
                assert!(out.iter().all(|pixel| *pixel == FILL), "{how:?}");
            }
        }
        // Every pixel comes from the corner.
        for how in [InterpolationMode::Nearest, InterpolationMode::Bilinear] {
            let mut out = vec![[0; 3]; 88];
            let options = TransformOptions::whole(&shown, how, FILL);
            perspective(&shown, no_number, options, &mut out);
            assert!(out.iter().all(|pixel| *pixel == pixels[0]), "{how:?}");
        }
    }
}
