//! Places of coefficients in natural order.

use super::super::super::standard_tables::ZIGZAG;

/// Of each place in zigzag order its place in natural order. What runs over the end of a block
/// goes to its last place, as in libjpeg-turbo.
pub(super) const NATURAL: [u8; 128] = natural();

const fn natural() -> [u8; 128] {
    let mut natural = [63; 128];
    let mut i = 0;
    while i < 64 {
        natural[i] = ZIGZAG[i];
        i += 1;
    }
    natural
}

/// Of each four coefficients in natural order, which of them are there: their places in zigzag
/// order, as bits.
const PLACES: [[u64; 16]; 16] = places();

const fn places() -> [[u64; 16]; 16] {
    let mut places = [[0; 16]; 16];
    let mut k = 0;
    while k < 64 {
        let natural = ZIGZAG[k] as usize;
        let mut which = 0;
        while which < 16 {
            if which >> (natural % 4) & 1 == 1 {
                places[natural / 4][which] |= 1 << k;
            }
            which += 1;
        }
        k += 1;
    }
    places
}

/// Bands of this many coefficients are looked at one by one.
const SHORT: usize = 16;

/// Which coefficients of a band are not zero: their places in zigzag order, as bits. Others may
/// be there as well.
#[inline(always)]
pub(super) fn places_of_coefficients(block: &[i16; 64], first: usize, last: usize) -> u64 {
    if last - first < SHORT {
        let places = first..=last;
        return places.fold(0, |all, k| {
            let is_there = block[usize::from(NATURAL[k & 63])] != 0;
            all | u64::from(is_there) << (k & 63)
        });
    }
    const LOW: u64 = 0x0001_0001_0001_0001;
    let mut all = 0;
    for (four, places) in block.chunks_exact(4).zip(&PLACES) {
        let bits = |i: usize| u64::from(four[i] as u16) << (16 * i);
        let number = bits(0) | bits(1) | bits(2) | bits(3);
        // The top bit of each lane that is not zero, and then these four next to each other.
        let low = LOW * 0x7FFF;
        let lanes = (((number & low) + low) | number) >> 15 & LOW;
        let which = lanes | lanes >> 15 | lanes >> 30 | lanes >> 45;
        all |= places[which as usize & 15];
    }
    all
}
