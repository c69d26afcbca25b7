//! The plain form: tables, and single pixels.

use crate::pixels::pixel_view::RgbPixel;

/// Hues of a circle.
pub(super) const HUES: i32 = 180;

/// Pixels whose way back is computed together, so that the compiler makes vectors of it.
const RUN: usize = 64;

/// Binary places of the quotients.
pub(super) const SHIFT: u32 = 12;

/// What each hue, saturation and value becomes, and the quotients of the way there.
pub(super) struct HsvTables {
    pub(super) hue: [u8; 256],
    pub(super) saturation: [u8; 256],
    pub(super) value: [u8; 256],
    by_value: [i32; 256],
    by_range: [i32; 256],
}

impl HsvTables {
    pub(super) fn new([hue, saturation, value]: [f64; 3]) -> Self {
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
    fn hsv(&self, pixel: RgbPixel<u8>) -> RgbPixel<u8> {
        let (r, g, b) = (
            i32::from(pixel[0]),
            i32::from(pixel[1]),
            i32::from(pixel[2]),
        );
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

/// Hues, saturations and values of a run of pixels.
type HsvRun = [[u8; RUN]; 3];

/// Which of four levels red, green and blue are, for each sixth of the circle: the value, the least,
/// the falling and the rising level.
pub(super) const SECTORS: [RgbPixel<usize>; 6] = [
    [0, 3, 1],
    [2, 0, 1],
    [1, 0, 3],
    [1, 2, 0],
    [3, 1, 0],
    [0, 1, 2],
];

#[inline(always)]
fn write_rgb([hue, saturation, value]: &HsvRun, pixels: &mut [RgbPixel<u8>]) {
    let (mut levels, mut sector) = ([[0; RUN]; 4], [0; RUN]);
    for i in 0..RUN {
        let sixths = f32::from(hue[i]) * (6.0 / HUES as f32);
        let (which, before) = cut(sixths);
        let part = sixths - before;
        let s = f32::from(saturation[i]) * (1.0 / 255.0);
        let v = f32::from(value[i]) * (1.0 / 255.0);
        // OpenCV's vectors round once, after product and difference.
        let less = |by: f32| (1.0 - f64::from(s) * f64::from(by)) as f32;
        let level = |v: f32| cut(v * 255.0).0;
        levels[0][i] = level(v);
        levels[1][i] = level(v * (1.0 - s));
        levels[2][i] = level(v * less(part));
        levels[3][i] = level(v * less(1.0 - part));
        sector[i] = which;
    }
    for (i, pixel) in pixels.iter_mut().enumerate() {
        let [r, g, b] = SECTORS[usize::from(sector[i].min(5))];
        *pixel = [levels[r][i], levels[g][i], levels[b][i]];
    }
}

/// The whole part of a number from 0 to 255: as a byte, and as a float. A cast is slower in vectors.
#[inline(always)]
fn cut(v: f32) -> (u8, f32) {
    // From 2^23 on a float has no fraction, so the addition rounds.
    const WHOLE: f32 = 8_388_608.0;
    let near = v + WHOLE;
    let below = if near - WHOLE > v { near - 1.0 } else { near };
    (below.to_bits() as u8, below - WHOLE)
}

/// Changes pixels of a row.
pub(super) fn change_row(tables: &HsvTables, row: &mut [RgbPixel<u8>]) {
    for run in row.chunks_mut(RUN) {
        let mut mapped = [[0; RUN]; 3];
        for (i, pixel) in run.iter().enumerate() {
            let [h, s, v] = tables.hsv(*pixel);
            mapped[0][i] = tables.hue[usize::from(h)];
            mapped[1][i] = tables.saturation[usize::from(s)];
            mapped[2][i] = tables.value[usize::from(v)];
        }
        write_rgb(&mapped, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts_are_those_of_a_cast() {
        for i in 0..=255 * 64 {
            let whole = i as f32 / 64.0;
            for v in [whole, whole.next_up(), whole.next_down().max(0.0)] {
                let v = v.min(255.0);
                assert_eq!(cut(v), (v as u8, v.trunc()), "{v}");
            }
        }
    }
}
