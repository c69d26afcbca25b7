//! The bilinear mix of `inside` in AVX2: the channels of a pixel together, in doubles. Its sums are
//! those of `LinearKernel`, in the same order.

use std::arch::x86_64::*;

use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;

const PIXEL: usize = 3;
/// Bytes of two pixels and of a part of the third.
const LOADED: usize = 8;

/// Mixes the four pixels at each place. `lefts`, `tops`: the first of them. `rights`, `downs`: the
/// distances from it. All loads and stores are of slices.
#[target_feature(enable = "avx2")]
pub(super) fn mix_linear(
    (lefts, tops): (&[i32], &[i32]),
    (rights, downs): (&[f64], &[f64]),
    src: &OrientedPixels<'_, u8>,
    out: &mut [RgbPixel<u8>],
) {
    let bytes = src.bytes();
    // The first bytes of three numbers.
    let close_up = _mm_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    let places = (lefts.iter().zip(tops)).zip(rights.iter().zip(downs));
    for (out, ((left, top), (right, down))) in out.iter_mut().zip(places) {
        let (right, down) = (_mm256_set1_pd(*right), _mm256_set1_pd(*down));
        let line = |row: i32| {
            let at = PIXEL * src.index(*left as usize, row as usize);
            let loaded = bytes[at..].first_chunk::<LOADED>();
            debug_assert!(loaded.is_some(), "the pixel right of the taps lies outside");
            let loaded = loaded.copied().unwrap_or_default();
            let loaded = _mm_cvtsi64_si128(i64::from_le_bytes(loaded));
            let p = _mm_cvtepu8_epi32(loaded);
            let q = _mm_cvtepu8_epi32(_mm_srli_si128::<3>(loaded));
            let difference = _mm256_cvtepi32_pd(_mm_sub_epi32(q, p));
            _mm256_add_pd(_mm256_cvtepi32_pd(p), _mm256_mul_pd(difference, right))
        };
        let (above, below) = (line(*top), line(*top + 1));
        let mixed = _mm256_add_pd(above, _mm256_mul_pd(_mm256_sub_pd(below, above), down));
        let levels = _mm_shuffle_epi8(_mm256_cvttpd_epi32(mixed), close_up);
        let [r, g, b, _] = _mm_cvtsi128_si32(levels).to_le_bytes();
        *out = [r, g, b];
    }
}
