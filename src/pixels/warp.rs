//! A rotation by any angle as OpenCV 4 does it for bytes: `getRotationMatrix2D` about (width / 2,
//! height / 2) and `warpAffine`, equal to the bit.
//!
//! Places are rounded to 1/32 pixel, and weights are fixed point. So the result differs from an
//! exact rotation by some levels, and from OpenCV 5, whose places are floats. It allocates nothing.

use std::f64::consts::PI;
use std::sync::LazyLock;

use super::oriented_pixels::OrientedPixels;
use super::pixel_view::{PixelView, RgbPixel};
use crate::recipe::{InterpolationMode, PixelPlacement};

/// Fraction bits of a place during its computation, and of a place used to look up weights.
const PLACE_BITS: u32 = 10;
const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;

/// Fraction bits of a weight.
const WEIGHT_BITS: u32 = 15;

/// Fills `out`, which is tight, upright and of the image's size. It shows the image with
/// orientation `placement`, rotated by `degrees` counter-clockwise. Pixel centres are whole
/// numbers. Outside the image it shows `fill`.
pub(crate) fn turn(
    src: PixelView<'_, u8>,
    placement: PixelPlacement,
    degrees: f64,
    interpolation: InterpolationMode,
    fill: RgbPixel<u8>,
    out: &mut [RgbPixel<u8>],
) {
    let shown = OrientedPixels::new(src, placement);
    let places = TurnedPlaces::new(degrees, (shown.width, shown.height));
    match interpolation {
        InterpolationMode::Nearest => places.each(0, shown.width, out, |x, y| {
            let (x, y) = (x >> PLACE_BITS, y >> PLACE_BITS);
            shown.at(x, y).unwrap_or(fill)
        }),
        InterpolationMode::Bicubic => between(&shown, &places, &BICUBIC, fill, out),
        _ => {
            debug_assert_eq!(interpolation, InterpolationMode::Bilinear);
            between(&shown, &places, &BILINEAR, fill, out);
        }
    }
}

/// The source of each pixel: the inverse rotation.
struct TurnedPlaces([f64; 6]);

impl TurnedPlaces {
    fn new(degrees: f64, (width, height): (usize, usize)) -> Self {
        let angle = degrees * (PI / 180.0);
        let (cos, sin) = (libm::cos(angle), libm::sin(angle));
        // OpenCV's pixel centres are whole numbers, so this is not the image's centre.
        let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
        let shift = ((1.0 - cos) * x - sin * y, sin * x + (1.0 - cos) * y);
        let by = 1.0 / (cos * cos + sin * sin);
        let (a, b, c, d) = (cos * by, -sin * by, sin * by, cos * by);
        Self([
            a,
            b,
            -a * shift.0 - b * shift.1,
            c,
            d,
            -c * shift.0 - d * shift.1,
        ])
    }

    /// Calls the function with each pixel's place. Cutting the place to `bits` fraction bits rounds
    /// it.
    #[inline(always)]
    fn each(
        &self,
        bits: u32,
        width: usize,
        out: &mut [RgbPixel<u8>],
        mut pixel: impl FnMut(i64, i64) -> RgbPixel<u8>,
    ) {
        let [a, b, right, c, d, down] = self.0;
        let half = 1 << (PLACE_BITS - bits - 1);
        for (y, row) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let y = y as f64;
            let first = (fixed(b * y + right) + half, fixed(d * y + down) + half);
            for (x, out) in row.iter_mut().enumerate() {
                let x = x as f64;
                *out = pixel(first.0 + fixed(a * x), first.1 + fixed(c * x));
            }
        }
    }
}

/// To `PLACE_BITS`, halves to even.
#[inline(always)]
fn fixed(v: f64) -> i64 {
    // Beyond 2^52 a double has no fraction, so the addition rounds. std's function is a call
    // without SSE4.1.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    (v * f64::from(1 << PLACE_BITS) + WHOLE - WHOLE) as i64
}

/// Weights of `N` by `N` pixels for each step down and to the right.
type TurnWeights<const N: usize> = [[[[i32; N]; N]; STEPS]; STEPS];

static BILINEAR: LazyLock<TurnWeights<2>> = LazyLock::new(|| table(|t| [1.0 - t, t]));

/// Keys' cubic with a = -3/4, in OpenCV's order.
static BICUBIC: LazyLock<TurnWeights<4>> = LazyLock::new(|| {
    const A: f32 = -0.75;
    table(|t| {
        let near = |t: f32| ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0;
        let first = ((A * (t + 1.0) - 5.0 * A) * (t + 1.0) + 8.0 * A) * (t + 1.0) - 4.0 * A;
        let (second, third) = (near(t), near(1.0 - t));
        [first, second, third, 1.0 - first - second - third]
    })
});

/// Products of both axes' weights, rounded so that they sum to one. The difference is added to the
/// smallest or largest of the middle weights.
fn table<const N: usize>(weights: impl Fn(f32) -> [f32; N]) -> TurnWeights<N> {
    let one = 1 << WEIGHT_BITS;
    let of = |step: usize| weights(step as f32 / STEPS as f32);
    std::array::from_fn(|down| {
        std::array::from_fn(|right| {
            let (rows, columns) = (of(down), of(right));
            let mut all: [[i32; N]; N] = rows.map(|row| {
                columns.map(|column| {
                    let scaled = (row * column * one as f32).round_ties_even();
                    // OpenCV stores them in `i16`.
                    scaled.clamp(-32_768.0, 32_767.0) as i32
                })
            });
            let off = all.iter().flatten().sum::<i32>() - one;
            if off != 0 {
                let half = N / 2;
                let (mut least, mut most) = ((half, half), (half, half));
                for y in half..(half + 2).min(N) {
                    for x in half..(half + 2).min(N) {
                        if all[y][x] < all[least.0][least.1] {
                            least = (y, x);
                        } else if all[y][x] > all[most.0][most.1] {
                            most = (y, x);
                        }
                    }
                }
                let (y, x) = if off < 0 { most } else { least };
                all[y][x] -= off;
            }
            all
        })
    })
}

fn between<const N: usize>(
    src: &OrientedPixels<'_, u8>,
    places: &TurnedPlaces,
    table: &TurnWeights<N>,
    fill: RgbPixel<u8>,
    out: &mut [RgbPixel<u8>],
) {
    let before = N as i64 / 2 - 1;
    let last = (src.width as i64 - N as i64, src.height as i64 - N as i64);
    places.each(STEP_BITS, src.width, out, |x, y| {
        let (x, y) = (x >> (PLACE_BITS - STEP_BITS), y >> (PLACE_BITS - STEP_BITS));
        let part = |v: i64| (v & (STEPS as i64 - 1)) as usize;
        let weights = &table[part(y)][part(x)];
        let (left, top) = ((x >> STEP_BITS) - before, (y >> STEP_BITS) - before);
        let inside = left >= 0 && left <= last.0 && top >= 0 && top <= last.1;
        let mut sums = [1 << (WEIGHT_BITS - 1); 3];
        for (y, row) in (top..).zip(weights) {
            for (x, weight) in (left..).zip(row) {
                let pixel = match inside {
                    true => src.pixel(x as usize, y as usize),
                    false => src.at(x, y).unwrap_or(fill),
                };
                for (sum, v) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(v) * weight;
                }
            }
        }
        sums.map(|sum| (sum >> WEIGHT_BITS).clamp(0, 255) as u8)
    });
}

#[cfg(test)]
mod goldens {
    //! tests/goldens/warp.tar, which scripts/op_goldens/warp.py writes and explains: on the canvas,
    //! in every stored orientation.

    use std::collections::BTreeSet;

    use serde::Deserialize;

    use super::*;
    use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
    use crate::pixels::resample::ImageResampler;
    use crate::recipe::{RotationStyle, Step};
    use crate::sys::cpu::CpuLevel;
    use crate::tests_support::golden;

    #[derive(Deserialize)]
    struct Manifest {
        cases: Vec<Case>,
    }

    #[derive(Debug, Deserialize)]
    struct Case {
        degrees: f64,
        interpolation: InterpolationMode,
        fill: [f32; 3],
        /// Height, width.
        size: (u32, u32),
        /// First byte in the files.
        input: usize,
        expected: usize,
    }

    fn file(name: &str) -> Vec<u8> {
        golden("warp", name).unwrap()
    }

    /// The image rotated by quarter turns, and the placement that shows it.
    fn stored(
        upright: &[u8],
        size: (u32, u32),
        quarters: u8,
    ) -> (Vec<u8>, (u32, u32), PixelPlacement) {
        let (mut pixels, (mut h, mut w)) = (upright.as_chunks::<3>().0.to_vec(), size);
        for _ in 0..quarters {
            let at = |x: u32, y: u32| pixels[(y * w + x) as usize];
            // Counter-clockwise: the last column becomes the first row.
            let next = (0..w).flat_map(|y| (0..h).map(move |x| (w - 1 - y, x)));
            pixels = next.map(|(x, y)| at(x, y)).collect();
            (h, w) = (w, h);
        }
        let back = PixelPlacement::default().turned((4 - quarters) % 4);
        (pixels.into_flattened(), (h, w), back)
    }

    #[test]
    fn every_case_has_the_pixels_of_opencv() {
        let manifest: Manifest = serde_json::from_slice(&file("manifest.json")).unwrap();
        let (pictures, expected) = (file("in.u8"), file("out.u8"));
        let mut resampler = ImageResampler::new(CpuLevel::Scalar);
        let mut canvas = PictureCanvas::default();
        let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
        for case in &manifest.cases {
            let (h, w) = case.size;
            let bytes = 3 * (h * w) as usize;
            let want = &expected[case.expected..][..bytes];
            seen.insert(case.interpolation.name());
            let step = Step::Rotate {
                degrees: case.degrees,
                interpolation: case.interpolation,
                size: case.size.into(),
                fill: case.fill,
                style: RotationStyle::Opencv,
            };
            for quarters in 0..4 {
                let upright = &pictures[case.input..][..bytes];
                let (pixels, (h, w), placement) = stored(upright, case.size, quarters);
                let to = canvas.begin(w as usize, h as usize, placement);
                to.copy_from_slice(&pixels);
                canvas.apply([&step].into_iter(), true, &mut resampler);
                let (CanvasPixels::Bytes(got), turned) = canvas.pixels() else {
                    panic!("not in bytes");
                };
                assert_eq!(turned, PixelPlacement::default());
                let got: Vec<_> = got.rows().flatten().copied().collect();
                if got.as_flattened() != want {
                    wrong.push(format!("{case:?}, stored by {quarters} quarters"));
                }
            }
        }
        assert_eq!(seen, BTreeSet::from(["bicubic", "bilinear", "nearest"]));
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn weights_sum_to_one() {
        let one = 1 << WEIGHT_BITS;
        assert!(
            BILINEAR
                .iter()
                .flatten()
                .all(|w| w.iter().flatten().sum::<i32>() == one)
        );
        assert!(
            BICUBIC
                .iter()
                .flatten()
                .all(|w| w.iter().flatten().sum::<i32>() == one)
        );
    }
}
