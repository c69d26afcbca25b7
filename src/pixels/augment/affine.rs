//! `Image.transform(AFFINE)` and `Image.rotate`: for each pixel the place that it
//! comes from.
//!
//! A place outside the picture shows the fill, unmixed; of one inside, taps beyond
//! an edge are the edge's. Fractions are cut. Sums have Pillow's order.

use std::io::Write;

use crate::pixels::shown::Shown;
use crate::pixels::view::Pixel;
use crate::recipe::Interpolation;

/// Fills `out`, tight, upright and of the picture's size.
///
/// `matrix` = a, b, c, d, e, f: the middle of pixel `(y, x)` comes from
/// `a x + b y + c` to the right and `d x + e y + f` down. Nearest, bilinear or
/// bicubic: no other interpolation gets here.
pub(crate) fn affine(
    src: &Shown<'_, u8>,
    matrix: [f64; 6],
    interpolation: Interpolation,
    fill: Pixel<u8>,
    out: &mut [Pixel<u8>],
) {
    match interpolation {
        Interpolation::Nearest => nearest(src, matrix, fill, out),
        Interpolation::Bicubic => between(src, matrix, fill, out, bicubic),
        _ => {
            debug_assert_eq!(interpolation, Interpolation::Bilinear);
            between(src, matrix, fill, out, bilinear);
        }
    }
}

/// The matrix of `Image.rotate` for a picture of this width and height.
pub(crate) fn rotation(degrees: f64, (width, height): (usize, usize)) -> [f64; 6] {
    // As Python's `%`.
    let angle = -degrees.rem_euclid(360.0).to_radians();
    let (cos, sin) = (libm::cos(angle), libm::sin(angle));
    let (a, b) = (rounded(cos), rounded(sin));
    let (d, e) = (rounded(-sin), a);
    let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
    [a, b, a * -x + b * -y + x, d, e, d * -x + e * -y + y]
}

/// Python's `round(v, 15)`, which goes by way of the decimal digits.
fn rounded(v: f64) -> f64 {
    let mut text = [0; 32];
    let mut rest = &mut text[..];
    let written = write!(rest, "{v:.15}");
    let left = rest.len();
    let digits = str::from_utf8(&text[..text.len() - left]).ok();
    let parsed = digits.and_then(|digits| digits.parse().ok());
    // Of a cosine all digits fit.
    parsed.filter(|_| written.is_ok()).unwrap_or(v)
}

/// Which of `n` pixels holds the place.
#[inline(always)]
fn holds(place: f64, n: usize) -> Option<usize> {
    (place >= 0.0 && place < n as f64).then_some(place as usize)
}

/// A pixel's own place and those beside it follow from each other by additions:
/// in 16.16 fixed point, or in `f64` where nothing is turned or sheared, or where
/// fixed point has no room.
fn nearest(src: &Shown<'_, u8>, matrix: [f64; 6], fill: Pixel<u8>, out: &mut [Pixel<u8>]) {
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

/// Whether the corners lie where 16.16 fixed point can say so.
fn fits_fixed([a, b, c, d, e, f]: [f64; 6], (w, h): (f64, f64)) -> bool {
    let near = |v: f64| v.abs() < 32_768.0;
    let corners = [(0.0, 0.0), (w, h), (0.0, h), (w, 0.0)];
    corners
        .iter()
        .all(|(x, y)| near(x * a + y * b + c) && near(x * d + y * e + f))
}

/// From the pixel left of and above the place, and how far that is.
#[inline(always)]
fn between(
    src: &Shown<'_, u8>,
    [a, b, c, d, e, f]: [f64; 6],
    fill: Pixel<u8>,
    out: &mut [Pixel<u8>],
    sample: impl Fn(&Shown<'_, u8>, (i64, i64), (f64, f64)) -> [f64; 3],
) {
    let (w, h) = (src.width as f64, src.height as f64);
    for (y, row) in out.chunks_exact_mut(src.width.max(1)).enumerate() {
        let y = y as f64 + 0.5;
        for (x, out) in row.iter_mut().enumerate() {
            let x = x as f64 + 0.5;
            let (right, down) = (a * x + b * y + c, d * x + e * y + f);
            let inside = right >= 0.0 && right < w && down >= 0.0 && down < h;
            if !inside {
                *out = fill;
                continue;
            }
            let (right, down) = (right - 0.5, down - 0.5);
            let (left, top) = (floor(right), floor(down));
            let part = (right - left as f64, down - top as f64);
            // A cast cuts, and holds to the range.
            *out = sample(src, (left, top), part).map(|v| v as u8);
        }
    }
}

/// std's is a call without SSE4.1.
#[inline(always)]
fn floor(v: f64) -> i64 {
    let cut = v as i64;
    cut - i64::from(v < cut as f64)
}

/// The `N` pixels from `from` on of a side of `n`.
#[inline(always)]
fn taps<const N: usize>(from: i64, n: usize) -> [usize; N] {
    std::array::from_fn(|i| (from + i as i64).clamp(0, n as i64 - 1) as usize)
}

#[inline(always)]
fn bilinear(src: &Shown<'_, u8>, (x, y): (i64, i64), (dx, dy): (f64, f64)) -> [f64; 3] {
    let line = |[p, q]: [[f64; 3]; 2], d: f64| -> [f64; 3] {
        std::array::from_fn(|c| p[c] + (q[c] - p[c]) * d)
    };
    let columns = taps::<2>(x, src.width);
    let rows =
        taps::<2>(y, src.height).map(|y| line(columns.map(|x| src.pixel(x, y).map(f64::from)), dx));
    line(rows, dy)
}

/// Keys' cubic with a = -1.
#[inline(always)]
fn bicubic(src: &Shown<'_, u8>, (x, y): (i64, i64), (dx, dy): (f64, f64)) -> [f64; 3] {
    let cubic = |[p, q, r, s]: [[f64; 3]; 4], t: f64| -> [f64; 3] {
        std::array::from_fn(|c| {
            let (v1, v2, v3, v4) = (p[c], q[c], r[c], s[c]);
            let p2 = -v1 + v3;
            let p3 = 2.0 * (v1 - v2) + v3 - v4;
            let p4 = -v1 + v2 - v3 + v4;
            v2 + t * (p2 + t * (p3 + t * p4))
        })
    };
    let columns = taps::<4>(x - 1, src.width);
    let rows = taps::<4>(y - 1, src.height)
        .map(|y| cubic(columns.map(|x| src.pixel(x, y).map(f64::from)), dx));
    cubic(rows, dy)
}
