//! Runs of output pixels whose taps all lie inside the image, and between its rows and columns: most
//! of a rotation or a zoom. They have the values of `interpolate`, without looking for edges.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::kernel::{InterpolationKernel, MOST, taps};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::sys::cpu::CpuLevel;

/// Output pixels whose places are computed together.
pub(super) const CHUNK: usize = 64;
/// Channels that are computed together: three, and one that is not used.
const LANES: usize = 4;

/// The places of a run of output pixels.
pub(super) struct InsidePlaces {
    /// The column and row of the first tap.
    left: [i32; CHUNK],
    top: [i32; CHUNK],
    /// The distances from the pixel left of and above the place.
    right: [f64; CHUNK],
    down: [f64; CHUNK],
}

impl Default for InsidePlaces {
    fn default() -> Self {
        Self {
            left: [0; CHUNK],
            top: [0; CHUNK],
            right: [0.0; CHUNK],
            down: [0.0; CHUNK],
        }
    }
}

impl InsidePlaces {
    /// Finds the places of `count` pixels from pixel `(x, y)` on. False if a tap lies outside, if the
    /// pixel right of the taps does, or if the first place is at the centre of a row or column.
    #[inline(always)]
    pub(super) fn find<K: InterpolationKernel>(
        &mut self,
        from: impl Fn(f64, f64) -> (f64, f64),
        (x, y): (usize, usize),
        src: &OrientedPixels<'_, u8>,
        count: usize,
    ) -> bool {
        if !src.lies_in_rows() {
            return false;
        }
        let (before, taps) = (K::BEFORE as f64, K::TAPS as f64);
        let (w, h) = (src.width as f64, src.height as f64);
        // Bounds of the pixel left of and above a place.
        let (most_right, most_down) = (w - taps + before, h - taps + before + 1.0);
        let (first, y) = (x as f64 + 0.5, y as f64 + 0.5);
        // Two loops, of which the compiler makes vectors.
        let count = count.min(CHUNK);
        let mut outside = 0;
        for i in 0..count {
            let (right, down) = from(first + f64::from(i as i32), y);
            let (right, down) = (right - 0.5, down - 0.5);
            let inside =
                right >= before && right < most_right && down >= before && down < most_down;
            outside |= u32::from(!inside);
            self.right[i] = right;
            self.down[i] = down;
        }
        if outside != 0 {
            return false;
        }
        for i in 0..count {
            // Not negative, so the cast is the floor.
            let (left, top) = (self.right[i] as i32, self.down[i] as i32);
            self.left[i] = left - K::BEFORE as i32;
            self.top[i] = top - K::BEFORE as i32;
            self.right[i] -= f64::from(left);
            self.down[i] -= f64::from(top);
        }
        self.right[0] != 0.0 && self.down[0] != 0.0
    }

    /// Writes the pixels of the places that [`InsidePlaces::find`] has found.
    pub(super) fn mix<K: InterpolationKernel>(
        &self,
        src: &OrientedPixels<'_, u8>,
        cpu: CpuLevel,
        out: &mut [RgbPixel<u8>],
    ) {
        #[cfg(target_arch = "x86_64")]
        if K::TAPS == 2 && cpu == CpuLevel::Avx2 {
            // SAFETY: `cpu` is that of an `ImageResampler`, whose constructor has checked that this
            // CPU has AVX2.
            let (pixels, parts) = (
                (&self.left[..], &self.top[..]),
                (&self.right[..], &self.down[..]),
            );
            return unsafe { avx2::mix_linear(pixels, parts, src, out) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = cpu;
        for (i, out) in out.iter_mut().enumerate().take(CHUNK) {
            let (x, y) = (self.left[i] as usize, i64::from(self.top[i]));
            let mut lines = [[0.0; LANES]; MOST];
            for (row, line) in (y..).zip(&mut lines[..K::TAPS]) {
                let levels = src.row_run(x, row, K::TAPS + 1).as_flattened();
                for (c, v) in line.iter_mut().enumerate() {
                    *v = K::of_levels(taps::<K, _>(|tap| levels[3 * tap + c]), self.right[i]);
                }
            }
            let level = |c: usize| K::level(K::of(lines.map(|line| line[c]), self.down[i]));
            *out = [level(0), level(1), level(2)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::augment::affine::affine;
    use crate::pixels::augment::interpolate::TransformOptions;
    use crate::pixels::augment::kernel::LinearKernel;
    use crate::pixels::pixel_view::PixelView;
    use crate::recipe::{InterpolationMode, PixelPlacement, PixelRect};

    /// The places of a zoom and turn, with and without a mirror, in each instruction set: as the
    /// code for single pixels, which a transposed image takes.
    #[test]
    fn pixels_are_those_of_the_code_that_looks_for_edges() {
        let (width, height) = (150, 70);
        let pixel = |n: usize| {
            [
                (n * 7 % 251) as u8,
                (n * n % 241) as u8,
                (n * 13 % 256) as u8,
            ]
        };
        let pixels: Vec<_> = (0..width * height).map(pixel).collect();
        let turned: Vec<_> = (0..width)
            .flat_map(|x| (0..height).map(move |y| (x, y)))
            .map(|(x, y)| pixels[y * width + x])
            .collect();
        let transposed = PixelPlacement {
            transpose: true,
            ..PixelPlacement::default()
        };
        let whole = PixelRect::whole((height as u32, width as u32));
        let part = PixelRect {
            left: 13,
            top: 9,
            width: 101,
            height: 40,
        };
        let mut reached = 0;
        for (zoom, turn) in [
            (0.5, 0.1),
            (0.9, 0.003),
            (1.0, 0.0),
            (1.3, -0.4),
            (0.21, 0.7),
        ] {
            let from = |x: f64, y: f64| (zoom * x + turn * y + 5.3, -turn * x + zoom * y + 3.6);
            let plain = OrientedPixels::new(
                PixelView::tight(&pixels, width, height),
                PixelPlacement::default(),
            );
            let other = OrientedPixels::new(PixelView::tight(&turned, height, width), transposed);
            let matrix = [zoom, turn, 5.3, -turn, zoom, 3.6];
            let made = |interpolation, src: &OrientedPixels<'_, u8>, shown, cpu| {
                let mut out = vec![[9; 3]; width * height];
                let options = TransformOptions {
                    interpolation,
                    fill: [1, 2, 3],
                    shown,
                    cpu,
                };
                affine(src, matrix, options, &mut out);
                out
            };
            for cpu in CpuLevel::ALL.into_iter().filter(|cpu| cpu.is_supported()) {
                for kernel in [InterpolationMode::Bilinear, InterpolationMode::Bicubic] {
                    let want = made(kernel, &other, whole, CpuLevel::Scalar);
                    assert_eq!(
                        made(kernel, &plain, whole, cpu),
                        want,
                        "{zoom} {turn} {cpu:?}"
                    );
                    let shown = made(kernel, &plain, part, cpu);
                    for (n, pixel) in shown.iter().enumerate() {
                        let (x, y) = (n % width, n / width);
                        let is_shown = (13..114).contains(&x) && (9..49).contains(&y);
                        assert_eq!(*pixel, if is_shown { want[n] } else { [9; 3] });
                    }
                }
            }
            let mut places = InsidePlaces::default();
            let find = |y| places.find::<LinearKernel>(from, (0, y), &plain, CHUNK);
            reached += (0..height).map(find).filter(|found| *found).count();
        }
        assert!(reached > 20, "only {reached} runs lie inside");
    }
}
