//! `Image.transform` for places between pixels: bilinear and bicubic.
//!
//! Most operations of policies shift pixels along rows or along columns (shears and shifts). Their
//! places are at the centre of a row or column. There Pillow's sum over the other axis returns its
//! input, bit for bit. So only one axis is summed, for as many pixels at a time as have adjacent
//! taps. All other transforms are computed pixel by pixel: by `inside` where all taps lie inside the
//! image.

use super::affine::TransformOptions;
use super::inside::InsidePlaces;
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;

/// Output pixels whose places are computed together.
pub(super) const CHUNK: usize = 64;
/// Taps of the widest kernel.
pub(super) const MOST: usize = 4;

/// Interpolates the levels beside a place. Sums have Pillow's order.
pub(super) trait InterpolationKernel {
    /// Taps along an axis. The rest of the `MOST` taps is unused.
    const TAPS: usize;
    /// Taps before the pixel left of or above the place.
    const BEFORE: i64 = Self::TAPS as i64 / 2 - 1;

    /// `part`: distance of the place from that pixel, as a part of the distance to the next one.
    fn of(taps: [f64; MOST], part: f64) -> f64;

    /// The same for levels, whose differences are exact in integers.
    fn of_levels(taps: [u8; MOST], part: f64) -> f64;

    /// The level of a result, cut off.
    fn level(v: f64) -> u8;
}

pub(super) struct LinearKernel;

impl InterpolationKernel for LinearKernel {
    const TAPS: usize = 2;

    #[inline(always)]
    fn of([p, q, ..]: [f64; MOST], part: f64) -> f64 {
        p + (q - p) * part
    }

    #[inline(always)]
    fn of_levels([p, q, ..]: [u8; MOST], part: f64) -> f64 {
        let [p, q] = [p, q].map(i32::from);
        f64::from(p) + f64::from(q - p) * part
    }

    #[inline(always)]
    fn level(v: f64) -> u8 {
        // Between the levels of its taps: a product with a part below 1 is not above the difference.
        v as i32 as u8
    }
}

/// Keys' cubic kernel with a = -1.
pub(super) struct CubicKernel;

impl InterpolationKernel for CubicKernel {
    const TAPS: usize = 4;

    #[inline(always)]
    fn of([p, q, r, s]: [f64; MOST], part: f64) -> f64 {
        let first = -p + r;
        let second = 2.0 * (p - q) + r - s;
        let third = -p + q - r + s;
        q + part * (first + part * (second + part * third))
    }

    #[inline(always)]
    fn of_levels(taps: [u8; MOST], part: f64) -> f64 {
        let [p, q, r, s] = taps.map(i32::from);
        let first = f64::from(r - p);
        let second = f64::from(2 * (p - q) + r - s);
        let third = f64::from(q - p - r + s);
        f64::from(q) + part * (first + part * (second + part * third))
    }

    #[inline(always)]
    fn level(v: f64) -> u8 {
        cut(v)
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

/// Calls `of` for each tap of the kernel; unused taps repeat the last.
#[inline(always)]
pub(super) fn taps<K: InterpolationKernel, T>(of: impl Fn(usize) -> T) -> [T; MOST] {
    std::array::from_fn(|tap| of(tap.min(K::TAPS - 1)))
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

/// Truncates and clamps like a cast, but the compiler can vectorise it.
#[inline(always)]
fn cut(v: f64) -> u8 {
    // From 2^52 on a double has no fraction, so the addition rounds.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let v = v.clamp(0.0, 255.0);
    let near = v + WHOLE - WHOLE;
    let below = if near > v { near - 1.0 } else { near };
    (below + WHOLE).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_cut_as_by_a_cast() {
        for i in -40..4400 {
            let whole = f64::from(i) / 16.0;
            for v in [whole, whole.next_up(), whole.next_down()] {
                assert_eq!(cut(v), v as u8, "{v}");
            }
        }
        for v in [1e300, -1e300, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            assert_eq!(cut(v), v as u8, "{v}");
        }
    }
}
