//! OpenCV 5's 8-bit HSV and back, with the three values mapped by tables in between: the colours of
//! ultralytics' trainers.
//!
//! Hue is 0 to 179, saturation and value 0 to 255. The way back truncates, as OpenCV's vectors do.

use crate::pixels::pixel_view::{PixelViewMut, RgbPixel};

/// Hues of a circle.
const HUES: i32 = 180;

/// Binary places of the quotients.
const SHIFT: u32 = 12;

/// What each hue, saturation and value becomes, and the quotients of the way there.
struct HsvTables {
    hue: [u8; 256],
    saturation: [u8; 256],
    value: [u8; 256],
    by_value: [i32; 256],
    by_range: [i32; 256],
}

impl HsvTables {
    fn new([hue, saturation, value]: [f64; 3]) -> Self {
        let table = |of: &dyn Fn(f64) -> f64| {
            let mut table = [0; 256];
            for (level, to) in table.iter_mut().enumerate() {
                *to = of(level as f64) as u8;
            }
            table
        };
        let quotient = |of: f64| {
            let mut table = [0; 256];
            for (by, to) in table.iter_mut().enumerate().skip(1) {
                *to = (of * f64::from(1 << SHIFT) / by as f64).round_ties_even() as i32;
            }
            table
        };
        let gain = |by: f64| table(&|level| (level * (by + 1.0)).clamp(0.0, 255.0));
        let mut saturations = gain(saturation);
        saturations[0] = 0;
        Self {
            hue: table(&|level| (level + hue * f64::from(HUES)).rem_euclid(f64::from(HUES))),
            saturation: saturations,
            value: gain(value),
            by_value: quotient(255.0),
            by_range: quotient(f64::from(HUES) / 6.0),
        }
    }

    #[inline(always)]
    fn map(&self, pixel: RgbPixel<u8>) -> RgbPixel<u8> {
        let [h, s, v] = self.hsv(pixel);
        let at = |table: &[u8; 256], level: u8| table[usize::from(level)];
        rgb([
            at(&self.hue, h),
            at(&self.saturation, s),
            at(&self.value, v),
        ])
    }

    #[inline(always)]
    fn hsv(&self, pixel: RgbPixel<u8>) -> RgbPixel<u8> {
        let [r, g, b] = pixel.map(i32::from);
        let most = r.max(g).max(b);
        let range = most - r.min(g).min(b);
        let rounded = |v: i32| (v + (1 << (SHIFT - 1))) >> SHIFT;
        let saturation = rounded(range * self.by_value[most as usize]);
        let sixths = if most == r {
            g - b
        } else if most == g {
            b - r + 2 * range
        } else {
            r - g + 4 * range
        };
        let hue = rounded(sixths * self.by_range[range as usize]);
        let hue = if hue < 0 { hue + HUES } else { hue };
        [hue as u8, saturation as u8, most as u8]
    }
}

#[inline(always)]
fn rgb([h, s, v]: RgbPixel<u8>) -> RgbPixel<u8> {
    let sixths = f32::from(h) * (6.0 / HUES as f32);
    let which = sixths as u8;
    let part = sixths - f32::from(which);
    let (s, v) = (f32::from(s) * (1.0 / 255.0), f32::from(v) * (1.0 / 255.0));
    // OpenCV's vectors round once, after product and difference.
    let less = |by: f32| (1.0 - f64::from(s) * f64::from(by)) as f32;
    let byte = |v: f32| (v * 255.0) as u8;
    let p = byte(v * (1.0 - s));
    let q = byte(v * less(part));
    let t = byte(v * less(1.0 - part));
    let v = byte(v);
    match which {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}

/// Adds `gains[0]` of a circle to the hue, and multiplies saturation and value by 1 plus their
/// gains.
pub(crate) fn change(mut pixels: PixelViewMut<'_, u8>, gains: [f64; 3]) {
    let tables = HsvTables::new(gains);
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = tables.map(*pixel);
        }
    }
}
