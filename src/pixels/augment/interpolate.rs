//! `Image.transform` for places between pixels: bilinear and bicubic.
//!
//! Most operations of policies shift pixels along rows or along columns (shears and shifts). Their
//! places are at the centre of a row or column. There Pillow's sum over the other axis returns its
//! input, bit for bit. So only one axis is summed, for as many pixels at a time as have adjacent
//! taps. All other transforms are computed pixel by pixel: by `inside` where all taps lie inside the
//! image.

use super::inside::{CHUNK, InsidePlaces};
use super::kernel::{InterpolationKernel, MOST, cut, taps};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::recipe::{InterpolationMode, PixelRect};
use crate::sys::cpu::CpuLevel;

/// How an image is transformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransformOptions {
    /// Nearest, bilinear or bicubic; callers pass no other.
    pub(crate) interpolation: InterpolationMode,
    /// The colour outside the image.
    pub(crate) fill: RgbPixel<u8>,
    /// The pixels that are used later. Others may be anything, because they may not be computed.
    pub(crate) shown: PixelRect,
    /// The instruction set. It changes no pixel.
    pub(crate) cpu: CpuLevel,
}

#[cfg(test)]
impl TransformOptions {
    /// Those of a whole image.
    pub(super) fn whole(
        src: &OrientedPixels<'_, u8>,
        interpolation: InterpolationMode,
        fill: RgbPixel<u8>,
    ) -> Self {
        Self {
            interpolation,
            fill,
            shown: PixelRect::whole((src.height as u32, src.width as u32)),
            cpu: CpuLevel::Scalar,
        }
    }
}

/// The pixel left of and above a place. `None` if the place is outside.
type SourcePlace = Option<(i32, i32)>;

/// The places of a run of output pixels, and their distances from that pixel, once for each
/// channel.
struct SourcePlaces {
    at: [SourcePlace; CHUNK],
    right: [[f64; 3]; CHUNK],
    down: [[f64; 3]; CHUNK],
}

/// Fills `out` as [`affine`](super::affine::affine) does. `from` returns the source of an output
/// pixel's centre: to the right and down. Each pixel is computed by itself, so those of
/// `options.shown` are those of the whole image.
pub(super) fn interpolate<K: InterpolationKernel>(
    src: &OrientedPixels<'_, u8>,
    from: impl Fn(f64, f64) -> (f64, f64),
    options: TransformOptions,
    out: &mut [RgbPixel<u8>],
) {
    let TransformOptions {
        fill, shown, cpu, ..
    } = options;
    let mut places = SourcePlaces {
        at: [None; CHUNK],
        right: [[0.0; 3]; CHUNK],
        down: [[0.0; 3]; CHUNK],
    };
    let mut inside = InsidePlaces::default();
    let left = (shown.left as usize).min(src.width);
    let right = (left + shown.width as usize).min(src.width);
    let rows = out.chunks_exact_mut(src.width.max(1)).enumerate();
    for (y, row) in rows.skip(shown.top as usize).take(shown.height as usize) {
        for (i, out) in row[left..right].chunks_mut(CHUNK).enumerate() {
            let first = (left + i * CHUNK, y);
            if inside.find::<K>(&from, first, src, out.len()) {
                inside.mix::<K>(src, cpu, out);
                continue;
            }
            places.find(&from, first, (src.width, src.height), out.len());
            places.look::<K>(src, fill, out);
        }
    }
}

impl SourcePlaces {
    /// Finds the places of `count` pixels from pixel `(x, y)` on.
    #[inline(always)]
    fn find(
        &mut self,
        from: impl Fn(f64, f64) -> (f64, f64),
        (x, y): (usize, usize),
        (w, h): (usize, usize),
        count: usize,
    ) {
        let (w, h) = (w as f64, h as f64);
        let y = y as f64 + 0.5;
        let parts = self.right.iter_mut().zip(&mut self.down);
        for (x, (at, parts)) in (x..x + count).zip(self.at.iter_mut().zip(parts)) {
            let x = x as f64 + 0.5;
            let (right, down) = from(x, y);
            let inside = right >= 0.0 && right < w && down >= 0.0 && down < h;
            if !inside {
                *at = None;
                continue;
            }
            let (right, down) = (right - 0.5, down - 0.5);
            let (left, top) = (floor(right), floor(down));
            *at = Some((left, top));
            *parts.0 = [right - f64::from(left); 3];
            *parts.1 = [down - f64::from(top); 3];
        }
    }

    fn look<K: InterpolationKernel>(
        &self,
        src: &OrientedPixels<'_, u8>,
        fill: RgbPixel<u8>,
        out: &mut [RgbPixel<u8>],
    ) {
        let mut done = 0;
        while done < out.len() {
            let Some((left, top)) = self.at[done] else {
                out[done] = fill;
                done += 1;
                continue;
            };
            let (right, down) = (self.right[done][0], self.down[done][0]);
            let end = match src.lies_in_rows() && (right == 0.0 || down == 0.0) {
                true => self.run::<K>(done, out.len(), src.width),
                false => done,
            };
            let pixels = end - done;
            if pixels == 0 {
                out[done] = one::<K>(src, (left, top), (right, down));
                done += 1;
                continue;
            }
            let to = out[done..end].as_flattened_mut();
            if down == 0.0 {
                let from = (i64::from(left) - K::BEFORE) as usize;
                let row = src.row_run(from, i64::from(top), pixels + K::TAPS - 1);
                let taps = taps::<K, _>(|tap| row[tap..tap + pixels].as_flattened());
                sum::<K>(taps, self.right[done..end].as_flattened(), to);
            } else {
                let taps = taps::<K, _>(|tap| {
                    let row = i64::from(top) - K::BEFORE + tap as i64;
                    src.row_run(left as usize, row, pixels).as_flattened()
                });
                sum::<K>(taps, self.down[done..end].as_flattened(), to);
            }
            done = end;
        }
    }

    /// End of the run from `first` whose places are adjacent and at the centre of rows (or
    /// columns), with all taps inside. Returns `first` if its own taps are not all inside.
    #[inline(always)]
    fn run<K: InterpolationKernel>(&self, first: usize, end: usize, width: usize) -> usize {
        let Some((left, top)) = self.at[first] else {
            return first;
        };
        let (parts, end) = match self.down[first][0] == 0.0 {
            true => {
                let from = i64::from(left) - K::BEFORE;
                let room = width as i64 - (from + K::TAPS as i64 - 1);
                match from >= 0 && room > 0 {
                    true => (&self.down, end.min(first + room as usize)),
                    false => return first,
                }
            }
            false => (&self.right, end),
        };
        let beside = |i: usize| {
            let place = Some((left + (i - first) as i32, top));
            parts[i][0] == 0.0 && self.at[i] == place
        };
        (first..end).find(|i| !beside(*i)).unwrap_or(end)
    }
}

#[inline(always)]
fn sum<K: InterpolationKernel>(taps: [&[u8]; MOST], parts: &[f64], out: &mut [u8]) {
    let [p, q, r, s] = taps.map(|tap| &tap[..out.len()]);
    let parts = &parts[..out.len()];
    for (i, out) in out.iter_mut().enumerate() {
        *out = cut(K::of_levels([p[i], q[i], r[i], s[i]], parts[i]));
    }
}

/// Interpolates rows first, then the results. Taps outside the image repeat the edge.
#[inline(always)]
fn one<K: InterpolationKernel>(
    src: &OrientedPixels<'_, u8>,
    (left, top): (i32, i32),
    (right, down): (f64, f64),
) -> RgbPixel<u8> {
    let (x, y) = (i64::from(left) - K::BEFORE, i64::from(top) - K::BEFORE);
    let last = src.width as i64 - 1;
    let inside = src.lies_in_rows() && x >= 0 && x + (K::TAPS as i64) - 1 <= last;
    let mut lines = [[0.0; 3]; MOST];
    for (row, line) in (y..).zip(&mut lines[..K::TAPS]) {
        let mut taps = [[0; 3]; MOST];
        if inside {
            taps[..K::TAPS].copy_from_slice(src.row_run(x as usize, row, K::TAPS));
        } else {
            let row = row.clamp(0, src.height as i64 - 1) as usize;
            for (x, tap) in (x..).zip(&mut taps[..K::TAPS]) {
                *tap = src.pixel(x.clamp(0, last) as usize, row);
            }
        }
        *line = std::array::from_fn(|c| K::of_levels(taps.map(|tap| tap[c]), right));
    }
    std::array::from_fn(|c| cut(K::of(lines.map(|line| line[c]), down)))
}

/// std's `floor` is a function call without SSE4.1.
#[inline(always)]
fn floor(v: f64) -> i32 {
    let cut = v as i32;
    cut - i32::from(v < f64::from(cut))
}
