//! Loads and stores of whole arrays: the array is the proof of its length.

use std::arch::x86_64::*;

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load(from: &[u8; 32]) -> __m256i {
    // SAFETY: reads the 32 bytes of `from`; there is no need of alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_16(from: &[u8; 16]) -> __m128i {
    // SAFETY: reads the 16 bytes of `from`; there is no need of alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_words(from: &[i16; 16]) -> __m256i {
    // SAFETY: reads the 32 bytes of `from`; there is no need of alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Eight words, in both lanes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_twice(from: &[i16; 8]) -> __m256i {
    // SAFETY: reads the 16 bytes of `from`; there is no need of alignment.
    let words = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(words)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store(to: &mut [u8; 32], value: __m256i) {
    // SAFETY: writes the 32 bytes of `to`; there is no need of alignment.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store_16(to: &mut [u8; 16], value: __m128i) {
    // SAFETY: writes the 16 bytes of `to`; there is no need of alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
}
