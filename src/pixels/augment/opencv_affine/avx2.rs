//! Eight pixels at a time, with the sums of the plain form.
//!
//! - `turned`: any matrix. Both axes of a pixel are mixed together.
//! - `straight`: a zoom and a shift. All pixels of a row come from the same two rows, which are
//!   mixed first. The columns are those of every row, so their places are computed once.
//!
//! Groups of pixels with taps outside the image take the plain form.

use std::arch::x86_64::*;

use super::scalar::{
    LEVEL_BITS, PART, PLACE_BITS, WarpPlaces, WarpSource, WarpWindow, level, mix, row,
};
use crate::pixels::pixel_view::{PixelView, RgbPixel};

const PIXEL: usize = 3;
/// Pixels that are computed together.
const GROUP: usize = 8;
/// Bytes of a load: two pixels, and a part of the third.
const LOADED: usize = 8;
/// Columns whose places are kept.
const CHUNK: usize = 64;
/// The most columns of the source for a chunk: those of a zoom out to half the size, and room for
/// whole loads.
const SPAN: usize = 2 * CHUNK + 16;
/// Levels of a load from mixed rows.
const LEVELS: usize = 8;

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
    let (width, height) = (src.0.width, src.0.height as i32);
    let mut columns = StraightColumns::default();
    let mut mixed = [0; PIXEL * SPAN];
    for x in window.columns.clone().step_by(CHUNK) {
        let count = CHUNK.min(window.columns.end - x);
        let is_inside = columns.find(&WarpPlaces::new(window.matrix, 0), x, (count, width));
        for y in window.rows.clone() {
            let out = &mut out[y * width + x..][..count];
            let places = WarpPlaces::new(window.matrix, y);
            let [_, down] = places.at(x);
            let top = down >> PLACE_BITS;
            match is_inside && top >= 0 && top < height - 1 {
                true => straight_row(&columns, down, src.0, &mut mixed, out),
                false => turned_row(&places, x, src, out),
            }
        }
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
fn write([p, q, r, s]: [__m256i; 4], out: &mut [RgbPixel<u8>; GROUP]) {
    let half = _mm256_set1_epi16(1 << (SHIFT - 1));
    let cut = |v| _mm256_srli_epi16::<SHIFT>(_mm256_add_epi16(v, half));
    let (low, high) = (_mm256_unpacklo_epi64(p, q), _mm256_unpacklo_epi64(r, s));
    // Pixels 0, 2, 4, 6, then 1, 3, 5, 7.
    let packed = _mm256_packus_epi16(cut(low), cut(high));
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let levels = close_up(_mm256_permutevar8x32_epi32(packed, order));
    let bytes = out.as_flattened_mut().as_chunks_mut().0;
    if let Some([a, b, c]) = bytes.first_chunk_mut() {
        *a = _mm256_extract_epi64::<0>(levels).to_le_bytes();
        *b = _mm256_extract_epi64::<1>(levels).to_le_bytes();
        *c = _mm256_extract_epi64::<2>(levels).to_le_bytes();
    }
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
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
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
            match _mm256_movemask_epi8(outside) == -1 {
                true => out.fill(fill),
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
            mixed_pair::<0>(view, at[0], right, down),
            mixed_pair::<1>(view, at[1], right, down),
        );
        let (r, s) = (
            mixed_pair::<2>(view, at[2], right, down),
            mixed_pair::<3>(view, at[3], right, down),
        );
        write([p, q, r, s], out);
        x += GROUP;
    }
    row(places, x, src, rest);
}

/// Mixes pixels `2 * PAIR` and the next one of a group. `at`: where their taps begin, as two
/// numbers of 32 bits. `right`, `down`: the parts of all pixels of the group.
#[inline]
#[target_feature(enable = "avx2")]
fn mixed_pair<const PAIR: i32>(
    view: PixelView<'_, u8>,
    at: i64,
    right: __m256i,
    down: __m256i,
) -> __m256i {
    let (p, q) = (at as u32 as usize, (at as u64 >> 32) as usize);
    let below = PIXEL * view.stride;
    let above = _mm256_set_m128i(wide(view, q), wide(view, p));
    let below = _mm256_set_m128i(wide(view, q + below), wide(view, p + below));
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
fn wide(view: PixelView<'_, u8>, at: usize) -> __m128i {
    let bytes = view.pixels.as_flattened();
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

impl Default for StraightColumns {
    fn default() -> Self {
        Self {
            lefts: [0; CHUNK],
            parts: [[0; LEVELS]; CHUNK],
            first: 0,
            span: 0,
        }
    }
}

impl StraightColumns {
    /// Finds the columns of `count` pixels from pixel `x` on. False if they go to the left, if one
    /// lies outside, or if they span too much.
    fn find(&mut self, places: &WarpPlaces, x: usize, (count, width): (usize, usize)) -> bool {
        let column = |i: usize| places.at(x + i)[0];
        let (first, last) = (column(0) >> PLACE_BITS, column(count - 1) >> PLACE_BITS);
        if first < 0 || last < first || last as usize + 2 > width {
            return false;
        }
        self.first = first as usize;
        self.span = (last - first) as usize + 2;
        if self.span >= SPAN {
            return false;
        }
        for i in 0..count {
            let place = column(i);
            let left = ((place >> PLACE_BITS) - first) as usize;
            self.lefts[i] = (PIXEL * left) as u16;
            self.parts[i] = [(place & PART) as i16; LEVELS];
        }
        true
    }
}

/// Pixels of a row whose columns are these. `mixed`: room for the source's row between two rows.
#[target_feature(enable = "avx2")]
fn straight_row(
    columns: &StraightColumns,
    down: i32,
    src: PixelView<'_, u8>,
    mixed: &mut [i16; PIXEL * SPAN],
    out: &mut [RgbPixel<u8>],
) {
    const STEP: usize = 16;
    let top = (down >> PLACE_BITS) as usize;
    let part = (down & PART) as i16;
    let line = |y: usize| {
        let from = y * src.stride + columns.first;
        src.pixels[from..from + columns.span].as_flattened()
    };
    let (above, above_rest) = line(top).as_chunks::<STEP>();
    let (below, below_rest) = line(top + 1).as_chunks::<STEP>();
    let (to, to_rest) = mixed[..PIXEL * columns.span].as_chunks_mut::<STEP>();
    let parts = _mm256_set1_epi16(part);
    for ((p, q), to) in above.iter().zip(below).zip(to) {
        let of = |bytes: &[u8; STEP]| {
            // SAFETY: the array has 16 bytes.
            let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
            _mm256_slli_epi16::<SHIFT>(_mm256_cvtepu8_epi16(bytes))
        };
        let v = mix_lanes(of(p), of(q), parts);
        // SAFETY: the array has 16 numbers of two bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) };
    }
    for ((p, q), to) in above_rest.iter().zip(below_rest).zip(to_rest) {
        *to = mix(
            i16::from(*p) << LEVEL_BITS,
            i16::from(*q) << LEVEL_BITS,
            part,
        );
    }
    let load = |left: u16| {
        let levels = mixed[usize::from(left)..].first_chunk::<LEVELS>();
        debug_assert!(levels.is_some(), "a column lies outside");
        let levels = levels.unwrap_or(&[0; LEVELS]);
        // SAFETY: the array has 16 bytes.
        unsafe { _mm_loadu_si128(levels.as_ptr().cast()) }
    };
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
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
