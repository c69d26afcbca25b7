//! `Image.transform(AFFINE)` and `Image.rotate`: finds the source place of each output pixel.
//!
//! A place outside the image shows the unmixed fill. Near an edge, missing taps repeat the edge.
//! Levels are truncated. Sums have Pillow's order.

use std::io::Write;

use super::interpolate::{TransformOptions, interpolate};
use super::kernel::{CubicKernel, LinearKernel};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::recipe::InterpolationMode;

/// Fills `out`, which is tight, upright and of the image's size.
///
/// `matrix` = a, b, c, d, e, f: the centre of pixel `(y, x)` comes from `a x + b y + c` to the
/// right and `d x + e y + f` down.
pub(crate) fn affine(
    src: &OrientedPixels<'_, u8>,
    matrix: [f64; 6],
    options: TransformOptions,
    out: &mut [RgbPixel<u8>],
) {
    let [a, b, c, d, e, f] = matrix;
    let from = |x: f64, y: f64| (a * x + b * y + c, d * x + e * y + f);
    match options.interpolation {
        InterpolationMode::Nearest => nearest(src, matrix, options.fill, out),
        InterpolationMode::Bicubic => interpolate::<CubicKernel>(src, from, options, out),
        mode => {
            debug_assert_eq!(mode, InterpolationMode::Bilinear);
            interpolate::<LinearKernel>(src, from, options, out);
        }
    }
}

/// The matrix of `Image.rotate` for an image of this width and height.
pub(crate) fn rotation(degrees: f64, (width, height): (usize, usize)) -> [f64; 6] {
    // As Python's `%`.
    let angle = -degrees.rem_euclid(360.0).to_radians();
    let (cos, sin) = (libm::cos(angle), libm::sin(angle));
    let (a, b) = (rounded(cos), rounded(sin));
    let (d, e) = (rounded(-sin), a);
    let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
    [a, b, a * -x + b * -y + x, d, e, d * -x + e * -y + y]
}

/// Python's `round(v, 15)`, which rounds through decimal digits.
fn rounded(v: f64) -> f64 {
    let mut text = [0; 32];
    let mut rest = &mut text[..];
    let written = write!(rest, "{v:.15}");
    let left = rest.len();
    let digits = str::from_utf8(&text[..text.len() - left]).ok();
    let parsed = digits.and_then(|digits| digits.parse().ok());
    // All digits of a sine or cosine fit into `text`.
    parsed.filter(|_| written.is_ok()).unwrap_or(v)
}

/// The one of `n` pixels that contains the place.
#[inline(always)]
pub(super) fn holds(place: f64, n: usize) -> Option<usize> {
    (place >= 0.0 && place < n as f64).then_some(place as usize)
}

/// Computes the source places by repeated addition: in 16.16 fixed point, or in `f64` if there is
/// no rotation or shear or if fixed point would overflow.
fn nearest(
    src: &OrientedPixels<'_, u8>,
    matrix: [f64; 6],
    fill: RgbPixel<u8>,
    out: &mut [RgbPixel<u8>],
) {
    let (w, h) = (src.width, src.height);
    let [a, b, c, d, e, f] = matrix;
    let start = (c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5);
    let rows = out.chunks_exact_mut(w.max(1));
    let pixel = |at: (Option<usize>, Option<usize>)| match at {
        (Some(x), Some(y)) => src.pixel(x, y),
        _ => fill,
    };
    if b != 0.0 || d != 0.0 {
        if fits_fixed(matrix, (w as f64, h as f64)) {
            let fixed = |v: f64| (v * 65_536.0 + 0.5).floor() as i64;
            let [a, b, d, e] = [a, b, d, e].map(fixed);
            let mut first = (fixed(start.0), fixed(start.1));
            for row in rows {
                let mut at = first;
                for out in row {
                    *out = src.at(at.0 >> 16, at.1 >> 16).unwrap_or(fill);
                    at = (at.0 + a, at.1 + d);
                }
                first = (first.0 + b, first.1 + e);
            }
            return;
        }
        let mut first = start;
        for row in rows {
            let mut at = first;
            for out in row {
                *out = pixel((holds(at.0, w), holds(at.1, h)));
                at = (at.0 + a, at.1 + d);
            }
            first = (first.0 + b, first.1 + e);
        }
        return;
    }
    let (left, mut down) = (c + a * 0.5, f + e * 0.5);
    for row in rows {
        let y = holds(down, h);
        let mut right = left;
        for out in row {
            *out = pixel((holds(right, w), y));
            right += a;
        }
        down += e;
    }
}

/// True if the corners fit into 16.16 fixed point.
fn fits_fixed([a, b, c, d, e, f]: [f64; 6], (w, h): (f64, f64)) -> bool {
    let near = |v: f64| v.abs() < 32_768.0;
    let corners = [(0.0, 0.0), (w, h), (0.0, h), (w, 0.0)];
    corners
        .iter()
        .all(|(x, y)| near(x * a + y * b + c) && near(x * d + y * e + f))
}
