//! The plain form of all others: places, and the sums of a pixel.

use std::ops::Range;

use crate::pixels::pixel_view::{PixelView, RgbPixel};

/// Binary places of a place. A place is below 65,536 pixels.
pub(super) const PLACE_BITS: u32 = 15;
/// The part of a place beyond a pixel.
pub(super) const PART: i32 = (1 << PLACE_BITS) - 1;
/// Binary places of a level.
pub(super) const LEVEL_BITS: u32 = 7;

/// An image, and the colour outside.
pub(super) type WarpSource<'a> = (PixelView<'a, u8>, RgbPixel<u8>);

/// The pixels that are computed.
#[derive(Debug, Clone)]
pub(super) struct WarpWindow {
    pub(super) matrix: [f64; 6],
    pub(super) columns: Range<usize>,
    pub(super) rows: Range<usize>,
}

/// The places of the pixels of a row: columns and rows of the source, times 2^15.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarpPlaces {
    /// From one pixel to the next.
    pub(super) step: [f64; 2],
    pub(super) first: [f64; 2],
}

impl WarpPlaces {
    pub(super) fn new([a, b, c, d, e, f]: [f64; 6], y: usize) -> Self {
        const ONE: f64 = (1 << PLACE_BITS) as f64;
        let y = y as f64 + 0.5;
        let first = [a * 0.5 + b * y + c - 0.5, d * 0.5 + e * y + f - 0.5];
        Self {
            step: [a * ONE, d * ONE],
            first: first.map(|v| v * ONE),
        }
    }

    /// The column and the row of pixel `x`.
    #[inline(always)]
    pub(super) fn at(&self, x: usize) -> [i32; 2] {
        let x = x as f64;
        let [right, down] = self.step;
        [
            fixed(right * x + self.first[0]),
            fixed(down * x + self.first[1]),
        ]
    }
}

/// To the nearest whole number, halves to even. The least one if it has no room, as in AVX2: it lies
/// outside of every image.
#[inline(always)]
fn fixed(v: f64) -> i32 {
    // Beyond 2^52 a double has no fraction, so the addition rounds. std's function is a call
    // without SSE4.1.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    const END: f64 = 2_147_483_648.0;
    let near = v + WHOLE - WHOLE;
    match (-END..END).contains(&near) {
        true => near as i32,
        false => i32::MIN,
    }
}

/// From `p` to `q`, by this part of 2^15. Halves are rounded up.
#[inline(always)]
pub(super) fn mix(p: i16, q: i16, part: i16) -> i16 {
    let product = i32::from(q - p) * i32::from(part);
    p + ((product + (1 << (PLACE_BITS - 1))) >> PLACE_BITS) as i16
}

/// The byte of a mixed level.
#[inline(always)]
pub(super) fn level(v: i16) -> u8 {
    ((v + (1 << (LEVEL_BITS - 1))) >> LEVEL_BITS) as u8
}

/// The row's pixels from `x` on.
pub(super) fn row(
    places: &WarpPlaces,
    x: usize,
    (src, fill): WarpSource<'_>,
    out: &mut [RgbPixel<u8>],
) {
    for (x, out) in (x..).zip(out) {
        let [right, down] = places.at(x);
        let (left, top) = (right >> PLACE_BITS, down >> PLACE_BITS);
        let tap = |x: i32, y: i32| match (usize::try_from(x), usize::try_from(y)) {
            (Ok(x), Ok(y)) if x < src.width && y < src.height => src.pixels[y * src.stride + x],
            _ => fill,
        };
        let above = [tap(left, top), tap(left + 1, top)];
        let below = [tap(left, top + 1), tap(left + 1, top + 1)];
        let (right, down) = ((right & PART) as i16, (down & PART) as i16);
        // A loop: of closures the compiler makes calls.
        for (c, out) in out.iter_mut().enumerate() {
            let wide = |pixel: RgbPixel<u8>| i16::from(pixel[c]) << LEVEL_BITS;
            let first = mix(wide(above[0]), wide(below[0]), down);
            let second = mix(wide(above[1]), wide(below[1]), down);
            *out = level(mix(first, second, right));
        }
    }
}
