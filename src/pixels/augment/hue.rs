//! Hue through `Image.convert("HSV")` and back. Each of the three is rounded to a byte, with
//! Pillow's losses.

use crate::pixels::pixel_view::{PixelViewMut, RgbPixel};

/// Adds `by` to the hue, modulo 256.
pub(crate) fn shift(mut pixels: PixelViewMut<'_, u8>, by: u8) {
    for row in pixels.rows_mut() {
        for pixel in row {
            let [h, s, v] = hsv(*pixel);
            *pixel = rgb([h.wrapping_add(by), s, v]);
        }
    }
}

/// Alternates between `f32` and `f64` like Pillow's C code. Casts truncate.
#[inline(always)]
fn hsv([r, g, b]: RgbPixel<u8>) -> RgbPixel<u8> {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let [rc, gc, bc] = [r, g, b].map(|c| f32::from(most - c) / range);
    let sixths = if r == most {
        bc - gc
    } else if g == most {
        (2.0 + f64::from(rc) - f64::from(bc)) as f32
    } else {
        (4.0 + f64::from(gc) - f64::from(rc)) as f32
    };
    // Sixths are -1 to 5; the hue is the fractional part.
    let circle = f64::from(sixths) / 6.0 + 1.0;
    let hue = (circle - f64::from(circle as u8)) as f32;
    let saturation = range / f32::from(most);
    let byte = |v: f32| (f64::from(v) * 255.0) as u8;
    [byte(hue), byte(saturation), most]
}

#[inline(always)]
fn rgb([h, s, v]: RgbPixel<u8>) -> RgbPixel<u8> {
    if s == 0 {
        return [v; 3];
    }
    let sixths = f64::from(h) * 6.0 / 255.0;
    let which = sixths as u8;
    let f = (sixths - f64::from(which)) as f32;
    let s = f32::from(s) / 255.0;
    let value = f64::from(v);
    let byte = |part: f64| (value * part).round() as u8;
    let p = byte(1.0 - f64::from(s));
    let q = byte(1.0 - f64::from(s * f));
    let t = byte(1.0 - f64::from(s) * (1.0 - f64::from(f)));
    match which {
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        5 => [v, p, q],
        // 0, and 6, where the circle closes.
        _ => [v, t, p],
    }
}
