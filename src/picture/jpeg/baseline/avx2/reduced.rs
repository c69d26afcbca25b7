//! The inverse transforms of two blocks to 4 x 4 and 2 x 2 samples, one block in each lane.
//!
//! The arithmetic is that of `super::super::transform`, in the order of libjpeg-turbo's SIMD.

use std::arch::x86_64::*;

use super::super::blocks::{Pair, Target};
use super::super::frame::Quantization;
use super::super::transform::{self, fix::*};
use super::words::{add, dequantized, is_absurd, sub, sum};

/// `reduced4` of `transform` for half of the words of eight rows, rounded off by `BITS`.
#[target_feature(enable = "avx2")]
#[inline]
fn half_to_4<const BITS: i32>(
    r0: __m256i,
    r13: __m256i,
    r57: __m256i,
    r26: __m256i,
) -> [__m256i; 4] {
    let even = add(r0, _mm256_set1_epi32(1 << (BITS - 1)));
    let t = sum(r26, F1_847, -F0_765);
    let (t10, t12) = (add(even, t), sub(even, t));
    let t0 = add(sum(r13, F1_061, -F2_172), sum(r57, F1_451, -F0_211));
    let t2 = add(sum(r13, F2_562, F0_899), sum(r57, -F0_601, -F0_509));
    [
        _mm256_srai_epi32::<BITS>(add(t10, t2)),
        _mm256_srai_epi32::<BITS>(add(t12, t0)),
        _mm256_srai_epi32::<BITS>(sub(t12, t0)),
        _mm256_srai_epi32::<BITS>(sub(t10, t2)),
    ]
}

/// `transform::to4` of two blocks.
#[target_feature(enable = "avx2")]
pub(super) fn to4(from: &Pair, q: &Quantization, to: &mut [u8], at: Target) {
    let zero = _mm256_setzero_si256();
    let r = dequantized::<8>(from, q);
    if is_absurd(r[0]) {
        return transform::pair::<4>(from, q, to, at, transform::to4);
    }
    let low = half_to_4::<12>(
        _mm256_srai_epi32::<2>(_mm256_unpacklo_epi16(zero, r[0])),
        _mm256_unpacklo_epi16(r[1], r[3]),
        _mm256_unpacklo_epi16(r[5], r[7]),
        _mm256_unpacklo_epi16(r[2], r[6]),
    );
    let high = half_to_4::<12>(
        _mm256_srai_epi32::<2>(_mm256_unpackhi_epi16(zero, r[0])),
        _mm256_unpackhi_epi16(r[1], r[3]),
        _mm256_unpackhi_epi16(r[5], r[7]),
        _mm256_unpackhi_epi16(r[2], r[6]),
    );
    let p = [
        _mm256_packs_epi32(low[0], high[0]),
        _mm256_packs_epi32(low[1], high[1]),
        _mm256_packs_epi32(low[2], high[2]),
        _mm256_packs_epi32(low[3], high[3]),
    ];
    // To columns of four words: two columns to a register and lane.
    let (a0, a1) = (
        _mm256_unpacklo_epi16(p[0], p[1]),
        _mm256_unpackhi_epi16(p[0], p[1]),
    );
    let (a2, a3) = (
        _mm256_unpacklo_epi16(p[2], p[3]),
        _mm256_unpackhi_epi16(p[2], p[3]),
    );
    let (c01, c23) = (_mm256_unpacklo_epi32(a0, a2), _mm256_unpackhi_epi32(a0, a2));
    let (c45, c67) = (_mm256_unpacklo_epi32(a1, a3), _mm256_unpackhi_epi32(a1, a3));
    let d = half_to_4::<19>(
        _mm256_srai_epi32::<2>(_mm256_unpacklo_epi16(zero, c01)),
        _mm256_unpackhi_epi16(c01, c23),
        _mm256_unpackhi_epi16(c45, c67),
        _mm256_unpacklo_epi16(c23, c67),
    );
    // Columns of four rows, to rows of four bytes.
    let (x, y) = (
        _mm256_packs_epi32(d[0], d[2]),
        _mm256_packs_epi32(d[1], d[3]),
    );
    let (x, y) = (_mm256_unpacklo_epi16(x, y), _mm256_unpackhi_epi16(x, y));
    let (x, y) = (_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
    let samples = _mm256_add_epi8(_mm256_packs_epi16(x, y), _mm256_set1_epi8(-128));
    put_4(_mm256_castsi256_si128(samples), to, at.first, at.pitch);
    if let Some(second) = at.second {
        put_4(_mm256_extracti128_si256::<1>(samples), to, second, at.pitch);
    }
}

/// Writes four rows of four samples.
#[target_feature(enable = "avx2")]
#[inline]
fn put_4(samples: __m128i, to: &mut [u8], start: usize, pitch: usize) {
    let Some(to) = to
        .get_mut(start..)
        .and_then(|to| to.get_mut(..3 * pitch + 4))
    else {
        return;
    };
    let rows = [
        _mm_extract_epi32::<0>(samples),
        _mm_extract_epi32::<1>(samples),
        _mm_extract_epi32::<2>(samples),
        _mm_extract_epi32::<3>(samples),
    ];
    for (line, row) in to.chunks_mut(pitch).zip(rows) {
        if let Some(line) = line.first_chunk_mut::<4>() {
            *line = row.to_le_bytes();
        }
    }
}

/// The odd part of 2 x 2 samples: half of the words of rows 1 and 3, and of 5 and 7.
#[target_feature(enable = "avx2")]
#[inline]
fn odd_of_2(r13: __m256i, r57: __m256i) -> __m256i {
    add(sum(r13, F3_624, -F1_272), sum(r57, F0_850, -F0_720))
}

/// `transform::to2` of two blocks.
#[target_feature(enable = "avx2")]
pub(super) fn to2(from: &Pair, q: &Quantization, to: &mut [u8], at: Target) {
    let zero = _mm256_setzero_si256();
    let r = dequantized::<8>(from, q);
    let round = _mm256_set1_epi32(1 << 12);
    let low = odd_of_2(
        _mm256_unpacklo_epi16(r[1], r[3]),
        _mm256_unpacklo_epi16(r[5], r[7]),
    );
    let high = odd_of_2(
        _mm256_unpackhi_epi16(r[1], r[3]),
        _mm256_unpackhi_epi16(r[5], r[7]),
    );
    let even_low = _mm256_srai_epi32::<1>(_mm256_unpacklo_epi16(zero, r[0]));
    let even_high = _mm256_srai_epi32::<1>(_mm256_unpackhi_epi16(zero, r[0]));
    let (even_low, even_high) = (add(even_low, round), add(even_high, round));
    // The two rows of eight columns.
    let first = _mm256_srai_epi32::<13>(add(even_low, low));
    let second = _mm256_srai_epi32::<13>(sub(even_low, low));
    let odd = |row: __m256i, high: __m256i| {
        // Of columns 1, 3, 5 and 7; the others have no part in it.
        let words = _mm256_packs_epi32(row, _mm256_srai_epi32::<13>(high));
        let factors = _mm256_set_epi32(
            -F0_720 << 16,
            F0_850 << 16,
            -F1_272 << 16,
            F3_624 << 16,
            -F0_720 << 16,
            F0_850 << 16,
            -F1_272 << 16,
            F3_624 << 16,
        );
        _mm256_madd_epi16(words, factors)
    };
    let first_odd = odd(first, add(even_high, high));
    let second_odd = odd(second, sub(even_high, high));
    let odd = _mm256_hadd_epi32(first_odd, second_odd);
    let odd = _mm256_hadd_epi32(odd, odd);
    // Column 0 of both rows is not packed to 16 bits in between.
    let even = _mm256_slli_epi32::<15>(_mm256_unpacklo_epi32(first, second));
    let even = add(even, _mm256_set1_epi32(1 << 19));
    let left = _mm256_srai_epi32::<20>(add(even, odd));
    let right = _mm256_srai_epi32::<20>(sub(even, odd));
    let rows = _mm256_unpacklo_epi32(left, right);
    let rows = _mm256_packs_epi32(rows, rows);
    let rows = _mm256_add_epi8(_mm256_packs_epi16(rows, rows), _mm256_set1_epi8(-128));
    put_2(_mm256_castsi256_si128(rows), to, at.first, at.pitch);
    if let Some(second) = at.second {
        put_2(_mm256_extracti128_si256::<1>(rows), to, second, at.pitch);
    }
}

/// Writes two rows of two samples.
#[target_feature(enable = "avx2")]
#[inline]
fn put_2(samples: __m128i, to: &mut [u8], start: usize, pitch: usize) {
    let [a, b, c, d] = _mm_cvtsi128_si32(samples).to_le_bytes();
    for (start, row) in [(start, [a, b]), (start + pitch, [c, d])] {
        if let Some(to) = to.get_mut(start..start + 2) {
            to.copy_from_slice(&row);
        }
    }
}
