//! Fills a box of the image with one colour or noise.
//!
//! Noise is a pure function of a key and of the element's number in the box of the upright image,
//! row by row. It has no generator state, and a rotated file gets the noise of an upright one.

use super::level::ChannelLevel;
use super::normal_numbers;
use super::pixel_view::{PixelViewMut, RgbPixel};
use crate::recipe::geometry::PixelRect;
use crate::recipe::{BoxFill, PixelPlacement};

/// Fills `rect`, which is inside the image and in stored orientation. `placement` is the
/// orientation of the image. `u8` values are rounded and clamped. The three channels of a grey
/// image get the same noise.
pub(crate) fn erase<T: ChannelLevel>(
    mut pixels: PixelViewMut<'_, T>,
    rect: PixelRect,
    placement: PixelPlacement,
    with: BoxFill,
    grey: bool,
) {
    let channels = if grey { [0, 0, 0] } else { [0, 1, 2] };
    match with {
        BoxFill::Value(value) => {
            let value = value.map(T::rounded);
            fill(&mut pixels, rect, placement, |_| value);
        }
        BoxFill::Levels(key) => fill(&mut pixels, rect, placement, |first| {
            channels.map(|c| T::rounded(level(key, first + c)))
        }),
        BoxFill::Normal(key) => {
            let bits = |first: u64| channels.map(|c| mixed(key, first + c));
            each_normal(&mut pixels, rect, placement, bits, |pixel, normal| {
                *pixel = normal.map(T::rounded);
            });
        }
    }
}

/// `of` receives the number of the pixel's first element in the box.
fn fill<T: ChannelLevel>(
    pixels: &mut PixelViewMut<'_, T>,
    rect: PixelRect,
    placement: PixelPlacement,
    of: impl Fn(u64) -> [T; 3],
) {
    let columns = rect.left as usize..(rect.left + rect.width) as usize;
    let rows = pixels.rows_mut().skip(rect.top as usize);
    for (y, row) in (0..rect.height).zip(rows) {
        for (x, pixel) in (0..rect.width).zip(&mut row[columns.clone()]) {
            *pixel = of(number((x, y), rect, placement));
        }
    }
}

/// Like [`fill`], with normal numbers made of the bits that `of` returns. `write` receives each
/// pixel and its numbers.
pub(super) fn each_normal<T>(
    pixels: &mut PixelViewMut<'_, T>,
    rect: PixelRect,
    placement: PixelPlacement,
    of: impl Fn(u64) -> [u64; 3],
    write: impl Fn(&mut RgbPixel<T>, RgbPixel<f32>),
) {
    const CHUNK: usize = normal_numbers::MOST / 3;
    let columns = rect.left as usize..(rect.left + rect.width) as usize;
    let rows = pixels.rows_mut().skip(rect.top as usize);
    let mut bits = [0; normal_numbers::MOST];
    for (y, row) in (0..rect.height).zip(rows) {
        let chunks = row[columns.clone()].chunks_mut(CHUNK);
        for (first, chunk) in (0..rect.width).step_by(CHUNK).zip(chunks) {
            let pixels = bits.as_chunks_mut::<3>().0.iter_mut().take(chunk.len());
            for (x, bits) in (first..).zip(pixels) {
                *bits = of(number((x, y), rect, placement));
            }
            let normals = normal_numbers::normals(&bits);
            for (pixel, normal) in chunk.iter_mut().zip(normals.as_chunks().0) {
                write(pixel, *normal);
            }
        }
    }
}

/// Number of the first element of the pixel stored at column `x` and row `y`, counted in the
/// upright box.
#[inline(always)]
fn number((x, y): (u32, u32), rect: PixelRect, placement: PixelPlacement) -> u64 {
    let x = match placement.flip_x {
        true => rect.width - 1 - x,
        false => x,
    };
    let y = match placement.flip_y {
        true => rect.height - 1 - y,
        false => y,
    };
    let (row, column, width) = match placement.transpose {
        true => (x, y, rect.height),
        false => (y, x, rect.width),
    };
    3 * (u64::from(row) * u64::from(width) + u64::from(column))
}

/// One of the 256 levels, all equally likely. It is whole in `f32` too, so that both types get the
/// same image.
fn level(key: u64, element: u64) -> f32 {
    f32::from((mixed(key, element) >> 56) as u8)
}

/// Output number `element` of a SplitMix64 generator with seed `key`.
pub(super) fn mixed(key: u64, element: u64) -> u64 {
    let z = key.wrapping_add((element + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: usize = 300;

    /// The elements of a box of noise in a larger image.
    fn noise<T: ChannelLevel>(before: T, with: BoxFill) -> Vec<T> {
        let (width, height) = (SIDE + 5, SIDE + 4);
        let mut pixels = vec![[before; 3]; width * height];
        let view = PixelViewMut {
            pixels: &mut pixels,
            width,
            height,
            stride: width,
        };
        let rect = PixelRect {
            left: 2,
            top: 3,
            width: SIDE as u32,
            height: SIDE as u32,
        };
        erase(view, rect, PixelPlacement::default(), with, false);
        let rows = pixels.chunks(width).skip(3).take(SIDE);
        rows.flat_map(|row| row[2..2 + SIDE].as_flattened().to_vec())
            .collect()
    }

    /// A rotated file has the noise of an upright one.
    #[test]
    fn noise_is_that_of_the_picture_whichever_way_it_is_stored() {
        let shown = |placement: PixelPlacement, grey| -> Vec<[f32; 3]> {
            let (w, h) = placement.output_size(7, 5);
            let mut pixels = vec![[-1.0f32; 3]; 35];
            let view = PixelViewMut {
                pixels: &mut pixels,
                width: w,
                height: h,
                stride: w,
            };
            let all = PixelRect {
                left: 0,
                top: 0,
                width: 7,
                height: 5,
            };
            let rect = placement.to_stored(all, (w as u32, h as u32));
            erase(view, rect, placement, BoxFill::Levels(9), grey);
            let at = |x: u32, y: u32| {
                let one = PixelRect {
                    left: x,
                    top: y,
                    width: 1,
                    height: 1,
                };
                let r = placement.to_stored(one, (w as u32, h as u32));
                pixels[r.top as usize * w + r.left as usize]
            };
            (0..35).map(|i| at(i % 7, i / 7)).collect()
        };
        let upright = shown(PixelPlacement::default(), false);
        for placement in [
            PixelPlacement::default().mirrored(),
            PixelPlacement::default().turned(1),
            PixelPlacement::default().turned(2).mirrored(),
            PixelPlacement::default().turned(3).upside_down(),
        ] {
            assert_eq!(shown(placement, false), upright, "{placement:?}");
        }
        let grey = shown(PixelPlacement::default(), true);
        assert!(grey.iter().all(|[r, g, b]| r == g && g == b));
        assert!(grey.iter().zip(&upright).all(|(g, c)| g[0] == c[0]));
    }

    fn mean(v: &[f64]) -> f64 {
        v.iter().sum::<f64>() / v.len() as f64
    }

    /// Correlation of each element with the one `lag` after it.
    fn correlation(v: &[f64], lag: usize) -> f64 {
        let m = mean(v);
        let d: Vec<f64> = v.iter().map(|x| x - m).collect();
        let both: f64 = d.iter().zip(&d[lag..]).map(|(a, b)| a * b).sum();
        both / d.iter().map(|x| x * x).sum::<f64>()
    }

    /// Checks adjacent elements, channels and rows, and another key.
    fn unrelated(v: &[f64], other: &[f64]) {
        let bound = 4.0 / (v.len() as f64).sqrt();
        for lag in [1, 2, 3, 3 * SIDE, 3 * SIDE + 3] {
            let c = correlation(v, lag);
            assert!(c.abs() < bound, "lag {lag}: {c}");
        }
        let pairs: Vec<f64> = v.iter().zip(other).flat_map(|(a, b)| [*a, *b]).collect();
        let c = correlation(&pairs, 1);
        assert!(c.abs() < bound, "two keys: {c}");
    }

    #[test]
    fn noise_of_levels_is_uniform() {
        let floats = noise(0.0f32, BoxFill::Levels(7));
        let bytes = noise(0u8, BoxFill::Levels(7));
        assert!(floats.iter().zip(&bytes).all(|(a, b)| *a == f32::from(*b)));
        let mut bins = [0u32; 256];
        for b in &bytes {
            bins[usize::from(*b)] += 1;
        }
        let expected = bytes.len() as f64 / 256.0;
        let chi: f64 = (bins.iter())
            .map(|&b| (f64::from(b) - expected) * (f64::from(b) - expected) / expected)
            .sum();
        // 255 degrees of freedom: mean 255, deviation 22.6.
        assert!((165.0..345.0).contains(&chi), "{chi}");
        let wide: Vec<f64> = floats.into_iter().map(f64::from).collect();
        let other: Vec<f64> = (noise(0u8, BoxFill::Levels(8)).into_iter())
            .map(f64::from)
            .collect();
        unrelated(&wide, &other);
    }

    #[test]
    fn normal_noise_is_normal() {
        let of = |key| -> Vec<f64> {
            let noise = noise(0.0f32, BoxFill::Normal(key));
            noise.into_iter().map(f64::from).collect()
        };
        let v = of(1);
        let n = v.len() as f64;
        let moment = |k: i32| v.iter().map(|x| x.powi(k)).sum::<f64>() / n;
        // Each moment within 4 of its own deviations.
        for (k, want, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let m = moment(k);
            let bound = 4.0 * f64::sqrt(variance / n);
            assert!((m - want).abs() < bound, "moment {k}: {m}");
        }
        // Share of numbers below quantiles of the normal distribution.
        for (z, part) in [
            (-3.090_232, 0.001),
            (-2.326_348, 0.01),
            (-1.281_552, 0.1),
            (-0.674_490, 0.25),
            (0.0, 0.5),
            (0.674_490, 0.75),
            (1.281_552, 0.9),
            (2.326_348, 0.99),
            (3.090_232, 0.999),
        ] {
            let below = v.iter().filter(|x| **x < z).count() as f64 / n;
            let bound = 4.0 * f64::sqrt(part * (1.0 - part) / n);
            assert!((below - part).abs() < bound, "below {z}: {below}");
        }
        unrelated(&v, &of(2));
    }

    #[test]
    fn a_u8_gets_normal_noise_rounded_and_held_to_its_range() {
        let floats = noise(9.0f32, BoxFill::Normal(3));
        let bytes = noise(9u8, BoxFill::Normal(3));
        let want: Vec<u8> = (floats.iter())
            .map(|v| v.round_ties_even().clamp(0.0, 255.0) as u8)
            .collect();
        assert_eq!(bytes, want);
    }

    #[test]
    fn the_numbers_of_a_key_stay_what_they_are() {
        // SplitMix64 from 0, from its author's code.
        assert_eq!(mixed(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mixed(0, 1), 0x6e78_9e6a_a1b9_65f4);
        let first = |with| noise(0.0f32, with)[..3].to_vec();
        assert_eq!(first(BoxFill::Levels(0)), [226.0, 110.0, 6.0]);
    }
}
