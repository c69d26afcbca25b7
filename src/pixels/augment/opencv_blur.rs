//! OpenCV's blurs of bytes. `GaussianBlur` derives its deviation from the kernel's size.
//! PaddleClas' motion blur uses a rotated line and stretches the result to all levels.
//!
//! `picture` is upright and tight. Edges are mirrored without repeating the edge pixel. Kernel
//! sides are odd and at most [`MOST`].

use crate::pixels::pixel_view::{PixelView, RgbPixel};

/// The largest side of a kernel.
pub(crate) const MOST: usize = 11;
/// Columns that are blurred together, so that rows between the passes stay in the CPU's cache.
const BLOCK: usize = 64;
/// Sum of the weights of a Gaussian.
const ONE: i32 = 256;

/// `cv2.GaussianBlur(picture, (width, height), 0)`, equal to the bit. Weights are multiples of
/// 1/256.
pub(crate) fn gaussian(
    picture: PixelView<'_, u8>,
    (width, height): (u32, u32),
    out: &mut [RgbPixel<u8>],
) {
    let (across, down) = (side(width), side(height));
    let (columns, rows) = (weights(across), weights(down));
    let reach = down / 2;
    for first in (0..picture.width).step_by(BLOCK) {
        let count = BLOCK.min(picture.width - first);
        let mut kept = [[[0u16; 3]; BLOCK]; MOST];
        let pass = |line: usize, to: &mut [[u16; 3]; BLOCK]| {
            // Line 0 is `reach` rows above the image.
            let row = picture.row(inside(line as i64 - reach as i64, picture.height));
            for (x, to) in to.iter_mut().take(count).enumerate() {
                let left = (first + x) as i64 - (across / 2) as i64;
                let mut sum = [0u32; 3];
                for (i, weight) in columns.iter().take(across).enumerate() {
                    let pixel = row[inside(left + i as i64, picture.width)];
                    for (sum, v) in sum.iter_mut().zip(pixel) {
                        *sum += weight * u32::from(v);
                    }
                }
                *to = sum.map(|v| v as u16);
            }
        };
        for (line, to) in kept.iter_mut().enumerate().take(down - 1) {
            pass(line, to);
        }
        for (y, out) in (out.chunks_exact_mut(picture.width.max(1)))
            .take(picture.height)
            .enumerate()
        {
            let last = y + down - 1;
            pass(last, &mut kept[last % down]);
            for (x, out) in out[first..first + count].iter_mut().enumerate() {
                let mut sum = [1u32 << 15; 3];
                for (i, weight) in rows.iter().take(down).enumerate() {
                    let pixel = kept[(y + i) % down][x];
                    for (sum, v) in sum.iter_mut().zip(pixel) {
                        *sum += weight * u32::from(v);
                    }
                }
                *out = sum.map(|v| (v >> 16).min(255) as u8);
            }
        }
    }
}

/// PaddleClas' `_motion_blur`: the kernel is a diagonal of `length` pixels rotated by `degrees`.
/// Then the lowest level becomes 0 and the highest 255.
pub(crate) fn motion(
    picture: PixelView<'_, u8>,
    length: u32,
    degrees: i32,
    out: &mut [RgbPixel<u8>],
) {
    let side = side(length);
    let kernel = line(side, degrees);
    let mut places = [(0i64, 0i64, 0f32); MOST * MOST];
    let mut count = 0;
    let reach = (side / 2) as i64;
    for (y, row) in kernel.iter().take(side).enumerate() {
        for (x, weight) in row.iter().take(side).enumerate() {
            if *weight != 0.0 {
                places[count] = (y as i64 - reach, x as i64 - reach, *weight);
                count += 1;
            }
        }
    }
    let places = &places[..count];
    let (mut low, mut high) = (255u8, 0u8);
    for (y, out) in (out.chunks_exact_mut(picture.width.max(1)))
        .take(picture.height)
        .enumerate()
    {
        for (x, out) in out.iter_mut().enumerate() {
            let mut sum = [0f32; 3];
            for &(down, right, weight) in places {
                let row = picture.row(inside(y as i64 + down, picture.height));
                let pixel = row[inside(x as i64 + right, picture.width)];
                for (sum, v) in sum.iter_mut().zip(pixel) {
                    *sum += weight * f32::from(v);
                }
            }
            *out = sum.map(|v| v.round_ties_even() as u8);
            for v in *out {
                (low, high) = (low.min(v), high.max(v));
            }
        }
    }
    // A single level becomes 0, as in OpenCV.
    let scale = match high > low {
        true => 255.0 * (1.0 / f64::from(high - low)),
        false => 0.0,
    };
    let (scale, shift) = (scale as f32, (-f64::from(low) * scale) as f32);
    let stretched: [u8; 256] =
        std::array::from_fn(|v| (v as f32 * scale + shift).round_ties_even() as u8);
    for v in out.as_flattened_mut() {
        *v = stretched[usize::from(*v)];
    }
}

fn side(of: u32) -> usize {
    (of as usize).clamp(1, MOST)
}

/// `BORDER_REFLECT_101`.
#[inline(always)]
fn inside(at: i64, count: usize) -> usize {
    let last = count as i64 - 1;
    if (0..=last).contains(&at) {
        return at as usize;
    }
    let (mut at, last) = (at, last.max(0));
    while !(0..=last).contains(&at) {
        if last == 0 {
            return 0;
        }
        at = if at < 0 { -at } else { 2 * last - at };
    }
    at as usize
}

/// `getGaussianKernel` in 256ths: each rounding error is added to the next weight, and the centre
/// takes the rest.
fn weights(side: usize) -> [u32; MOST] {
    let mut all = [0u32; MOST];
    let table: &[u32] = match side {
        1 => &[256],
        3 => &[64, 128],
        5 => &[16, 64, 96],
        7 => &[8, 28, 56, 72],
        9 => &[4, 13, 30, 51, 60],
        _ => &[],
    };
    if !table.is_empty() {
        for (i, weight) in table.iter().enumerate() {
            all[i] = *weight;
            all[side - 1 - i] = *weight;
        }
        return all;
    }
    let half = side / 2;
    let deviation = 0.3 * ((side as f64 - 1.0) * 0.5 - 1.0) + 0.8;
    let bell = |i: usize| {
        let x = i as f64 - half as f64;
        libm::exp(-x * x / (2.0 * deviation * deviation))
    };
    let sum: f64 = (0..side).map(bell).sum();
    let (mut lost, mut left) = (0.0, ONE);
    for i in 0..half {
        let exact = bell(i) / sum * f64::from(ONE) + lost;
        let weight = exact.round_ties_even();
        lost = exact - weight;
        all[i] = weight as u32;
        all[side - 1 - i] = weight as u32;
        left -= 2 * weight as i32;
    }
    all[half] = left.max(0) as u32;
    all
}

/// The kernel: a bilinear `warpAffine` of a matrix with ones on its diagonal, divided by their
/// number. Places are rounded to 1/32 pixel.
fn line(side: usize, degrees: i32) -> [[f32; MOST]; MOST] {
    const STEPS: f64 = 1024.0;
    let angle = f64::from(degrees).to_radians();
    let (cos, sin) = (libm::cos(angle), libm::sin(angle));
    let middle = side as f64 / 2.0;
    let (right, down) = (
        (1.0 - cos) * middle - sin * middle,
        sin * middle + (1.0 - cos) * middle,
    );
    // Inverted as OpenCV does it.
    let by = 1.0 / (cos * cos + sin * sin);
    let (a, b, c, d) = (cos * by, -sin * by, sin * by, cos * by);
    let (right, down) = (-a * right - b * down, -c * right - d * down);
    let fixed = |v: f64| (v * STEPS).round_ties_even() as i64;
    let one = |y: i64, x: i64| match y == x && (0..side as i64).contains(&y) {
        true => 1.0,
        false => 0.0,
    };
    let mut kernel = [[0f32; MOST]; MOST];
    for (y, row) in kernel.iter_mut().take(side).enumerate() {
        let first = (
            fixed(b * y as f64 + right) + 16,
            fixed(d * y as f64 + down) + 16,
        );
        for (x, weight) in row.iter_mut().take(side).enumerate() {
            let at_x = (first.0 + fixed(a * x as f64)) >> 5;
            let at_y = (first.1 + fixed(c * x as f64)) >> 5;
            let (fx, fy) = ((at_x & 31) as f64 / 32.0, (at_y & 31) as f64 / 32.0);
            let (sx, sy) = (at_x >> 5, at_y >> 5);
            let sum = one(sy, sx) * (1.0 - fy) * (1.0 - fx)
                + one(sy, sx + 1) * (1.0 - fy) * fx
                + one(sy + 1, sx) * fy * (1.0 - fx)
                + one(sy + 1, sx + 1) * fy * fx;
            *weight = (sum / side as f64) as f32;
        }
    }
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::AugmentStep;

    #[test]
    fn weights_sum_to_one_and_edges_reflect() {
        for side in [1, 3, 5, 7, 9, 11] {
            let all = weights(side);
            assert_eq!(all.iter().sum::<u32>(), 256, "{side}");
        }
        // From OpenCV 5.0.0: the blur of one column.
        assert_eq!(weights(11), [2, 7, 17, 31, 45, 52, 45, 31, 17, 7, 2]);
        let around: Vec<usize> = (-4..8).map(|i| inside(i, 4)).collect();
        assert_eq!(around, [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]);
        assert_eq!((inside(-3, 1), inside(5, 1)), (0, 0));
    }

    #[derive(serde::Deserialize)]
    struct Goldens {
        cases: Vec<Golden>,
    }

    #[derive(serde::Deserialize)]
    struct Golden {
        height: usize,
        width: usize,
        pixels: String,
        step: AugmentStep,
        expected: String,
    }

    fn pixels(hex: &str) -> Vec<RgbPixel<u8>> {
        let digits = hex.as_bytes().as_chunks::<2>().0.iter();
        let bytes: Vec<u8> = digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        bytes.as_chunks::<3>().0.to_vec()
    }

    /// tests/goldens/opencv_blur.tar, which scripts/op_goldens/opencv_blur.py writes.
    #[test]
    fn blurs_have_the_pixels_of_opencv() {
        let text = crate::tests_support::golden("opencv_blur", "cases.json").unwrap();
        let goldens: Goldens = serde_json::from_slice(&text).unwrap();
        assert!(goldens.cases.len() >= 27);
        for case in &goldens.cases {
            let (from, expected) = (pixels(&case.pixels), pixels(&case.expected));
            let view = PixelView::tight(&from, case.width, case.height);
            let mut out = vec![[0; 3]; from.len()];
            let most = match case.step {
                // Both use integers.
                AugmentStep::GaussianBlur { width, height } => {
                    gaussian(view, (width, height), &mut out);
                    0
                }
                // Float sums have another order. Stretching can turn one level of difference into
                // two.
                AugmentStep::MotionBlur { length, degrees } => {
                    motion(view, length, degrees, &mut out);
                    2
                }
                ref other => panic!("{other:?}"),
            };
            let both = out.as_flattened().iter().zip(expected.as_flattened());
            let apart = both.map(|(a, b)| a.abs_diff(*b)).max();
            assert!(apart <= Some(most), "{:?}: {apart:?} levels", case.step);
        }
    }

    #[test]
    fn a_flat_picture_stays_flat_and_a_stretched_one_is_black() {
        let picture = vec![[7u8, 7, 7]; 70 * 3];
        let view = PixelView::tight(&picture, 70, 3);
        let mut out = vec![[0; 3]; picture.len()];
        gaussian(view, (11, 5), &mut out);
        assert_eq!(out, picture);
        motion(view, 9, 30, &mut out);
        assert!(out.iter().all(|p| *p == [0; 3]));
        motion(PixelView::tight(&[], 0, 0), 9, 30, &mut []);
        gaussian(PixelView::tight(&[], 0, 0), (5, 5), &mut []);
    }

    #[test]
    fn a_line_that_is_not_turned_is_a_diagonal() {
        // The rotation centre is half a pixel from the middle of an odd side, so 0 degrees moves
        // nothing.
        let kernel = line(5, 0);
        for (y, row) in kernel.iter().enumerate() {
            for (x, weight) in row.iter().enumerate() {
                let expected = if x == y && x < 5 { 0.2 } else { 0.0 };
                assert_eq!(*weight, expected);
            }
        }
    }
}
