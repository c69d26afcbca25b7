//! The passes in SSE4.1: four output pixels, or 16 bytes of a row, at a time.
//!
//! Loads and stores are unchecked. Each function first asserts the conditions that keep them inside
//! their slices.

use std::arch::x86_64::*;

use super::axes::PIXEL;
use super::lane_weights::{GROUP, LOW_BITS, LaneWeights, STEP, high_part, low_part};
use super::scalar::{self, DownWeights};

/// Bytes of a step of the pass down.
const WIDE: usize = 16;

/// See `scalar::across`.
#[target_feature(enable = "sse4.1")]
pub(super) fn across(lanes: &LaneWeights, src: &[u8], dst: &mut [u8]) {
    assert!(src.len() >= lanes.reach());
    assert_eq!(dst.len(), lanes.out() * PIXEL);
    match (lanes.pairs(), lanes.is_wide()) {
        (1, false) => across_n::<1, false>(lanes, src, dst),
        (2, false) => across_n::<2, false>(lanes, src, dst),
        (3, false) => across_n::<3, false>(lanes, src, dst),
        (4, false) => across_n::<4, false>(lanes, src, dst),
        (_, false) => across_n::<0, false>(lanes, src, dst),
        (_, true) => across_n::<0, true>(lanes, src, dst),
    }
}

/// `PAIRS` coefficient pairs per output pixel, or `lanes.pairs()` if it is 0. `WIDE_WEIGHTS`: they
/// have two parts.
#[target_feature(enable = "sse4.1")]
fn across_n<const PAIRS: usize, const WIDE_WEIGHTS: bool>(
    lanes: &LaneWeights,
    src: &[u8],
    dst: &mut [u8],
) {
    let pairs = if PAIRS == 0 { lanes.pairs() } else { PAIRS };
    let parts = if WIDE_WEIGHTS { 2 } else { 1 };
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
                let per_q = parts * pairs * STEP;
                let coeffs = &coeffs[q * per_q..(q + 1) * per_q];
                let (mut sum, mut high_sum) = (half, _mm_setzero_si128());
                let mut j = 0;
                while j + 2 <= pairs {
                    // SAFETY: `across` has asserted that `src` holds `reach`
                    // bytes, and `LaneWeights::fill` made `reach` the end of the
                    // last such load.
                    let pixels = unsafe { load(src, start + j * 6) };
                    let a = _mm_shuffle_epi8(pixels, first);
                    let b = _mm_shuffle_epi8(pixels, second);
                    if WIDE_WEIGHTS {
                        // SAFETY: `coeffs` is 2 * `pairs` steps long, and j + 1 < pairs.
                        let (k0, k1) =
                            unsafe { (load_half(coeffs, j, side), load_half(coeffs, j + 1, side)) };
                        high_sum = add_products(high_sum, (a, k0), (b, k1));
                    }
                    let low = (parts - 1) * pairs + j;
                    // SAFETY: `coeffs` is `parts` * `pairs` steps long, and j + 1 < pairs.
                    let (k0, k1) = unsafe {
                        (
                            load_half(coeffs, low, side),
                            load_half(coeffs, low + 1, side),
                        )
                    };
                    sum = add_products(sum, (a, k0), (b, k1));
                    j += 2;
                }
                if j < pairs {
                    // SAFETY: `across` has asserted that `src` holds `reach` bytes, and
                    // `LaneWeights::fill` made `reach` the end of the last such load.
                    let pixels = unsafe { load(src, start + j * 6) };
                    let a = _mm_shuffle_epi8(pixels, first);
                    if WIDE_WEIGHTS {
                        // SAFETY: `coeffs` is 2 * `pairs` steps long, and j < pairs.
                        let k = unsafe { load_half(coeffs, j, side) };
                        high_sum = _mm_add_epi32(high_sum, _mm_madd_epi16(a, k));
                    }
                    // SAFETY: `coeffs` is `parts` * `pairs` steps long, and j < pairs.
                    let k = unsafe { load_half(coeffs, (parts - 1) * pairs + j, side) };
                    sum = _mm_add_epi32(sum, _mm_madd_epi16(a, k));
                }
                if WIDE_WEIGHTS {
                    sum = _mm_add_epi32(sum, _mm_slli_epi32::<LOW_BITS>(high_sum));
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
pub(super) fn down(weights: DownWeights<'_>, src: &[u8], offsets: &[usize], dst: &mut [u8]) {
    if dst.len() < WIDE {
        return scalar::down(weights, src, offsets, dst);
    }
    let DownWeights {
        coeffs,
        precision,
        is_wide,
    } = weights;
    let (coeffs, odd) = coeffs.as_chunks::<2>();
    let (offsets, odd_row) = offsets.as_chunks::<2>();
    assert!(odd.is_empty() && odd_row.is_empty());
    assert_eq!(coeffs.len(), offsets.len());
    for &offset in offsets.as_flattened() {
        assert!(offset <= src.len() && src.len() - offset >= dst.len());
    }
    match (coeffs.len(), is_wide) {
        (1, false) => down_n::<1, false>(coeffs, precision, src, offsets, dst),
        (2, false) => down_n::<2, false>(coeffs, precision, src, offsets, dst),
        (3, false) => down_n::<3, false>(coeffs, precision, src, offsets, dst),
        (4, false) => down_n::<4, false>(coeffs, precision, src, offsets, dst),
        (_, false) => down_n::<0, false>(coeffs, precision, src, offsets, dst),
        (_, true) => down_n::<0, true>(coeffs, precision, src, offsets, dst),
    }
}

/// `PAIRS` pairs of rows, or all rows if it is 0. `WIDE_WEIGHTS`: coefficients have two parts.
#[target_feature(enable = "sse4.1")]
fn down_n<const PAIRS: usize, const WIDE_WEIGHTS: bool>(
    coeffs: &[[i32; 2]],
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
        let mut high_sums = [zero; 4];
        // By index: `zip` became a call when it was not inlined.
        let mut pair = 0;
        while pair < pairs {
            let ([k0, k1], [above, below]) = (coeffs[pair], offsets[pair]);
            // SAFETY: `down` has asserted that dst.len() bytes of `src` follow each offset, and x +
            // 16 <= dst.len().
            let (a, b) = unsafe { (load(src, above + x), load(src, below + x)) };
            let low = _mm_unpacklo_epi8(a, b);
            let high = _mm_unpackhi_epi8(a, b);
            let levels = [
                _mm_unpacklo_epi8(low, zero),
                _mm_unpackhi_epi8(low, zero),
                _mm_unpacklo_epi8(high, zero),
                _mm_unpackhi_epi8(high, zero),
            ];
            let add = |sum, part, k| _mm_add_epi32(sum, _mm_madd_epi16(part, k));
            let k = if WIDE_WEIGHTS {
                let k = two_weights(high_part(k0), high_part(k1));
                for (sum, part) in high_sums.iter_mut().zip(levels) {
                    *sum = add(*sum, part, k);
                }
                two_weights(low_part(k0), low_part(k1))
            } else {
                two_weights(k0 as i16, k1 as i16)
            };
            for (sum, part) in sums.iter_mut().zip(levels) {
                *sum = add(*sum, part, k);
            }
            pair += 1;
        }
        if WIDE_WEIGHTS {
            for (sum, high) in sums.iter_mut().zip(high_sums) {
                *sum = _mm_add_epi32(*sum, _mm_slli_epi32::<LOW_BITS>(high));
            }
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

/// Two weights, repeated.
#[inline]
#[target_feature(enable = "sse4.1")]
fn two_weights(k0: i16, k1: i16) -> __m128i {
    _mm_set1_epi32(i32::from(k0 as u16) | i32::from(k1) << 16)
}

/// Adds the products of two pairs each.
#[inline]
#[target_feature(enable = "sse4.1")]
fn add_products(sum: __m128i, a: (__m128i, __m128i), b: (__m128i, __m128i)) -> __m128i {
    let products = _mm_add_epi32(_mm_madd_epi16(a.0, a.1), _mm_madd_epi16(b.0, b.1));
    _mm_add_epi32(sum, products)
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
