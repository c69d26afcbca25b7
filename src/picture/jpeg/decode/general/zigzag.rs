//! Conversions between zigzag order and natural order.

use super::super::super::standard_tables::ZIGZAG;

/// The natural place of each zigzag place. Places past the end of a block become its last place, as
/// in libjpeg-turbo.
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

/// For each four coefficients in natural order, and each mask of nonzero ones: their places in
/// zigzag order, as bits.
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

/// Bands of up to this many coefficients are checked one by one.
const SHORT: usize = 16;

/// Places of a band's nonzero coefficients in zigzag order, as bits. Places outside the band may be
/// set, too.
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
        // Sets the top bit of each nonzero lane, then moves the four bits together.
        let low = LOW * 0x7FFF;
        let lanes = (((number & low) + low) | number) >> 15 & LOW;
        let which = lanes | lanes >> 15 | lanes >> 30 | lanes >> 45;
        all |= places[which as usize & 15];
    }
    all
}
