//! Converts sRGB levels to CIELAB, HSV and YCbCr, in `f32`, unrounded. Ranges are those of
//! [`ColorSpace`].
//!
//! Grey stays exactly grey: a and b are 0, saturation is 0, Cb and Cr are 128. So each sum of
//! channels uses differences to green.

use super::level::ChannelLevel;
use super::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::recipe::{ColorSpace, WhitePoint};

type Matrix = [[f64; 3]; 3];

/// IEC 61966-2-1: linear sRGB to XYZ, Y of white 1.
const SRGB_TO_XYZ: Matrix = [
    [0.412_456_4, 0.357_576_1, 0.180_437_5],
    [0.212_672_9, 0.715_152_2, 0.072_175_0],
    [0.019_333_9, 0.119_192_0, 0.950_304_1],
];
const D65: [f64; 3] = [0.95047, 1.0, 1.08883];
const D50: [f64; 3] = [0.96422, 1.0, 0.82521];
/// XYZ to cone responses.
const BRADFORD: Matrix = [
    [0.8951, 0.2664, -0.1614],
    [-0.7502, 1.7135, 0.0367],
    [0.0389, -0.0685, 1.0296],
];

/// Contributions of red and blue to X, Y and Z, relative to a white of 1. Green contributes the
/// rest.
type RedAndBlue = [[f32; 2]; 3];
const TO_D65: RedAndBlue = relative(SRGB_TO_XYZ, D65);
const TO_D50: RedAndBlue = relative(multiplied(adaptation(D65, D50), SRGB_TO_XYZ), D50);

/// Below this, the cube root is replaced by a straight line.
const LINE_BELOW: f32 = 216.0 / 24_389.0;

/// Table steps from one level to the next. The curve is interpolated linearly between them, with an
/// error below 3e-8.
const STEPS: usize = 16;

/// The conversions, with a table that is computed once.
#[derive(Debug)]
pub(crate) struct ColorConverter {
    light: Box<Light>,
}

/// Linear light of level 0, 1 / 16, ... 255.
type Light = [f32; 255 * STEPS + 1];

impl ColorConverter {
    pub(crate) fn new() -> Self {
        let mut light = Box::new([0.0; 255 * STEPS + 1]);
        for (i, light) in light.iter_mut().enumerate() {
            *light = of_curve(i as f64 / (255 * STEPS) as f64);
        }
        Self { light }
    }

    /// Fills `out`, rows without gaps. Only CIELAB uses the white point.
    pub(crate) fn convert<T: LinearLight>(
        &self,
        pixels: PixelView<'_, T>,
        to: ColorSpace,
        white: WhitePoint,
        out: &mut [RgbPixel<f32>],
    ) {
        match to {
            ColorSpace::Lab => {
                let parts = parts(white);
                each(pixels, out, |p| lab(p.map(|v| v.light(&self.light)), parts));
            }
            ColorSpace::Hsv => each(pixels, out, |p| hsv(p.map(T::level))),
            ColorSpace::Ycbcr => each(pixels, out, |p| ycbcr(p.map(T::level))),
        }
    }

    pub(crate) fn convert_in_place(
        &self,
        pixels: PixelViewMut<'_, f32>,
        to: ColorSpace,
        white: WhitePoint,
    ) {
        match to {
            ColorSpace::Lab => {
                let parts = parts(white);
                each_in_place(pixels, |p| lab(p.map(|v| v.light(&self.light)), parts));
            }
            ColorSpace::Hsv => each_in_place(pixels, hsv),
            ColorSpace::Ycbcr => each_in_place(pixels, ycbcr),
        }
    }
}

#[inline(always)]
fn each<T: ChannelLevel>(
    pixels: PixelView<'_, T>,
    out: &mut [RgbPixel<f32>],
    of: impl Fn(RgbPixel<T>) -> RgbPixel<f32>,
) {
    for (out, row) in out.chunks_exact_mut(pixels.width).zip(pixels.rows()) {
        for (to, &pixel) in out.iter_mut().zip(row) {
            *to = of(pixel);
        }
    }
}

#[inline(always)]
fn each_in_place(mut pixels: PixelViewMut<'_, f32>, of: impl Fn(RgbPixel<f32>) -> RgbPixel<f32>) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = of(*pixel);
        }
    }
}

/// Converts a level to linear light, 0 to 1.
pub(crate) trait LinearLight: ChannelLevel {
    fn light(self, table: &Light) -> f32;
}

impl LinearLight for u8 {
    #[inline(always)]
    fn light(self, table: &Light) -> f32 {
        table[usize::from(self) * STEPS]
    }
}

impl LinearLight for f32 {
    /// A whole level has the same light as in `u8`. Below 0 the line is extended, above 255 the
    /// curve.
    #[inline(always)]
    fn light(self, table: &Light) -> f32 {
        if !(0.0..=255.0).contains(&self) {
            return beyond(self);
        }
        let step = self * STEPS as f32;
        // White uses the last two entries.
        let first = (step as usize).min(255 * STEPS - 1);
        let (from, to) = (table[first], table[first + 1]);
        from + (to - from) * (step - first as f32)
    }
}

#[cold]
fn beyond(level: f32) -> f32 {
    of_curve(f64::from(level) / 255.0)
}

/// IEC 61966-2-1.
fn of_curve(c: f64) -> f32 {
    if c <= 0.04045 {
        (c / 12.92) as f32
    } else {
        libm::pow((c + 0.055) / 1.055, 2.4) as f32
    }
}

fn parts(white: WhitePoint) -> &'static RedAndBlue {
    match white {
        WhitePoint::D65 => &TO_D65,
        WhitePoint::D50 => &TO_D50,
    }
}

#[inline(always)]
fn lab([r, g, b]: [f32; 3], parts: &RedAndBlue) -> RgbPixel<f32> {
    let (red, blue) = (r - g, b - g);
    let [x, y, z] = parts.map(|[of_red, of_blue]| root(g + (of_red * red + of_blue * blue)));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The cube root, replaced by a line near 0.
#[inline(always)]
fn root(t: f32) -> f32 {
    if t > LINE_BELOW {
        libm::cbrtf(t)
    } else {
        (841.0 / 108.0) * t + 4.0 / 29.0
    }
}

#[inline(always)]
fn hsv([r, g, b]: [f32; 3]) -> RgbPixel<f32> {
    let most = r.max(g).max(b);
    let range = most - r.min(g).min(b);
    if range == 0.0 {
        return [0.0, 0.0, most / 255.0];
    }
    let hue = if most == r {
        60.0 * (g - b) / range
    } else if most == g {
        60.0 * (b - r) / range + 120.0
    } else {
        60.0 * (r - g) / range + 240.0
    };
    let hue = if hue < 0.0 { hue + 360.0 } else { hue };
    // A hue just below 0 rounds up to 360.
    let hue = if hue >= 360.0 { 0.0 } else { hue };
    [hue, range / most, most / 255.0]
}

/// ITU-T T.871. 1.772 and 1.402 are twice (1 - weight) of blue and red.
#[inline(always)]
fn ycbcr([r, g, b]: [f32; 3]) -> RgbPixel<f32> {
    let y = g + (0.299 * (r - g) + 0.114 * (b - g));
    [y, (b - y) / 1.772 + 128.0, (r - y) / 1.402 + 128.0]
}

/// Divides each row by the white point.
const fn relative(matrix: Matrix, white: [f64; 3]) -> RedAndBlue {
    let mut out = [[0.0; 2]; 3];
    let mut i = 0;
    while i < 3 {
        out[i] = [
            (matrix[i][0] / white[i]) as f32,
            (matrix[i][2] / white[i]) as f32,
        ];
        i += 1;
    }
    out
}

/// Converts colours under one white to those that look the same under another.
const fn adaptation(from: [f64; 3], to: [f64; 3]) -> Matrix {
    let (from, to) = (applied(BRADFORD, from), applied(BRADFORD, to));
    let mut scaled = BRADFORD;
    let mut i = 0;
    while i < 3 {
        let mut j = 0;
        while j < 3 {
            scaled[i][j] *= to[i] / from[i];
            j += 1;
        }
        i += 1;
    }
    multiplied(inverse(BRADFORD), scaled)
}

const fn applied(m: Matrix, v: [f64; 3]) -> [f64; 3] {
    let mut out = [0.0; 3];
    let mut i = 0;
    while i < 3 {
        out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
        i += 1;
    }
    out
}

const fn multiplied(a: Matrix, b: Matrix) -> Matrix {
    let mut out = [[0.0; 3]; 3];
    let mut i = 0;
    while i < 3 {
        let mut j = 0;
        while j < 3 {
            out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
            j += 1;
        }
        i += 1;
    }
    out
}

const fn inverse(m: Matrix) -> Matrix {
    let mut out = [[0.0; 3]; 3];
    let mut i = 0;
    while i < 3 {
        let mut j = 0;
        while j < 3 {
            // Cofactors, with cyclic indices.
            let (a, b, c, d) = ((j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3);
            out[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
            j += 1;
        }
        i += 1;
    }
    let determinant = m[0][0] * out[0][0] + m[0][1] * out[1][0] + m[0][2] * out[2][0];
    let mut i = 0;
    while i < 3 {
        let mut j = 0;
        while j < 3 {
            out[i][j] /= determinant;
            j += 1;
        }
        i += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<T: LinearLight>(pixel: RgbPixel<T>, to: ColorSpace, white: WhitePoint) -> RgbPixel<f32> {
        let mut out = [[0.0; 3]];
        let view = PixelView::tight(std::slice::from_ref(&pixel), 1, 1);
        ColorConverter::new().convert(view, to, white, &mut out);
        out[0]
    }

    /// From Bruce Lindbloom's table, which has the digits that users of the standards share.
    #[test]
    fn the_adaptation_is_bradfords() {
        let want = [
            [1.047_811_2, 0.022_886_6, -0.050_127_0],
            [0.029_542_4, 0.990_484_4, -0.017_049_1],
            [-0.009_234_5, 0.015_043_6, 0.752_131_6],
        ];
        let got = adaptation(D65, D50);
        for (got, want) in got.as_flattened().iter().zip(want.as_flattened()) {
            assert!((got - want).abs() < 2e-7, "{got}, not {want}");
        }
    }

    #[test]
    fn green_has_what_red_and_blue_leave() {
        for (parts, matrix, white) in [
            (TO_D65, SRGB_TO_XYZ, D65),
            (TO_D50, multiplied(adaptation(D65, D50), SRGB_TO_XYZ), D50),
        ] {
            for ((parts, row), white) in parts.iter().zip(matrix).zip(white) {
                let green = 1.0 - f64::from(parts[0]) - f64::from(parts[1]);
                let want = row[1] / white;
                assert!((green - want).abs() < 2e-7, "{green}, not {want}");
            }
        }
    }

    #[test]
    fn grey_is_exactly_grey() {
        for v in 0..=255 {
            for white in [WhitePoint::D65, WhitePoint::D50] {
                let [l, a, b] = one([v; 3], ColorSpace::Lab, white);
                assert_eq!([a, b], [0.0; 2], "{v}");
                let [same, a, b] = one([f32::from(v); 3], ColorSpace::Lab, white);
                assert_eq!([a, b], [0.0; 2], "{v}");
                assert_eq!(same, l, "{v}");
            }
            let white = WhitePoint::D65;
            assert_eq!(one([v; 3], ColorSpace::Hsv, white)[..2], [0.0; 2]);
            let ycbcr = one([v; 3], ColorSpace::Ycbcr, white);
            assert_eq!(ycbcr, [f32::from(v), 128.0, 128.0]);
        }
        let white = one([255u8; 3], ColorSpace::Lab, WhitePoint::D50);
        assert_eq!(white, [100.0, 0.0, 0.0]);
        let black = one([0u8; 3], ColorSpace::Lab, WhitePoint::D65);
        assert!(black[0].abs() < 1e-5, "{black:?}");
    }

    #[test]
    fn light_follows_the_curve_between_levels_and_beyond_them() {
        let ColorConverter { light } = ColorConverter::new();
        for i in -3000..33_000 {
            let v = i as f32 / 100.0;
            let c = f64::from(v) / 255.0;
            let want = if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            };
            let got = f64::from(v.light(&light));
            let bound = 3e-8 + 2e-7 * want.abs();
            assert!((got - want).abs() < bound, "{v}: {got}, not {want}");
        }
        assert!(f32::NAN.light(&light).is_nan());
    }

    #[test]
    fn a_hue_is_below_360() {
        let red = one([200.0, 0.0, 1e-6], ColorSpace::Hsv, WhitePoint::D65);
        assert_eq!(red[0], 0.0);
        let pink = one([200u8, 0, 1], ColorSpace::Hsv, WhitePoint::D65);
        assert!(359.0 < pink[0] && pink[0] < 360.0);
    }
}
