//! Stores coefficients in zigzag order, and finds the zeros.

use std::arch::x86_64::*;

use super::super::super::standard_tables::ZIGZAG;
use super::super::transform::QuantizedPair;
use super::lanes::{load_bytes_twice, store_both};

/// A shuffle that moves bytes of row `from` to their places among the eight words from `8 * to` on.
const fn mask(to: usize, from: usize) -> [u8; 16] {
    let mut bytes = [0x80; 16];
    let mut i = 0;
    while i < 8 {
        let place = ZIGZAG[8 * to + i] as usize;
        if place / 8 == from {
            bytes[2 * i] = (2 * (place % 8)) as u8;
            bytes[2 * i + 1] = bytes[2 * i] + 1;
        }
        i += 1;
    }
    bytes
}

/// Whether any of the eight words from `8 * to` on comes from row `from`.
const fn takes(to: usize, from: usize) -> bool {
    let mut i = 0;
    while i < 8 {
        if ZIGZAG[8 * to + i] as usize / 8 == from {
            return true;
        }
        i += 1;
    }
    false
}

/// The eight words from `8 * TO` on, in zigzag order.
#[target_feature(enable = "avx2")]
#[inline]
fn eight<const TO: usize>(rows: &[__m256i; 8]) -> __m256i {
    let mut words = _mm256_setzero_si256();
    macro_rules! take {
        ($($from:literal)*) => {$(
            if const { takes(TO, $from) } {
                let bytes = load_bytes_twice(const { &mask(TO, $from) });
                words = _mm256_or_si256(words, _mm256_shuffle_epi8(rows[$from], bytes));
            }
        )*};
    }
    take!(0 1 2 3 4 5 6 7);
    words
}

/// Stores the rows of two blocks in zigzag order.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store(rows: [__m256i; 8], to: &mut QuantizedPair) {
    let words = [
        eight::<0>(&rows),
        eight::<1>(&rows),
        eight::<2>(&rows),
        eight::<3>(&rows),
        eight::<4>(&rows),
        eight::<5>(&rows),
        eight::<6>(&rows),
        eight::<7>(&rows),
    ];
    let [first, second] = &mut to.values;
    let (first, _) = first.as_chunks_mut();
    let (second, _) = second.as_chunks_mut();
    for ((first, second), words) in first.iter_mut().zip(second).zip(words) {
        store_both(first, second, words);
    }
    let zero = _mm256_setzero_si256();
    to.nonzero = [0; 2];
    for (i, two) in words.chunks_exact(2).enumerate() {
        // Zero words, as bytes: sixteen of each block.
        let bytes = _mm256_packs_epi16(
            _mm256_cmpeq_epi16(two[0], zero),
            _mm256_cmpeq_epi16(two[1], zero),
        );
        let is_not = !(_mm256_movemask_epi8(bytes) as u32);
        to.nonzero[0] |= u64::from(is_not & 0xffff) << (16 * i);
        to.nonzero[1] |= u64::from(is_not >> 16) << (16 * i);
    }
}
