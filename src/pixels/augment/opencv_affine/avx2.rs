//! Eight pixels at a time, with the sums of the plain form.
//!
//! - `turned`: any matrix. Both axes of a pixel are mixed together.
//! - `straight`: a zoom and a shift. All pixels of a row come from the same two rows, which are
//!   mixed first. The columns are those of every row, so their places are computed once.
//!
//! Groups of pixels with taps outside the image take the plain form.

use std::arch::x86_64::*;
use std::ops::Range;

use super::scalar::{
    LEVEL_BITS, PART, PLACE_BITS, WarpPlaces, WarpSource, WarpWindow, level, mix, row,
};
use crate::pixels::pixel_view::{PixelView, RgbPixel, fill_pixels};

const PIXEL: usize = 3;
/// Pixels that are computed together.
const GROUP: usize = 8;
/// The bytes of a group, as they are written.
type GroupWords = [[u8; 8]; PIXEL];
/// Bytes of a load: two pixels, and a part of the third.
const LOADED: usize = 8;
/// Columns whose places are kept.
const CHUNK: usize = 64;
/// The most columns of the source for a chunk: those of a zoom out to half the size, and room for
/// whole loads.
const SPAN: usize = 2 * CHUNK + 16;
/// Chunks whose places are kept together.
const CHUNKS: usize = 16;
/// Levels of a load from mixed rows.
const LEVELS: usize = 8;
/// The last level of a mixed row where a load may begin: all ones, so that a mask replaces a check.
const LAST: usize = (PIXEL * SPAN).next_power_of_two() - 1;
/// Room for a mixed row and the last load.
const MIXED: usize = LAST + LEVELS;

const SHIFT: i32 = LEVEL_BITS as i32;
const BITS: i32 = PLACE_BITS as i32;

/// Whether byte offsets of the image have room in 32 bits.
pub(super) fn has_room(src: PixelView<'_, u8>) -> bool {
    i32::try_from(size_of_val(src.pixels)).is_ok()
}

/// An image that may turn.
#[target_feature(enable = "avx2")]
pub(super) fn turned(window: &WarpWindow, src: WarpSource<'_>, out: &mut [RgbPixel<u8>]) {
    for y in window.rows.clone() {
        let out = &mut out[y * src.0.width..][window.columns.clone()];
        let places = WarpPlaces::new(window.matrix, y);
        turned_row(&places, window.columns.start, src, out);
    }
}

/// An image that does not turn.
#[target_feature(enable = "avx2")]
pub(super) fn straight(window: &WarpWindow, src: WarpSource<'_>, out: &mut [RgbPixel<u8>]) {
    let (view, fill) = src;
    let (width, height) = (view.width, view.height as i32);
    let Some(parts) = RowParts::find(&WarpPlaces::new(window.matrix, 0), window, width) else {
        return turned(window, src, out);
    };
    let mut columns = [const { StraightColumns::EMPTY }; CHUNKS];
    let mut mixed = [0; MIXED];
    // Row after row, so that reads and writes go on in memory.
    let mut x = parts.whole.start;
    loop {
        let end = parts.whole.end.min(x + CHUNKS * CHUNK);
        let chunks = (end - x).div_ceil(CHUNK);
        for (i, columns) in columns[..chunks].iter_mut().enumerate() {
            let from = x + i * CHUNK;
            columns.find(
                &WarpPlaces::new(window.matrix, 0),
                from..end.min(from + CHUNK),
            );
        }
        let is_first = x == parts.whole.start;
        for y in window.rows.clone() {
            let places = WarpPlaces::new(window.matrix, y);
            let [_, down] = places.at(x);
            let top = down >> PLACE_BITS;
            let out = &mut out[y * width..][..width];
            if top < -1 || top >= height {
                if is_first {
                    fill_pixels(&mut out[window.columns.clone()], fill);
                }
                continue;
            }
            if is_first {
                fill_pixels(&mut out[window.columns.start..parts.any.start], fill);
                let before = parts.any.start..parts.whole.start;
                row(&places, before.start, src, &mut out[before.clone()]);
                let after = parts.whole.end..parts.any.end;
                row(&places, after.start, src, &mut out[after.clone()]);
                fill_pixels(&mut out[parts.any.end..window.columns.end], fill);
            }
            if top < 0 || top >= height - 1 {
                row(&places, x, src, &mut out[x..end]);
                continue;
            }
            let out = out[x..end].chunks_mut(CHUNK);
            for (columns, out) in columns.iter().zip(out) {
                straight_row(columns, down, view, &mut mixed, out);
            }
        }
        x = end;
        if x >= parts.whole.end {
            break;
        }
    }
}

/// The parts of a row of an image that neither turns nor is mirrored.
struct RowParts {
    /// Pixels with a tap inside the image. All others have the fill.
    any: Range<usize>,
    /// Pixels with all taps inside, in every row that the image has.
    whole: Range<usize>,
}

impl RowParts {
    /// None if places go to the left, are nowhere, or are so far apart that a chunk has no room.
    fn find(places: &WarpPlaces, window: &WarpWindow, width: usize) -> Option<Self> {
        let columns = window.columns.clone();
        let place = |x: usize| places.at(x)[0];
        let last = columns.end.checked_sub(1)?;
        let is_known = |v: i32| v != i32::MIN;
        let step = places.step[0];
        if columns.is_empty() || !is_known(place(columns.start)) || !is_known(place(last)) {
            return None;
        }
        // A chunk, and rounding at its ends.
        let span = step * (CHUNK - 1) as f64 / f64::from(1 << PLACE_BITS) + 3.0;
        if !(0.0..(SPAN - 1) as f64).contains(&span) || step < 0.0 {
            return None;
        }
        let first_from = |least: i64| {
            let (mut low, mut high) = (columns.start, columns.end);
            while low < high {
                let middle = low.midpoint(high);
                match i64::from(place(middle) >> PLACE_BITS) < least {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let width = width as i64;
        let (inside, end) = (first_from(0), first_from(width - 1));
        Some(Self {
            any: first_from(-1)..first_from(width),
            whole: inside..end.max(inside),
        })
    }
}

/// Shuffles four bytes of which the last is unused to three, four times in each half.
#[inline]
#[target_feature(enable = "avx2")]
fn close_up(levels: __m256i) -> __m256i {
    #[rustfmt::skip]
    let bytes = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    ));
    let words = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(levels, bytes), words)
}

/// Writes eight pixels: of each vector two, from the starts of its halves.
#[inline]
#[target_feature(enable = "avx2")]
fn write([p, q, r, s]: [__m256i; 4], [a, b, c]: &mut GroupWords) {
    let half = _mm256_set1_epi16(1 << (SHIFT - 1));
    let cut = |v| _mm256_srli_epi16::<SHIFT>(_mm256_add_epi16(v, half));
    let (low, high) = (_mm256_unpacklo_epi64(p, q), _mm256_unpacklo_epi64(r, s));
    // Pixels 0, 2, 4, 6, then 1, 3, 5, 7.
    let packed = _mm256_packus_epi16(cut(low), cut(high));
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let levels = close_up(_mm256_permutevar8x32_epi32(packed, order));
    *a = _mm256_extract_epi64::<0>(levels).to_le_bytes();
    *b = _mm256_extract_epi64::<1>(levels).to_le_bytes();
    *c = _mm256_extract_epi64::<2>(levels).to_le_bytes();
}

/// Mixes by parts of 2^15.
#[inline]
#[target_feature(enable = "avx2")]
fn mix_lanes(p: __m256i, q: __m256i, part: __m256i) -> __m256i {
    _mm256_add_epi16(p, _mm256_mulhrs_epi16(_mm256_sub_epi16(q, p), part))
}

/// Mixes the columns of two pixels: the second of each lies in the levels from the fourth on.
#[inline]
#[target_feature(enable = "avx2")]
fn mix_across(columns: __m256i, part: __m256i) -> __m256i {
    mix_lanes(columns, _mm256_srli_si256::<6>(columns), part)
}

/// Places along an axis, from pixel `x` on.
#[inline]
#[target_feature(enable = "avx2")]
fn places_along(step: f64, first: f64, x: usize) -> __m256i {
    let (step, first) = (_mm256_set1_pd(step), _mm256_set1_pd(first));
    let place = |x| _mm256_cvtpd_epi32(_mm256_add_pd(_mm256_mul_pd(step, x), first));
    let x = _mm256_add_pd(_mm256_set1_pd(x as f64), _mm256_setr_pd(0.0, 1.0, 2.0, 3.0));
    let next = _mm256_add_pd(x, _mm256_set1_pd(4.0));
    _mm256_set_m128i(place(next), place(x))
}

/// Pixels of a row from `x` on.
#[target_feature(enable = "avx2")]
fn turned_row(places: &WarpPlaces, x: usize, src: WarpSource<'_>, out: &mut [RgbPixel<u8>]) {
    let (view, fill) = src;
    let (width, height) = (view.width as i32, view.height as i32);
    let any = |a, b| _mm256_or_si256(a, b);
    let above = |v, most: i32| _mm256_cmpgt_epi32(v, _mm256_set1_epi32(most));
    let below = |v, least: i32| _mm256_cmpgt_epi32(_mm256_set1_epi32(least), v);
    let stride = _mm256_set1_epi32((PIXEL * view.stride) as i32);
    let part = _mm256_set1_epi32(PART);
    let mut x = x;
    let bytes = view.pixels.as_flattened();
    let below_by = PIXEL * view.stride;
    let (groups, rest) = whole_groups(out);
    for out in groups {
        let right = places_along(places.step[0], places.first[0], x);
        let down = places_along(places.step[1], places.first[1], x);
        let (left, top) = (
            _mm256_srai_epi32::<BITS>(right),
            _mm256_srai_epi32::<BITS>(down),
        );
        // The pixel right of the taps is loaded, too.
        let beyond = any(above(left, width - 3), above(top, height - 2));
        let beyond = any(beyond, below(any(left, top), 0));
        if _mm256_testz_si256(beyond, beyond) == 0 {
            let high = any(above(left, width - 1), above(top, height - 1));
            let outside = any(high, any(below(left, -1), below(top, -1)));
            let out = out.as_flattened_mut().as_chunks_mut().0;
            match _mm256_movemask_epi8(outside) == -1 {
                true => fill_pixels(out, fill),
                false => row(places, x, src, out),
            }
            x += GROUP;
            continue;
        }
        let columns = _mm256_add_epi32(left, _mm256_slli_epi32::<1>(left));
        let at = _mm256_add_epi32(_mm256_mullo_epi32(top, stride), columns);
        let at = [
            _mm256_extract_epi64::<0>(at),
            _mm256_extract_epi64::<1>(at),
            _mm256_extract_epi64::<2>(at),
            _mm256_extract_epi64::<3>(at),
        ];
        let (right, down) = (_mm256_and_si256(right, part), _mm256_and_si256(down, part));
        let (p, q) = (
            mixed_pair::<0>(bytes, (at[0], below_by), right, down),
            mixed_pair::<1>(bytes, (at[1], below_by), right, down),
        );
        let (r, s) = (
            mixed_pair::<2>(bytes, (at[2], below_by), right, down),
            mixed_pair::<3>(bytes, (at[3], below_by), right, down),
        );
        write([p, q, r, s], out);
        x += GROUP;
    }
    row(places, x, src, rest);
}

/// Divides a row into whole groups and the other pixels.
#[inline(always)]
fn whole_groups(row: &mut [RgbPixel<u8>]) -> (&mut [GroupWords], &mut [RgbPixel<u8>]) {
    let whole = row.len() / GROUP * GROUP;
    let (groups, rest) = row.split_at_mut(whole);
    let words = groups.as_flattened_mut().as_chunks_mut().0;
    (words.as_chunks_mut().0, rest)
}

/// Mixes pixels `2 * PAIR` and the next one of a group. `at`: where their taps begin, as two
/// numbers of 32 bits. `below`: bytes to the next row. `right`, `down`: the parts of all pixels of
/// the group.
#[inline]
#[target_feature(enable = "avx2")]
fn mixed_pair<const PAIR: i32>(
    bytes: &[u8],
    (at, below): (i64, usize),
    right: __m256i,
    down: __m256i,
) -> __m256i {
    let (p, q) = (at as u32 as usize, (at as u64 >> 32) as usize);
    let above = _mm256_set_m128i(wide(bytes, q), wide(bytes, p));
    let below = _mm256_set_m128i(wide(bytes, q + below), wide(bytes, p + below));
    let (above, below) = (
        _mm256_slli_epi16::<SHIFT>(above),
        _mm256_slli_epi16::<SHIFT>(below),
    );
    let columns = mix_lanes(above, below, spread_parts::<PAIR>(down));
    mix_across(columns, spread_parts::<PAIR>(right))
}

/// The parts of pixels `2 * PAIR` and the next one, for each level.
#[inline]
#[target_feature(enable = "avx2")]
fn spread_parts<const PAIR: i32>(parts: __m256i) -> __m256i {
    let (n, next) = (2 * PAIR, 2 * PAIR + 1);
    let order = _mm256_setr_epi32(n, n, n, n, next, next, next, next);
    let parts = _mm256_permutevar8x32_epi32(parts, order);
    _mm256_or_si256(parts, _mm256_slli_epi32::<16>(parts))
}

/// Eight bytes of the image, as levels of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn wide(bytes: &[u8], at: usize) -> __m128i {
    let loaded = bytes[at..].first_chunk::<LOADED>();
    debug_assert!(loaded.is_some(), "the pixel right of the taps lies outside");
    let loaded = loaded.copied().unwrap_or_default();
    _mm_cvtepu8_epi16(_mm_cvtsi64_si128(i64::from_le_bytes(loaded)))
}

/// The columns of a chunk, which are those of every row.
struct StraightColumns {
    /// The column of the left tap, times the levels of a pixel, less that of the first one.
    lefts: [u16; CHUNK],
    /// The part beyond it, once for each level.
    parts: [[i16; LEVELS]; CHUNK],
    first: usize,
    /// Columns of the source.
    span: usize,
}

impl StraightColumns {
    const EMPTY: Self = Self {
        lefts: [0; CHUNK],
        parts: [[0; LEVELS]; CHUNK],
        first: 0,
        span: 0,
    };

    /// Finds the columns of these pixels, at most a chunk, whose taps all lie inside.
    fn find(&mut self, places: &WarpPlaces, pixels: Range<usize>) {
        let column = |x: usize| places.at(x)[0];
        let (first, last) = (column(pixels.start), column(pixels.end - 1));
        self.first = (first >> PLACE_BITS) as usize;
        self.span = (last >> PLACE_BITS) as usize - self.first + 2;
        for (i, x) in pixels.enumerate() {
            let place = column(x);
            let left = (place >> PLACE_BITS) as usize - self.first;
            self.lefts[i] = (PIXEL * left) as u16;
            self.parts[i] = [(place & PART) as i16; LEVELS];
        }
    }
}

/// Pixels of a row whose columns are these. `mixed`: room for the source's row between two rows.
#[target_feature(enable = "avx2")]
fn straight_row(
    columns: &StraightColumns,
    down: i32,
    src: PixelView<'_, u8>,
    mixed: &mut [i16; MIXED],
    out: &mut [RgbPixel<u8>],
) {
    const STEP: usize = 16;
    let top = (down >> PLACE_BITS) as usize;
    let part = (down & PART) as i16;
    let line = |y: usize| {
        let from = y * src.stride + columns.first;
        src.pixels[from..from + columns.span].as_flattened()
    };
    let (above, below) = (line(top), line(top + 1));
    let to = &mut mixed[..PIXEL * columns.span];
    let parts = _mm256_set1_epi16(part);
    let of = |bytes: &[u8; STEP]| {
        // SAFETY: the array has 16 bytes.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        _mm256_slli_epi16::<SHIFT>(_mm256_cvtepu8_epi16(bytes))
    };
    let mix_step = |p, q, to: &mut [i16; STEP]| {
        let v = mix_lanes(of(p), of(q), parts);
        // SAFETY: the array has 16 numbers of two bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) };
    };
    // By index: `zip` became a call.
    let (above_steps, below_steps) = (above.as_chunks().0, below.as_chunks().0);
    let to_steps = to.as_chunks_mut().0;
    let steps = to_steps.len();
    let (above_steps, below_steps) = (&above_steps[..steps], &below_steps[..steps]);
    let mut step = 0;
    while step < steps {
        mix_step(&above_steps[step], &below_steps[step], &mut to_steps[step]);
        step += 1;
    }
    // The last step may overlap the one before.
    if let (Some(p), Some(q), Some(to)) =
        (above.last_chunk(), below.last_chunk(), to.last_chunk_mut())
    {
        mix_step(p, q, to);
    } else {
        for ((p, q), to) in above.iter().zip(below).zip(to) {
            let (p, q) = (i16::from(*p) << LEVEL_BITS, i16::from(*q) << LEVEL_BITS);
            *to = mix(p, q, part);
        }
    }
    let load = |left: u16| {
        debug_assert!(usize::from(left) <= LAST, "a column lies outside");
        let left = usize::from(left) & LAST;
        let levels: &[i16; LEVELS] = mixed[left..].first_chunk().unwrap_or(&[0; LEVELS]);
        // SAFETY: the array has 16 bytes.
        unsafe { _mm_loadu_si128(levels.as_ptr().cast()) }
    };
    let (groups, rest) = whole_groups(out);
    let lefts = columns.lefts.as_chunks::<GROUP>().0;
    let parts = columns.parts.as_chunks::<GROUP>().0;
    let done = GROUP * groups.len();
    for ((out, lefts), parts) in groups.iter_mut().zip(lefts).zip(parts) {
        let pair = |i: usize| {
            let columns = _mm256_set_m128i(load(lefts[i + 1]), load(lefts[i]));
            let parts: &[[i16; LEVELS]; 2] = parts[i..].first_chunk().unwrap_or(&[[0; LEVELS]; 2]);
            // SAFETY: the array has 32 bytes.
            let parts = unsafe { _mm256_loadu_si256(parts.as_ptr().cast()) };
            mix_across(columns, parts)
        };
        write([pair(0), pair(2), pair(4), pair(6)], out);
    }
    for (out, i) in rest.iter_mut().zip(done..) {
        let left = usize::from(columns.lefts[i]);
        for (c, out) in out.iter_mut().enumerate() {
            let (p, q) = (mixed[left + c], mixed[left + PIXEL + c]);
            *out = level(mix(p, q, columns.parts[i][0]));
        }
    }
}
