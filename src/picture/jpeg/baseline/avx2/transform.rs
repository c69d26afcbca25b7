//! The inverse transform of two blocks to 8 x 8 samples, one block in each lane.
//!
//! The arithmetic is that of `super::super::transform`, in the order of libjpeg-turbo's SIMD.

use std::arch::x86_64::*;

use super::super::blocks::{Pair, Target};
use super::super::frame::Quantization;
use super::super::transform::{self, fix::*};
use super::words::{add, dequantized, is_absurd, sub, sum};

/// Even and odd parts to eight values, rounded off by `BITS`; `even` has the half of that added.
#[target_feature(enable = "avx2")]
#[inline]
fn butterfly<const BITS: i32>(even: [__m256i; 4], odd: [__m256i; 4]) -> [__m256i; 8] {
    let up = |i: usize| _mm256_srai_epi32::<BITS>(_mm256_add_epi32(even[i], odd[i]));
    let down = |i: usize| _mm256_srai_epi32::<BITS>(_mm256_sub_epi32(even[i], odd[i]));
    [
        up(0),
        up(1),
        up(2),
        up(3),
        down(3),
        down(2),
        down(1),
        down(0),
    ]
}

/// Half of the words of eight rows: `islow` of `transform`.
#[target_feature(enable = "avx2")]
#[inline]
fn half<const BITS: i32>([r26, s, d, z34, r71, r53]: [__m256i; 6]) -> [__m256i; 8] {
    let round = _mm256_set1_epi32(1 << (BITS - 1));
    let (t0, t1) = (add(s, round), add(d, round));
    let t2 = sum(r26, F0_541, F0_541 - F1_847);
    let t3 = sum(r26, F0_541 + F0_765, F0_541);
    let z3 = sum(z34, F1_175 - F1_961, F1_175);
    let z4 = sum(z34, F1_175, F1_175 - F0_390);
    let odd = [
        add(sum(r71, -F0_899, F1_501 - F0_899), z4),
        add(sum(r53, -F2_562, F3_072 - F2_562), z3),
        add(sum(r53, F2_053 - F2_562, -F2_562), z4),
        add(sum(r71, F0_298 - F0_899, -F0_899), z3),
    ];
    butterfly::<BITS>([add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)], odd)
}

/// A pass over eight rows of words.
#[target_feature(enable = "avx2")]
#[inline]
fn pass<const BITS: i32>(r: [__m256i; 8]) -> [__m256i; 8] {
    let zero = _mm256_setzero_si256();
    let s = _mm256_add_epi16(r[0], r[4]);
    let d = _mm256_sub_epi16(r[0], r[4]);
    let z3 = _mm256_add_epi16(r[7], r[3]);
    let z4 = _mm256_add_epi16(r[5], r[1]);
    let low = half::<BITS>([
        _mm256_unpacklo_epi16(r[2], r[6]),
        _mm256_srai_epi32::<3>(_mm256_unpacklo_epi16(zero, s)),
        _mm256_srai_epi32::<3>(_mm256_unpacklo_epi16(zero, d)),
        _mm256_unpacklo_epi16(z3, z4),
        _mm256_unpacklo_epi16(r[7], r[1]),
        _mm256_unpacklo_epi16(r[5], r[3]),
    ]);
    let high = half::<BITS>([
        _mm256_unpackhi_epi16(r[2], r[6]),
        _mm256_srai_epi32::<3>(_mm256_unpackhi_epi16(zero, s)),
        _mm256_srai_epi32::<3>(_mm256_unpackhi_epi16(zero, d)),
        _mm256_unpackhi_epi16(z3, z4),
        _mm256_unpackhi_epi16(r[7], r[1]),
        _mm256_unpackhi_epi16(r[5], r[3]),
    ]);
    pack(low, high)
}

#[target_feature(enable = "avx2")]
#[inline]
fn pack(low: [__m256i; 8], high: [__m256i; 8]) -> [__m256i; 8] {
    let mut rows = low;
    for (row, high) in rows.iter_mut().zip(high) {
        *row = _mm256_packs_epi32(*row, high);
    }
    rows
}

/// `half` of rows of which the last four are zero: row 0 with 13 bits of fraction, row 2 and
/// zeros, rows 1 and 3.
#[target_feature(enable = "avx2")]
#[inline]
fn half_of_four<const BITS: i32>(r0: __m256i, r2: __m256i, r13: __m256i) -> [__m256i; 8] {
    let t = add(r0, _mm256_set1_epi32(1 << (BITS - 1)));
    let t2 = sum(r2, F0_541, 0);
    let t3 = sum(r2, F0_541 + F0_765, 0);
    let odd = [
        sum(r13, F1_501 - F0_899 + F1_175 - F0_390, F1_175),
        sum(r13, F1_175, F3_072 - F2_562 + F1_175 - F1_961),
        sum(r13, F1_175 - F0_390, F1_175 - F2_562),
        sum(r13, F1_175 - F0_899, F1_175 - F1_961),
    ];
    butterfly::<BITS>([add(t, t3), add(t, t2), sub(t, t2), sub(t, t3)], odd)
}

/// Eight rows of words with their columns as rows, in each lane.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose(r: [__m256i; 8]) -> [__m256i; 8] {
    let a = [
        _mm256_unpacklo_epi16(r[0], r[1]),
        _mm256_unpackhi_epi16(r[0], r[1]),
        _mm256_unpacklo_epi16(r[2], r[3]),
        _mm256_unpackhi_epi16(r[2], r[3]),
        _mm256_unpacklo_epi16(r[4], r[5]),
        _mm256_unpackhi_epi16(r[4], r[5]),
        _mm256_unpacklo_epi16(r[6], r[7]),
        _mm256_unpackhi_epi16(r[6], r[7]),
    ];
    let b = [
        _mm256_unpacklo_epi32(a[0], a[2]),
        _mm256_unpackhi_epi32(a[0], a[2]),
        _mm256_unpacklo_epi32(a[4], a[6]),
        _mm256_unpackhi_epi32(a[4], a[6]),
        _mm256_unpacklo_epi32(a[1], a[3]),
        _mm256_unpackhi_epi32(a[1], a[3]),
        _mm256_unpacklo_epi32(a[5], a[7]),
        _mm256_unpackhi_epi32(a[5], a[7]),
    ];
    [
        _mm256_unpacklo_epi64(b[0], b[2]),
        _mm256_unpackhi_epi64(b[0], b[2]),
        _mm256_unpacklo_epi64(b[1], b[3]),
        _mm256_unpackhi_epi64(b[1], b[3]),
        _mm256_unpacklo_epi64(b[4], b[6]),
        _mm256_unpackhi_epi64(b[4], b[6]),
        _mm256_unpacklo_epi64(b[5], b[7]),
        _mm256_unpackhi_epi64(b[5], b[7]),
    ]
}

/// Writes 8 x 8 samples of each lane; `d` has their columns as words.
#[target_feature(enable = "avx2")]
#[inline]
fn store_8(d: [__m256i; 8], to: &mut [u8], at: Target) {
    let a = _mm256_packs_epi16(d[0], d[4]);
    let b = _mm256_packs_epi16(d[1], d[5]);
    let c = _mm256_packs_epi16(d[2], d[6]);
    let d = _mm256_packs_epi16(d[3], d[7]);
    let (ab, ef) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
    let (cd, gh) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
    let (a0, a4) = (_mm256_unpacklo_epi16(ab, cd), _mm256_unpackhi_epi16(ab, cd));
    let (e0, e4) = (_mm256_unpacklo_epi16(ef, gh), _mm256_unpackhi_epi16(ef, gh));
    // Two rows of each lane.
    let rows = [
        _mm256_unpacklo_epi32(a0, e0),
        _mm256_unpackhi_epi32(a0, e0),
        _mm256_unpacklo_epi32(a4, e4),
        _mm256_unpackhi_epi32(a4, e4),
    ];
    let center = _mm256_set1_epi8(-128);
    let rows = [
        _mm256_add_epi8(rows[0], center),
        _mm256_add_epi8(rows[1], center),
        _mm256_add_epi8(rows[2], center),
        _mm256_add_epi8(rows[3], center),
    ];
    if let Some(to) = to.get_mut(at.first..) {
        let rows = [
            _mm256_castsi256_si128(rows[0]),
            _mm256_castsi256_si128(rows[1]),
            _mm256_castsi256_si128(rows[2]),
            _mm256_castsi256_si128(rows[3]),
        ];
        put_8(rows, to, at.pitch);
    }
    let Some(second) = at.second else { return };
    if let Some(to) = to.get_mut(second..) {
        let rows = [
            _mm256_extracti128_si256::<1>(rows[0]),
            _mm256_extracti128_si256::<1>(rows[1]),
            _mm256_extracti128_si256::<1>(rows[2]),
            _mm256_extracti128_si256::<1>(rows[3]),
        ];
        put_8(rows, to, at.pitch);
    }
}

/// Writes two rows of eight samples out of each of `rows`.
#[target_feature(enable = "avx2")]
#[inline]
fn put_8(rows: [__m128i; 4], to: &mut [u8], pitch: usize) {
    for (i, row) in rows.into_iter().enumerate() {
        let start = 2 * i * pitch;
        if let Some(line) = to.get_mut(start..).and_then(|to| to.first_chunk_mut::<8>()) {
            *line = _mm_cvtsi128_si64(row).to_le_bytes();
        }
        let start = start + pitch;
        if let Some(line) = to.get_mut(start..).and_then(|to| to.first_chunk_mut::<8>()) {
            *line = _mm_extract_epi64::<1>(row).to_le_bytes();
        }
    }
}

/// `transform::to8` of two blocks.
#[target_feature(enable = "avx2")]
pub(super) fn to8(from: &Pair, q: &Quantization, end: u64, to: &mut [u8], at: Target) {
    if end <= 1 {
        flat(from.0[0], q[0], to, at.first, at.pitch);
        if let Some(second) = at.second {
            flat(from.0[8], q[0], to, second, at.pitch);
        }
        return;
    }
    let [first] = dequantized::<1>(from, q);
    if is_absurd(first) {
        return transform::pair::<8>(from, q, to, at, transform::to8);
    }
    let columns = if end <= 10 {
        of_four(dequantized::<4>(from, q))
    } else {
        pass::<18>(transpose(pass::<11>(dequantized::<8>(from, q))))
    };
    store_8(columns, to, at);
}

/// A block that is its mean.
#[inline(always)]
fn flat(dc: i16, q: i16, to: &mut [u8], start: usize, pitch: usize) {
    let value = i32::from(dc.wrapping_mul(q).wrapping_shl(2));
    let value = ((value + 16) >> 5).clamp(-128, 127) + 128;
    let Some(to) = to
        .get_mut(start..)
        .and_then(|to| to.get_mut(..7 * pitch + 8))
    else {
        return;
    };
    for line in to.chunks_mut(pitch) {
        if let Some(line) = line.first_chunk_mut::<8>() {
            *line = [value as u8; 8];
        }
    }
}

/// The columns of 8 x 8 samples, of which only the upper left 4 x 4 coefficients are not zero.
#[target_feature(enable = "avx2")]
#[inline]
fn of_four(r: [__m256i; 4]) -> [__m256i; 8] {
    let zero = _mm256_setzero_si256();
    // Row i, columns 0 to 3.
    let low = half_of_four::<11>(
        _mm256_srai_epi32::<3>(_mm256_unpacklo_epi16(zero, r[0])),
        _mm256_unpacklo_epi16(r[2], zero),
        _mm256_unpacklo_epi16(r[1], r[3]),
    );
    // Words: row i and row i + 4.
    let p = [
        _mm256_packs_epi32(low[0], low[4]),
        _mm256_packs_epi32(low[1], low[5]),
        _mm256_packs_epi32(low[2], low[6]),
        _mm256_packs_epi32(low[3], low[7]),
    ];
    let a0 = _mm256_unpacklo_epi16(p[0], p[1]);
    let a1 = _mm256_unpackhi_epi16(p[0], p[1]);
    let a2 = _mm256_unpacklo_epi16(p[2], p[3]);
    let a3 = _mm256_unpackhi_epi16(p[2], p[3]);
    let (b0, b1) = (_mm256_unpacklo_epi32(a0, a2), _mm256_unpackhi_epi32(a0, a2));
    let (b2, b3) = (_mm256_unpacklo_epi32(a1, a3), _mm256_unpackhi_epi32(a1, a3));
    // Columns 0 to 3, rows as words.
    let (c0, c1) = (_mm256_unpacklo_epi64(b0, b2), _mm256_unpackhi_epi64(b0, b2));
    let (c2, c3) = (_mm256_unpacklo_epi64(b1, b3), _mm256_unpackhi_epi64(b1, b3));
    let low = half_of_four::<18>(
        _mm256_srai_epi32::<3>(_mm256_unpacklo_epi16(zero, c0)),
        _mm256_unpacklo_epi16(c2, zero),
        _mm256_unpacklo_epi16(c1, c3),
    );
    let high = half_of_four::<18>(
        _mm256_srai_epi32::<3>(_mm256_unpackhi_epi16(zero, c0)),
        _mm256_unpackhi_epi16(c2, zero),
        _mm256_unpackhi_epi16(c1, c3),
    );
    pack(low, high)
}
