//! Eight pixels at a time, with the numbers of the plain form.
//!
//! The tables become products: of each table the one factor that gives all its levels.

use std::arch::x86_64::*;

use super::scalar::{HUES, HsvTables, SECTORS, SHIFT};

/// Pixels that are computed together.
pub(super) const GROUP: usize = 8;
/// Bytes that are loaded and written together.
const WORD: usize = 8;
/// Those of a group.
const WORDS: usize = 3;
/// The bytes of a group.
pub(super) type GroupWords = [[u8; WORD]; WORDS];

/// Binary places of a factor. Two tables that differ have factors that differ by more than 2^-16.
const FACTOR_BITS: u32 = 20;

/// The tables as numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct HsvFactors {
    hue: i32,
    saturation: i32,
    value: i32,
}

impl HsvFactors {
    /// None if rounding has made a table that no factor has: of some gains with few digits.
    pub(super) fn of(tables: &HsvTables) -> Option<Self> {
        Some(Self {
            hue: hues_added(&tables.hue)?,
            saturation: factor(&tables.saturation)?,
            value: factor(&tables.value)?,
        })
    }
}

/// The whole number of hues that the table adds.
fn hues_added(table: &[u8; 256]) -> Option<i32> {
    let by = i32::from(table[0]);
    let mut hues = (0..HUES).zip(table);
    let adds = |(hue, to): (i32, &u8)| i32::from(*to) == (hue + by) % HUES;
    hues.all(adds).then_some(by)
}

/// The least factor whose products, truncated and at most 255, are the table.
fn factor(table: &[u8; 256]) -> Option<i32> {
    let (mut least, mut most) = (0, u64::from(u32::MAX >> 1) / 255);
    for (level, to) in (0..).zip(table).skip(1) {
        let to = u64::from(*to);
        least = least.max((to << FACTOR_BITS).div_ceil(level));
        if to < 255 {
            most = most.min((((to + 1) << FACTOR_BITS) - 1) / level);
        }
    }
    (table[0] == 0 && least <= most).then_some(least as i32)
}

/// Changes whole groups of pixels. One function: of smaller ones the compiler makes calls, and the
/// calls take as long as the sums. For the same reason it calls no function of the standard library that
/// takes a closure. A group that equals the one before it has its result: of a fill, for example.
#[target_feature(enable = "avx2,fma")]
pub(super) fn change(factors: HsvFactors, groups: &mut [GroupWords]) {
    #[rustfmt::skip]
    let spread = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,
    ));
    #[rustfmt::skip]
    let close_up = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    ));
    let (apart, joined) = (words(APART), words(JOINED));
    let byte = _mm256_set1_epi32(255);
    // Black stays black.
    let (mut before, mut result) = ([[0; WORD]; WORDS], [[0; WORD]; WORDS]);
    for bytes in groups {
        if *bytes == before {
            *bytes = result;
            continue;
        }
        before = *bytes;
        let loaded = _mm256_setr_epi64x(
            i64::from_le_bytes(bytes[0]),
            i64::from_le_bytes(bytes[1]),
            i64::from_le_bytes(bytes[2]),
            0,
        );
        let pixels = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(loaded, apart), spread);
        let red = _mm256_and_si256(pixels, byte);
        let green = _mm256_and_si256(_mm256_srli_epi32::<8>(pixels), byte);
        let blue = _mm256_srli_epi32::<16>(pixels);
        let pixels = rgb(changed(factors, hsv([red, green, blue])));
        let pixels = _mm256_shuffle_epi8(pixels, close_up);
        let pixels = _mm256_permutevar8x32_epi32(pixels, joined);
        result = [
            _mm256_extract_epi64::<0>(pixels).to_le_bytes(),
            _mm256_extract_epi64::<1>(pixels).to_le_bytes(),
            _mm256_extract_epi64::<2>(pixels).to_le_bytes(),
        ];
        *bytes = result;
    }
}

/// Twelve bytes of each half, apart.
const APART: [i32; GROUP] = [0, 1, 2, 3, 3, 4, 5, 6];
/// The same back.
const JOINED: [i32; GROUP] = [0, 1, 2, 4, 5, 6, 7, 7];

/// Which bytes of its number a pixel takes, for each sector. A hue of 180 takes the last sector.
const CHOICES: [i32; GROUP] = {
    let mut choices = [0; GROUP];
    let mut sector = 0;
    while sector < GROUP {
        let [r, g, b] = SECTORS[if sector < SECTORS.len() {
            sector
        } else {
            SECTORS.len() - 1
        }];
        choices[sector] = (r | g << 8 | b << 16) as i32;
        sector += 1;
    }
    choices
};

#[inline]
#[target_feature(enable = "avx2")]
fn words([a, b, c, d, e, f, g, h]: [i32; GROUP]) -> __m256i {
    _mm256_setr_epi32(a, b, c, d, e, f, g, h)
}

/// The quotients of the tables: the float quotient is rounded as the exact one is.
#[inline]
#[target_feature(enable = "avx2")]
fn quotient(of: i32, by: __m256i) -> __m256i {
    let of = _mm256_set1_ps((of << SHIFT) as f32);
    _mm256_cvtps_epi32(_mm256_div_ps(of, _mm256_cvtepi32_ps(by)))
}

/// Hue, saturation and value.
#[inline]
#[target_feature(enable = "avx2")]
fn hsv([r, g, b]: [__m256i; 3]) -> [__m256i; 3] {
    let most = _mm256_max_epi32(_mm256_max_epi32(r, g), b);
    let least = _mm256_min_epi32(_mm256_min_epi32(r, g), b);
    let range = _mm256_sub_epi32(most, least);
    let half = _mm256_set1_epi32(1 << (SHIFT - 1));
    let rounded = |v| _mm256_srai_epi32::<{ SHIFT as i32 }>(_mm256_add_epi32(v, half));
    // A range of 0 makes both products 0, whatever the quotient is.
    let saturation = rounded(_mm256_mullo_epi32(range, quotient(255, most)));
    let twice = _mm256_slli_epi32::<1>(range);
    let from_green = _mm256_add_epi32(_mm256_sub_epi32(b, r), twice);
    let from_blue = _mm256_add_epi32(_mm256_sub_epi32(r, g), _mm256_slli_epi32::<1>(twice));
    let sixths = _mm256_blendv_epi8(from_blue, from_green, _mm256_cmpeq_epi32(most, g));
    let from_red = _mm256_sub_epi32(g, b);
    let sixths = _mm256_blendv_epi8(sixths, from_red, _mm256_cmpeq_epi32(most, r));
    let hue = rounded(_mm256_mullo_epi32(sixths, quotient(HUES / 6, range)));
    let is_negative = _mm256_cmpgt_epi32(_mm256_setzero_si256(), hue);
    let circle = _mm256_and_si256(is_negative, _mm256_set1_epi32(HUES));
    [_mm256_add_epi32(hue, circle), saturation, most]
}

/// What the tables make of hue, saturation and value.
#[inline]
#[target_feature(enable = "avx2")]
fn changed(factors: HsvFactors, [hue, saturation, value]: [__m256i; 3]) -> [__m256i; 3] {
    let times = |v, factor| {
        let product = _mm256_mullo_epi32(v, _mm256_set1_epi32(factor));
        let whole = _mm256_srli_epi32::<{ FACTOR_BITS as i32 }>(product);
        _mm256_min_epi32(whole, _mm256_set1_epi32(255))
    };
    let hue = _mm256_add_epi32(hue, _mm256_set1_epi32(factors.hue));
    let is_round = _mm256_cmpgt_epi32(hue, _mm256_set1_epi32(HUES - 1));
    let circle = _mm256_and_si256(is_round, _mm256_set1_epi32(HUES));
    [
        _mm256_sub_epi32(hue, circle),
        times(saturation, factors.saturation),
        times(value, factors.value),
    ]
}

/// Red, green and blue as the first three bytes of each number. See `write_rgb` of the plain form.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn rgb([hue, saturation, value]: [__m256i; 3]) -> __m256i {
    let (one, by_255) = (_mm256_set1_ps(1.0), _mm256_set1_ps(1.0 / 255.0));
    let sixth = _mm256_set1_ps(6.0 / HUES as f32);
    let sixths = _mm256_mul_ps(_mm256_cvtepi32_ps(hue), sixth);
    let sector = _mm256_cvttps_epi32(sixths);
    let part = _mm256_sub_ps(sixths, _mm256_cvtepi32_ps(sector));
    let s = _mm256_mul_ps(_mm256_cvtepi32_ps(saturation), by_255);
    let v = _mm256_mul_ps(_mm256_cvtepi32_ps(value), by_255);
    let level = |v| _mm256_cvttps_epi32(_mm256_mul_ps(v, _mm256_set1_ps(255.0)));
    let less = |part| level(_mm256_mul_ps(v, _mm256_fnmadd_ps(s, part, one)));
    let most = level(v);
    let least = level(_mm256_mul_ps(v, _mm256_sub_ps(one, s)));
    let (falling, rising) = (less(part), less(_mm256_sub_ps(one, part)));
    let low = _mm256_or_si256(most, _mm256_slli_epi32::<8>(least));
    let falling = _mm256_slli_epi32::<16>(falling);
    let high = _mm256_or_si256(falling, _mm256_slli_epi32::<24>(rising));
    let choice = _mm256_permutevar8x32_epi32(words(CHOICES), sector);
    const PLACE: i32 = 0x04_0404;
    let places = _mm_setr_epi32(0, PLACE, 2 * PLACE, 3 * PLACE);
    let choice = _mm256_or_si256(choice, _mm256_broadcastsi128_si256(places));
    _mm256_shuffle_epi8(_mm256_or_si256(low, high), choice)
}
