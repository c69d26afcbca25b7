//! Colour and downsampling of 16 pixels at a time, 8 in each lane.

use std::arch::x86_64::*;

use super::super::samples::{McuPixels, McuSamples, SIDE};
use super::lanes::{load_both, load_bytes_twice, store_words};
use super::words::{add, sum};

/// A shuffle of bytes to words for four pixels, whose first is at byte `start`: red and green if
/// `channel` is 0, blue and green if it is 2.
const fn pairs(start: usize, channel: usize) -> [u8; 16] {
    let mut bytes = [0x80; 16];
    let mut pixel = 0;
    while pixel < 4 {
        bytes[4 * pixel] = (start + 3 * pixel + channel) as u8;
        bytes[4 * pixel + 2] = (start + 3 * pixel + 1) as u8;
        pixel += 1;
    }
    bytes
}

/// Luma, Cb and Cr of four pixels in each lane, each minus 128, as 32 bits, like `convert` of
/// `super::super::samples`. Factors too large for words are split or negated.
#[target_feature(enable = "avx2")]
#[inline]
fn convert(red_green: __m256i, blue_green: __m256i) -> [__m256i; 3] {
    const HALF: i32 = 1 << 15;
    let luma = add(
        sum(red_green, 19_595, 22_086),
        sum(blue_green, 7_471, 16_384),
    );
    let luma = add(luma, _mm256_set1_epi32(HALF - (128 << 16)));
    let half = _mm256_set1_epi32(HALF - 1);
    let cb = _mm256_sub_epi32(
        sum(red_green, -11_059, -21_709),
        sum(blue_green, -32_768, 0),
    );
    let cr = _mm256_sub_epi32(sum(blue_green, -5_329, -27_439), sum(red_green, -32_768, 0));
    [
        _mm256_srai_epi32::<16>(luma),
        _mm256_srai_epi32::<16>(add(cb, half)),
        _mm256_srai_epi32::<16>(add(cr, half)),
    ]
}

/// Luma, Cb and Cr of a row's 16 pixels.
#[target_feature(enable = "avx2")]
#[inline]
fn row(rgb: &[u8; 3 * SIDE]) -> [__m256i; 3] {
    let at = |start: usize| rgb[start..].first_chunk().unwrap_or(&[0; 16]);
    // Pixels 0 to 3 begin the first 16 of 24 bytes. Pixels 4 to 7 end the last 16.
    let (first, last) = (load_both(at(0), at(24)), load_both(at(8), at(32)));
    let of = |bytes, start: usize, channel: usize| {
        _mm256_shuffle_epi8(
            bytes,
            load_bytes_twice(&const { PAIRS }[start / 4][channel / 2]),
        )
    };
    let low = convert(of(first, 0, 0), of(first, 0, 2));
    let high = convert(of(last, 4, 0), of(last, 4, 2));
    [
        _mm256_packs_epi32(low[0], high[0]),
        _mm256_packs_epi32(low[1], high[1]),
        _mm256_packs_epi32(low[2], high[2]),
    ]
}

/// Shuffles for the first and the last four of eight pixels: red and green, blue and green.
const PAIRS: [[[u8; 16]; 2]; 2] = [[pairs(0, 0), pairs(0, 2)], [pairs(4, 0), pairs(4, 2)]];

/// `EncodeKernels::samples`.
#[target_feature(enable = "avx2")]
pub(super) fn samples(pixels: McuPixels<'_>, to: &mut McuSamples) {
    // Quarters are rounded down and up alternately.
    let bias = _mm256_set1_epi32(2 << 16 | 1);
    for y in 0..8 {
        let [upper, cb0, cr0] = row(pixels.row(2 * y));
        let [lower, cb1, cr1] = row(pixels.row(2 * y + 1));
        store_words(&mut to[y / 4][2 * y % 8], upper);
        store_words(&mut to[y / 4][2 * y % 8 + 1], lower);
        let (cb, cr) = (_mm256_add_epi16(cb0, cb1), _mm256_add_epi16(cr0, cr1));
        // Each lane gets four sums of Cb and four of Cr. Then all of Cb moves to the low lane.
        let sums = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi16(cb, cr));
        let quarters = _mm256_srai_epi16::<2>(_mm256_add_epi16(sums, bias));
        store_words(&mut to[2][y], quarters);
    }
}
