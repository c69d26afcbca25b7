//! The passes in SSE4.1: four output pixels, or 16 bytes of a row, at a time.
//!
//! Loads and stores are unchecked. Each function first asserts the conditions that keep them inside
//! their slices.

use std::arch::x86_64::*;

use super::axes::PIXEL;
use super::lane_weights::{GROUP, LaneWeights, STEP};
use super::scalar;

/// Bytes of a step of the pass down.
const WIDE: usize = 16;

/// See `scalar::across`.
#[target_feature(enable = "sse4.1")]
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
#[target_feature(enable = "sse4.1")]
fn across_n<const PAIRS: usize>(lanes: &LaneWeights, src: &[u8], dst: &mut [u8]) {
    let pairs = if PAIRS == 0 { lanes.pairs() } else { PAIRS };
    let half = _mm_set1_epi32((1 << lanes.precision()) >> 1);
    let shift = _mm_cvtsi32_si128(lanes.precision() as i32);
    // Two pixels to R R G G B B and zero, as i16.
    #[rustfmt::skip]
    let first = _mm_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
    );
    // The same for the two pixels after them.
    #[rustfmt::skip]
    let second = _mm_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    // RGB and an empty byte, four times, to 12 bytes.
    #[rustfmt::skip]
    let close_up = _mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    );

    for g in 0..lanes.groups() {
        let (starts, coeffs) = lanes.group(g);
        for side in 0..2 {
            let mut sums = [half; GROUP / 2];
            for q in 0..GROUP / 2 {
                let start = starts[q + side * GROUP / 2] as usize;
                let coeffs = &coeffs[q * pairs * STEP..(q + 1) * pairs * STEP];
                let mut sum = half;
                let mut j = 0;
                while j + 2 <= pairs {
                    // SAFETY: `across` has asserted that `src` holds `reach`
                    // bytes, and `LaneWeights::fill` made `reach` the end of the
                    // last such load.
                    let pixels = unsafe { load(src, start + j * 6) };
                    // SAFETY: `coeffs` is `pairs` steps long, and j + 1 < pairs.
                    let (k0, k1) =
                        unsafe { (load_half(coeffs, j, side), load_half(coeffs, j + 1, side)) };
                    let a = _mm_madd_epi16(_mm_shuffle_epi8(pixels, first), k0);
                    let b = _mm_madd_epi16(_mm_shuffle_epi8(pixels, second), k1);
                    sum = _mm_add_epi32(sum, _mm_add_epi32(a, b));
                    j += 2;
                }
                if j < pairs {
                    // SAFETY: as above.
                    let pixels = unsafe { load(src, start + j * 6) };
                    // SAFETY: `coeffs` is `pairs` steps long, and j < pairs.
                    let k = unsafe { load_half(coeffs, j, side) };
                    let a = _mm_madd_epi16(_mm_shuffle_epi8(pixels, first), k);
                    sum = _mm_add_epi32(sum, a);
                }
                sums[q] = _mm_sra_epi32(sum, shift);
            }
            let packed = _mm_packus_epi16(
                _mm_packs_epi32(sums[0], sums[1]),
                _mm_packs_epi32(sums[2], sums[3]),
            );
            let packed = _mm_shuffle_epi8(packed, close_up);
            // 12 valid bytes; the next store overwrites the 4 after them.
            let at = (g * 2 + side) * 12;
            if at + 16 <= dst.len() {
                // SAFETY: the condition.
                unsafe { store(dst, at, packed) };
            } else if at < dst.len() {
                let mut tail = [0; 16];
                // SAFETY: `tail` holds 16 bytes.
                unsafe { store(&mut tail, 0, packed) };
                let rest = &mut dst[at..];
                let n = rest.len().min(12);
                rest[..n].copy_from_slice(&tail[..n]);
            }
        }
    }
}

/// See `scalar::down`. The number of rows is even.
#[target_feature(enable = "sse4.1")]
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
#[target_feature(enable = "sse4.1")]
fn down_n<const PAIRS: usize>(
    coeffs: &[[i16; 2]],
    precision: u32,
    src: &[u8],
    offsets: &[[usize; 2]],
    dst: &mut [u8],
) {
    let pairs = if PAIRS == 0 { coeffs.len() } else { PAIRS };
    let (coeffs, offsets) = (&coeffs[..pairs], &offsets[..pairs]);
    let half = _mm_set1_epi32((1 << precision) >> 1);
    let shift = _mm_cvtsi32_si128(precision as i32);
    let zero = _mm_setzero_si128();
    let last = dst.len() - WIDE;
    let mut x = 0;
    loop {
        let mut sums = [half; 4];
        // By index: `zip` became a call when it was not inlined.
        let mut pair = 0;
        while pair < pairs {
            let ([k0, k1], [above, below]) = (coeffs[pair], offsets[pair]);
            let k = _mm_set1_epi32(i32::from(k0 as u16) | i32::from(k1) << 16);
            // SAFETY: `down` has asserted that dst.len() bytes of `src` follow each offset, and x +
            // 16 <= dst.len().
            let (a, b) = unsafe { (load(src, above + x), load(src, below + x)) };
            let low = _mm_unpacklo_epi8(a, b);
            let high = _mm_unpackhi_epi8(a, b);
            let add = |sum, part| _mm_add_epi32(sum, _mm_madd_epi16(part, k));
            sums[0] = add(sums[0], _mm_unpacklo_epi8(low, zero));
            sums[1] = add(sums[1], _mm_unpackhi_epi8(low, zero));
            sums[2] = add(sums[2], _mm_unpacklo_epi8(high, zero));
            sums[3] = add(sums[3], _mm_unpackhi_epi8(high, zero));
            pair += 1;
        }
        let packed = _mm_packus_epi16(
            _mm_packs_epi32(_mm_sra_epi32(sums[0], shift), _mm_sra_epi32(sums[1], shift)),
            _mm_packs_epi32(_mm_sra_epi32(sums[2], shift), _mm_sra_epi32(sums[3], shift)),
        );
        // SAFETY: x <= dst.len() - 16.
        unsafe { store(dst, x, packed) };
        if x == last {
            break;
        }
        // The last step overlaps the one before and writes the same bytes again.
        x = (x + WIDE).min(last);
    }
}

/// # Safety
/// `s` holds 16 bytes from `at`.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn load(s: &[u8], at: usize) -> __m128i {
    debug_assert!(at + WIDE <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm_loadu_si128(s.as_ptr().add(at).cast()) }
}

/// Half `side` (0 or 1) of step `j`.
///
/// # Safety
/// `s` holds more than `j` steps.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn load_half(s: &[i16], j: usize, side: usize) -> __m128i {
    debug_assert!((j + 1) * STEP <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm_loadu_si128(s.as_ptr().add(j * STEP + side * STEP / 2).cast()) }
}

/// # Safety
/// `s` holds 16 bytes from `at`.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn store(s: &mut [u8], at: usize, v: __m128i) {
    debug_assert!(at + WIDE <= s.len());
    // SAFETY: the caller guarantees it.
    unsafe { _mm_storeu_si128(s.as_mut_ptr().add(at).cast(), v) }
}
