//! The passes in AVX2: eight output pixels, or 32 bytes of a row, at a time.
//!
//! Loads and stores are unchecked. Each function first asserts the conditions that keep them inside
//! their slices.

use std::arch::x86_64::*;

use super::axes::PIXEL;
use super::lane_weights::{GROUP, LaneWeights, STEP};
use super::scalar;

/// Bytes of a step of the pass down.
const WIDE: usize = 32;

/// See `scalar::across`.
#[target_feature(enable = "avx2")]
pub(super) fn across(lanes: &LaneWeights, src: &[u8], dst: &mut [u8]) {
    assert!(src.len() >= lanes.reach());
    assert_eq!(dst.len(), lanes.out() * PIXEL);
    match lanes.pairs() {
        1 => across_n::<1>(lanes, src, dst),
        2 => across_n::<2>(lanes, src, dst),
        3 => across_n::<3>(lanes, src, dst),
        4 => across_n::<4>(lanes, src, dst),
        _ => across_n::<0>(lanes, src, dst),
    }
}

/// `PAIRS` coefficient pairs per output pixel, or `lanes.pairs()` if it is 0.
#[target_feature(enable = "avx2")]
fn across_n<const PAIRS: usize>(lanes: &LaneWeights, src: &[u8], dst: &mut [u8]) {
    let pairs = if PAIRS == 0 { lanes.pairs() } else { PAIRS };
    let half = _mm256_set1_epi32((1 << lanes.precision()) >> 1);
    let shift = _mm_cvtsi32_si128(lanes.precision() as i32);
    // Two pixels to R R G G B B and zero, as i16.
    #[rustfmt::skip]
    let first = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
    ));
    // The same for the two pixels after them.
    #[rustfmt::skip]
    let second = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    ));
    // RGB and an empty byte, four times, to 12 bytes.
    #[rustfmt::skip]
    let close_up = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    ));

    for g in 0..lanes.groups() {
        let (starts, coeffs) = lanes.group(g);
        let mut sums = [half; GROUP / 2];
        for q in 0..GROUP / 2 {
            let (low, high) = (starts[q] as usize, starts[q + GROUP / 2] as usize);
            let coeffs = &coeffs[q * pairs * STEP..(q + 1) * pairs * STEP];
            let mut sum = half;
            let mut j = 0;
            while j + 2 <= pairs {
                // SAFETY: `across` has asserted that `src` holds `reach` bytes,
                // and `LaneWeights::fill` made `reach` the end of the last such load.
                let pixels = unsafe { load_two(src, low + j * 6, high + j * 6) };
                // SAFETY: `coeffs` is `pairs` steps long, and j + 1 < pairs.
                let (k0, k1) = unsafe { (load_step(coeffs, j), load_step(coeffs, j + 1)) };
                let a = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), k0);
                let b = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, second), k1);
                sum = _mm256_add_epi32(sum, _mm256_add_epi32(a, b));
                j += 2;
            }
            if j < pairs {
                // SAFETY: as above.
                let pixels = unsafe { load_two(src, low + j * 6, high + j * 6) };
                // SAFETY: `coeffs` is `pairs` steps long, and j < pairs.
                let k = unsafe { load_step(coeffs, j) };
                let a = _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), k);
                sum = _mm256_add_epi32(sum, a);
            }
            sums[q] = _mm256_sra_epi32(sum, shift);
        }
        let packed = _mm256_packus_epi16(
            _mm256_packs_epi32(sums[0], sums[1]),
            _mm256_packs_epi32(sums[2], sums[3]),
        );
        let packed = _mm256_shuffle_epi8(packed, close_up);
        let (low, high) = (
            _mm256_castsi256_si128(packed),
            _mm256_extracti128_si256::<1>(packed),
        );
        // Each store has 12 valid bytes; the next store overwrites the 4 after them.
        let at = g * GROUP * PIXEL;
        if at + 28 <= dst.len() {
            // SAFETY: the condition: both stores end at or before at + 28.
            unsafe {
                store_half(dst, at, low);
                store_half(dst, at + 12, high);
            }
        } else {
            let mut tail = [0; 32];
            // SAFETY: `tail` holds 32 bytes.
            unsafe {
                store_half(&mut tail, 0, low);
                store_half(&mut tail, 12, high);
            }
            let rest = &mut dst[at..];
            let n = rest.len().min(GROUP * PIXEL);
            rest[..n].copy_from_slice(&tail[..n]);
        }
    }
}

/// See `scalar::down`. The number of rows is even.
#[target_feature(enable = "avx2")]
pub(super) fn down(coeffs: &[i16], precision: u32, src: &[u8], offsets: &[usize], dst: &mut [u8]) {
    if dst.len() < WIDE {
        return scalar::down(coeffs, precision, src, offsets, dst);
    }
    let (coeffs, odd) = coeffs.as_chunks::<2>();
    let (offsets, odd_row) = offsets.as_chunks::<2>();
    assert!(odd.is_empty() && odd_row.is_empty());
    assert_eq!(coeffs.len(), offsets.len());
    for &offset in offsets.as_flattened() {
        assert!(offset <= src.len() && src.len() - offset >= dst.len());
    }
    match coeffs.len() {
        1 => down_n::<1>(coeffs, precision, src, offsets, dst),
        2 => down_n::<2>(coeffs, precision, src, offsets, dst),
        3 => down_n::<3>(coeffs, precision, src, offsets, dst),
        4 => down_n::<4>(coeffs, precision, src, offsets, dst),
        _ => down_n::<0>(coeffs, precision, src, offsets, dst),
    }
}

/// `PAIRS` pairs of rows, or all rows if it is 0.
#[target_feature(enable = "avx2")]
fn down_n<const PAIRS: usize>(
    coeffs: &[[i16; 2]],
    precision: u32,
    src: &[u8],
    offsets: &[[usize; 2]],
    dst: &mut [u8],
) {
    let pairs = if PAIRS == 0 { coeffs.len() } else { PAIRS };
    let (coeffs, offsets) = (&coeffs[..pairs], &offsets[..pairs]);
    let half = _mm256_set1_epi32((1 << precision) >> 1);
    let shift = _mm_cvtsi32_si128(precision as i32);
    let zero = _mm256_setzero_si256();
    let last = dst.len() - WIDE;
    let mut x = 0;
    loop {
        let mut sums = [half; 4];
        // By index: `zip` became a call when it was not inlined.
        let mut pair = 0;
        while pair < pairs {
            let ([k0, k1], [above, below]) = (coeffs[pair], offsets[pair]);
            let k = _mm256_set1_epi32(i32::from(k0 as u16) | i32::from(k1) << 16);
            // SAFETY: `down` has asserted that dst.len() bytes of `src` follow each offset, and x +
            // 32 <= dst.len().
            let (a, b) = unsafe { (load(src, above + x), load(src, below + x)) };
            let low = _mm256_unpacklo_epi8(a, b);
            let high = _mm256_unpackhi_epi8(a, b);
            let add = |sum, part| _mm256_add_epi32(sum, _mm256_madd_epi16(part, k));
            sums[0] = add(sums[0], _mm256_unpacklo_epi8(low, zero));
            sums[1] = add(sums[1], _mm256_unpackhi_epi8(low, zero));
            sums[2] = add(sums[2], _mm256_unpacklo_epi8(high, zero));
            sums[3] = add(sums[3], _mm256_unpackhi_epi8(high, zero));
            pair += 1;
        }
        let packed = _mm256_packus_epi16(
            _mm256_packs_epi32(
                _mm256_sra_epi32(sums[0], shift),
                _mm256_sra_epi32(sums[1], shift),
            ),
            _mm256_packs_epi32(
                _mm256_sra_epi32(sums[2], shift),
                _mm256_sra_epi32(sums[3], shift),
            ),
        );
        // SAFETY: x <= dst.len() - 32.
        unsafe { store(dst, x, packed) };
        if x == last {
            break;
        }
        // The last step overlaps the one before and writes the same bytes again.
        x = (x + WIDE).min(last);
    }
}

/// # Safety
/// `s` holds 16 bytes from `low` and from `high`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_two(s: &[u8], low: usize, high: usize) -> __m256i {
    debug_assert!(low + 16 <= s.len() && high + 16 <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe {
        let low = _mm_loadu_si128(s.as_ptr().add(low).cast());
        let high = _mm_loadu_si128(s.as_ptr().add(high).cast());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
}

/// # Safety
/// `s` holds more than `j` steps.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_step(s: &[i16], j: usize) -> __m256i {
    debug_assert!((j + 1) * STEP <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm256_loadu_si256(s.as_ptr().add(j * STEP).cast()) }
}

/// # Safety
/// `s` holds 32 bytes from `at`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(s: &[u8], at: usize) -> __m256i {
    debug_assert!(at + WIDE <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm256_loadu_si256(s.as_ptr().add(at).cast()) }
}

/// # Safety
/// `s` holds 32 bytes from `at`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(s: &mut [u8], at: usize, v: __m256i) {
    debug_assert!(at + WIDE <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm256_storeu_si256(s.as_mut_ptr().add(at).cast(), v) }
}

/// # Safety
/// `s` holds 16 bytes from `at`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_half(s: &mut [u8], at: usize, v: __m128i) {
    debug_assert!(at + 16 <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm_storeu_si128(s.as_mut_ptr().add(at).cast(), v) }
}
