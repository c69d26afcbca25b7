//! Factors for pairs of words.

use std::arch::x86_64::*;

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
