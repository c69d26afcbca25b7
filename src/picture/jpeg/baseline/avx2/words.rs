//! Arithmetic that the transforms share: rows of words of two blocks, one in each lane.

use std::arch::x86_64::*;

use super::super::blocks::Pair;
use super::super::frame::Quantization;
use super::lanes::{load_twice, load_words};

/// A factor for `pmaddwd`: `x` for the first of two words, `y` for the second.
const fn factors(x: i32, y: i32) -> i32 {
    (x as u16 as u32 | (y as u16 as u32) << 16) as i32
}

/// x * the even words + y * the odd ones.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sum(words: __m256i, x: i32, y: i32) -> __m256i {
    _mm256_madd_epi16(words, _mm256_set1_epi32(factors(x, y)))
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sub(a: __m256i, b: __m256i) -> __m256i {
    _mm256_sub_epi32(a, b)
}

/// The rows of both blocks, dequantized.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn dequantized<const N: usize>(from: &Pair, q: &Quantization) -> [__m256i; N] {
    let mut rows = [_mm256_setzero_si256(); N];
    let (from, _) = from.0.as_chunks::<16>();
    let (q, _) = q.as_chunks::<8>();
    for ((row, from), q) in rows.iter_mut().zip(from).zip(q) {
        *row = _mm256_mullo_epi16(load_words(from), load_twice(q));
    }
    rows
}

/// Whether a value of the first row is so large that a column of it alone would saturate,
/// where libjpeg-turbo's shortcut for it wraps.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn is_absurd(row: __m256i) -> bool {
    let high = _mm256_cmpgt_epi16(row, _mm256_set1_epi16(8191));
    let low = _mm256_cmpgt_epi16(_mm256_set1_epi16(-8192), row);
    let any = _mm256_or_si256(high, low);
    _mm256_testz_si256(any, any) == 0
}
