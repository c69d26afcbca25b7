//! Unstuffing, upsampling and colour, 16 or 32 samples at a time. The last step of a row goes on
//! where there is room, and is done one sample at a time where there is none.

use std::arch::x86_64::*;

use super::super::filters as plain;
use super::lanes::{load, load_16, store, store_16};

/// Copies 32 bytes at a time up to the first 0xff; how many come before it.
#[target_feature(enable = "avx2")]
pub(super) fn copy_clean(from: &[u8], to: &mut [u8]) -> usize {
    let (from, _) = from.as_chunks::<32>();
    let (to, _) = to.as_chunks_mut::<32>();
    let mut clean = 0;
    for (from, to) in from.iter().zip(to) {
        let bytes = load(from);
        store(to, bytes);
        let is_ff = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1));
        let found = _mm256_movemask_epi8(is_ff) as u32;
        if found != 0 {
            return clean + found.trailing_zeros() as usize;
        }
        clean += 32;
    }
    clean
}

/// Sixteen samples from `at` on, as words.
#[target_feature(enable = "avx2")]
#[inline]
fn words(row: &[u8], at: usize) -> Option<__m256i> {
    let samples = row.get(at..)?.first_chunk::<16>()?;
    Some(_mm256_cvtepu8_epi16(load_16(samples)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn triple(value: __m256i) -> __m256i {
    _mm256_add_epi16(value, _mm256_add_epi16(value, value))
}

/// Two blends of each of 16 sums, next to each other as bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn blend<const BITS: i32>(
    [left, middle, right]: [__m256i; 3],
    [first, second]: [i16; 2],
    to: &mut [u8; 32],
) {
    let middle = triple(middle);
    let even = _mm256_add_epi16(_mm256_add_epi16(middle, left), _mm256_set1_epi16(first));
    let odd = _mm256_add_epi16(_mm256_add_epi16(middle, right), _mm256_set1_epi16(second));
    let even = _mm256_srli_epi16::<BITS>(even);
    let odd = _mm256_slli_epi16::<8>(_mm256_srli_epi16::<BITS>(odd));
    store(to, _mm256_or_si256(even, odd));
}

/// `filters::across`.
#[target_feature(enable = "avx2")]
pub(super) fn across(near: &[u8], count: usize, to: &mut [u8]) {
    let mut at = 0;
    while at < count {
        let to = to.get_mut(2 * at..).unwrap_or_default();
        let sums = (words(near, at), words(near, at + 1), words(near, at + 2));
        match (sums, to.first_chunk_mut::<32>()) {
            ((Some(left), Some(middle), Some(right)), Some(to)) => {
                blend::<2>([left, middle, right], [1, 2], to);
            }
            _ => {
                plain::across(near.get(at..).unwrap_or_default(), count - at, to);
                return;
            }
        }
        at += 16;
    }
}

/// 3/4 and 1/4 of 16 samples of two rows, times 4.
#[target_feature(enable = "avx2")]
#[inline]
fn sums(near: &[u8], far: &[u8], at: usize) -> Option<__m256i> {
    Some(_mm256_add_epi16(triple(words(near, at)?), words(far, at)?))
}

/// `filters::both`.
#[target_feature(enable = "avx2")]
pub(super) fn both(near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
    let mut at = 0;
    let mut left = sums(near, far, 0);
    while at < count {
        let to = to.get_mut(2 * at..).unwrap_or_default();
        // Those behind are the left ones of the next step.
        let next = sums(near, far, at + 16);
        let (Some(own), Some(behind), Some(to)) = (left, next, to.first_chunk_mut::<32>()) else {
            let (near, far) = (near.get(at..), far.get(at..));
            let (near, far) = (near.unwrap_or_default(), far.unwrap_or_default());
            return plain::both(near, far, count - at, to);
        };
        let between = _mm256_permute2x128_si256::<0x21>(own, behind);
        let middle = _mm256_alignr_epi8::<2>(between, own);
        let right = _mm256_alignr_epi8::<4>(between, own);
        blend::<4>([own, middle, right], [8, 7], to);
        left = next;
        at += 16;
    }
}

/// RGB of 16 pixels as words, not yet limited: factors are halved or less, to fit in words.
#[target_feature(enable = "avx2")]
#[inline]
fn rgb(y: __m256i, cb: __m256i, cr: __m256i) -> [__m256i; 3] {
    let one = _mm256_set1_epi16(1);
    let half = _mm256_set1_epi32(1 << 15);
    let (cb2, cr2) = (_mm256_add_epi16(cb, cb), _mm256_add_epi16(cr, cr));
    // 1.402 is 1 + 0.402, and 1.772 is 2 - 0.228.
    let red = _mm256_mulhi_epi16(cr2, _mm256_set1_epi16(26345));
    let red = _mm256_srai_epi16::<1>(_mm256_add_epi16(red, one));
    let blue = _mm256_mulhi_epi16(cb2, _mm256_set1_epi16(-14942));
    let blue = _mm256_srai_epi16::<1>(_mm256_add_epi16(blue, one));
    // 0.71414 is 1 - 0.28586.
    let factors = _mm256_set1_epi32((-22554i16 as u16 as i32) | 18734 << 16);
    let green = |pairs: __m256i| {
        let sum = _mm256_add_epi32(_mm256_madd_epi16(pairs, factors), half);
        _mm256_srai_epi32::<16>(sum)
    };
    let green = _mm256_packs_epi32(
        green(_mm256_unpacklo_epi16(cb, cr)),
        green(_mm256_unpackhi_epi16(cb, cr)),
    );
    [
        _mm256_add_epi16(_mm256_add_epi16(y, cr), red),
        _mm256_add_epi16(y, _mm256_sub_epi16(green, cr)),
        _mm256_add_epi16(_mm256_add_epi16(y, cb2), blue),
    ]
}

/// Which byte of a plane each byte of 48 of RGB is: 16 bytes for each third and plane.
const SPREAD: [[[u8; 16]; 3]; 3] = {
    let mut spread = [[[0x80; 16]; 3]; 3];
    let mut i = 0;
    while i < 48 {
        spread[i / 16][i % 3][i % 16] = (i / 3) as u8;
        i += 1;
    }
    spread
};

/// 32 pixels of three planes.
#[target_feature(enable = "avx2")]
#[inline]
fn put(planes: [__m256i; 3], to: &mut [u8; 96]) {
    let (to, _) = to.as_chunks_mut::<16>();
    for (third, masks) in SPREAD.iter().enumerate() {
        let mut bytes = _mm256_setzero_si256();
        for (plane, mask) in planes.into_iter().zip(masks) {
            let mask = _mm256_broadcastsi128_si256(load_16(mask));
            bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(plane, mask));
        }
        store_16(&mut to[third], _mm256_castsi256_si128(bytes));
        store_16(&mut to[third + 3], _mm256_extracti128_si256::<1>(bytes));
    }
}

/// 32 samples of each row.
#[target_feature(enable = "avx2")]
#[inline]
fn samples(rows: [&[u8]; 3], at: usize) -> Option<[__m256i; 3]> {
    let [a, b, c] = rows;
    Some([
        load(a.get(at..)?.first_chunk()?),
        load(b.get(at..)?.first_chunk()?),
        load(c.get(at..)?.first_chunk()?),
    ])
}

/// `filters::ycc_to_rgb`.
#[target_feature(enable = "avx2")]
pub(super) fn ycc_to_rgb(rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    let zero = _mm256_setzero_si256();
    let center = _mm256_set1_epi16(128);
    let mut at = 0;
    while at < pixels {
        let to = to.get_mut(3 * at..).unwrap_or_default();
        let (Some([y, cb, cr]), Some(to)) = (samples(rows, at), to.first_chunk_mut::<96>()) else {
            let rows = rows.map(|row| row.get(at..).unwrap_or_default());
            return plain::ycc_to_rgb(rows, pixels - at, to);
        };
        let low = rgb(
            _mm256_unpacklo_epi8(y, zero),
            _mm256_sub_epi16(_mm256_unpacklo_epi8(cb, zero), center),
            _mm256_sub_epi16(_mm256_unpacklo_epi8(cr, zero), center),
        );
        let high = rgb(
            _mm256_unpackhi_epi8(y, zero),
            _mm256_sub_epi16(_mm256_unpackhi_epi8(cb, zero), center),
            _mm256_sub_epi16(_mm256_unpackhi_epi8(cr, zero), center),
        );
        let planes = [
            _mm256_packus_epi16(low[0], high[0]),
            _mm256_packus_epi16(low[1], high[1]),
            _mm256_packus_epi16(low[2], high[2]),
        ];
        put(planes, to);
        at += 32;
    }
}

/// `filters::interleave`.
#[target_feature(enable = "avx2")]
pub(super) fn interleave(rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    let mut at = 0;
    while at < pixels {
        let to = to.get_mut(3 * at..).unwrap_or_default();
        let (Some(planes), Some(to)) = (samples(rows, at), to.first_chunk_mut::<96>()) else {
            let rows = rows.map(|row| row.get(at..).unwrap_or_default());
            return plain::interleave(rows, pixels - at, to);
        };
        put(planes, to);
        at += 32;
    }
}
