//! The forward transform and quantization of two blocks, one in each lane.

use std::arch::x86_64::*;

use super::super::quantizer::BlockQuantizer;
use super::super::samples::SamplePair;
use super::super::transform::{BETWEEN, FRACTION, QuantizedPair, fix::*};
use super::lanes::{load_twice, load_words};
use super::words::{add, sum};
use super::zigzag;

/// Transposes eight rows of words in each lane.
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
        _mm256_unpacklo_epi32(a[1], a[3]),
        _mm256_unpackhi_epi32(a[1], a[3]),
        _mm256_unpacklo_epi32(a[4], a[6]),
        _mm256_unpackhi_epi32(a[4], a[6]),
        _mm256_unpacklo_epi32(a[5], a[7]),
        _mm256_unpackhi_epi32(a[5], a[7]),
    ];
    [
        _mm256_unpacklo_epi64(b[0], b[4]),
        _mm256_unpackhi_epi64(b[0], b[4]),
        _mm256_unpacklo_epi64(b[1], b[5]),
        _mm256_unpackhi_epi64(b[1], b[5]),
        _mm256_unpacklo_epi64(b[2], b[6]),
        _mm256_unpackhi_epi64(b[2], b[6]),
        _mm256_unpacklo_epi64(b[3], b[7]),
        _mm256_unpackhi_epi64(b[3], b[7]),
    ]
}

/// x * a + y * b of words, plus `more`, rounded off by `BITS`.
#[target_feature(enable = "avx2")]
#[inline]
fn rotate<const BITS: i32>(
    [low, high]: [__m256i; 2],
    (x, y): (i32, i32),
    more: Option<[__m256i; 2]>,
) -> __m256i {
    let round = _mm256_set1_epi32(1 << (BITS - 1));
    let [more_low, more_high] = more.unwrap_or([_mm256_setzero_si256(); 2]);
    let low = add(add(sum(low, x, y), more_low), round);
    let high = add(add(sum(high, x, y), more_high), round);
    _mm256_packs_epi32(
        _mm256_srai_epi32::<BITS>(low),
        _mm256_srai_epi32::<BITS>(high),
    )
}

/// Interleaves the words of two rows.
#[target_feature(enable = "avx2")]
#[inline]
fn zip(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

/// The pass of `super::super::transform` over eight rows of words. Rows 0 and 4 stay sums, without
/// a shift. Products of the same value are combined. `BITS` is the shift.
#[target_feature(enable = "avx2")]
#[inline]
fn pass<const BITS: i32>(s: [__m256i; 8]) -> [__m256i; 8] {
    let plus = |a, b| _mm256_add_epi16(a, b);
    let minus = |a, b| _mm256_sub_epi16(a, b);
    let (s07, s16) = (plus(s[0], s[7]), plus(s[1], s[6]));
    let (s25, s34) = (plus(s[2], s[5]), plus(s[3], s[4]));
    let (d07, d16) = (minus(s[0], s[7]), minus(s[1], s[6]));
    let (d25, d34) = (minus(s[2], s[5]), minus(s[3], s[4]));
    let (even0, even1) = (plus(s07, s34), plus(s16, s25));
    let odd = zip(minus(s07, s34), minus(s16, s25));
    let [low, high] = zip(plus(d34, d16), plus(d25, d07));
    let z3 = [low, high].map(|z| sum(z, F1_175 - F1_961, F1_175));
    let z4 = [low, high].map(|z| sum(z, F1_175, F1_175 - F0_390));
    let (outer, inner) = (zip(d34, d07), zip(d25, d16));
    [
        plus(even0, even1),
        rotate::<BITS>(outer, (-F0_899, F1_501 - F0_899), Some(z4)),
        rotate::<BITS>(odd, (F0_541 + F0_765, F0_541), None),
        rotate::<BITS>(inner, (-F2_562, F3_072 - F2_562), Some(z3)),
        minus(even0, even1),
        rotate::<BITS>(inner, (F2_053 - F2_562, -F2_562), Some(z4)),
        rotate::<BITS>(odd, (F0_541, F0_541 - F1_847), None),
        rotate::<BITS>(outer, (F0_298 - F0_899, -F0_899), Some(z3)),
    ]
}

/// `BlockQuantizer::divide` of a row.
#[target_feature(enable = "avx2")]
#[inline]
fn divide(value: __m256i, q: &BlockQuantizer, row: usize) -> __m256i {
    let of = |table: &[u16; 64]| {
        let words = table[8 * row..].first_chunk();
        load_twice(words.unwrap_or(&[0; 8]))
    };
    let sum = _mm256_add_epi16(_mm256_abs_epi16(value), of(&q.corrections));
    let quotient = _mm256_mulhi_epu16(sum, of(&q.reciprocals));
    let quotient = _mm256_mulhi_epu16(quotient, of(&q.scales));
    _mm256_sign_epi16(quotient, value)
}

/// `EncodeKernels::transform`.
#[target_feature(enable = "avx2")]
pub(super) fn transform(from: &SamplePair, q: &BlockQuantizer, to: &mut QuantizedPair) {
    let rows = from.each_ref().map(|row| load_words(row));
    let mut rows = pass::<{ FRACTION - BETWEEN }>(transpose(rows));
    for at in [0, 4] {
        rows[at] = _mm256_slli_epi16::<BETWEEN>(rows[at]);
    }
    let mut rows = pass::<{ FRACTION + BETWEEN }>(transpose(rows));
    let round = _mm256_set1_epi16(1 << (BETWEEN - 1));
    for at in [0, 4] {
        rows[at] = _mm256_srai_epi16::<BETWEEN>(_mm256_add_epi16(rows[at], round));
    }
    for (at, row) in rows.iter_mut().enumerate() {
        *row = divide(*row, q, at);
    }
    zigzag::store(rows, to);
}
