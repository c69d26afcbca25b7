//! Loads and stores of whole arrays. The array's type proves its length.

use std::arch::x86_64::*;

/// Sixteen bytes in each lane.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_both(low: &[u8; 16], high: &[u8; 16]) -> __m256i {
    // SAFETY: each reads the 16 bytes of its array; no alignment is needed.
    let (low, high) = unsafe {
        (
            _mm_loadu_si128(low.as_ptr().cast()),
            _mm_loadu_si128(high.as_ptr().cast()),
        )
    };
    _mm256_set_m128i(high, low)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_words(from: &[i16; 16]) -> __m256i {
    // SAFETY: reads the 32 bytes of `from`; no alignment is needed.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Eight words, in both lanes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_twice(from: &[u16; 8]) -> __m256i {
    // SAFETY: reads the 16 bytes of `from`; no alignment is needed.
    let words = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(words)
}

/// Sixteen bytes, in both lanes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_bytes_twice(from: &[u8; 16]) -> __m256i {
    // SAFETY: reads the 16 bytes of `from`; no alignment is needed.
    let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(bytes)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store_words(to: &mut [i16; 16], value: __m256i) {
    // SAFETY: writes the 32 bytes of `to`; no alignment is needed.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

/// Stores the low lane in one array, the high lane in the other.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store_both(low: &mut [i16; 8], high: &mut [i16; 8], value: __m256i) {
    // SAFETY: each writes the 16 bytes of its array; no alignment is needed.
    unsafe {
        _mm_storeu_si128(low.as_mut_ptr().cast(), _mm256_castsi256_si128(value));
        _mm_storeu_si128(
            high.as_mut_ptr().cast(),
            _mm256_extracti128_si256::<1>(value),
        );
    }
}
