//! A block of quantized coefficients to Huffman codes.

use super::bits::{Bits, Output};
use super::tables::Codes;

/// The symbol of 16 zeros, and of zeros up to the end of the block.
const ZEROS: u8 = 0xf0;
const END: u8 = 0;

/// How many bits a value has, and these: of a negative one those of its absolute value, inverted.
#[inline]
fn value_bits(value: i32) -> (u8, u32) {
    let sign = value >> 31;
    let folded = value + sign;
    let count = 32 - ((folded ^ sign) as u32).leading_zeros();
    (count as u8, folded as u32 & ((1 << count) - 1))
}

/// Codes a block in zigzag order. `nonzero` has a bit for each value that is not zero; `last` is
/// DC of the block before it.
#[inline]
pub(super) fn encode(
    values: &[i16; 64],
    nonzero: u64,
    last: i16,
    [dc, ac]: &[Codes; 2],
    bits: &mut Bits,
    out: &mut Output<'_>,
) {
    let (count, value) = value_bits(i32::from(values[0]) - i32::from(last));
    let (code, length) = dc.of(count);
    bits.put(code | value, length, out);
    // The place of the value before, and those that follow it.
    let mut at = 0;
    let mut rest = nonzero >> 1;
    while rest != 0 {
        let mut run = rest.trailing_zeros();
        rest = rest >> run >> 1;
        at += run as usize + 1;
        while run > 15 {
            let (code, length) = ac.of(ZEROS);
            bits.put(code, length, out);
            run -= 16;
        }
        let (count, value) = value_bits(i32::from(values[at & 63]));
        let (code, length) = ac.of((run as u8) << 4 | count);
        bits.put(code | value, length, out);
    }
    if at < 63 {
        let (code, length) = ac.of(END);
        bits.put(code, length, out);
    }
}
