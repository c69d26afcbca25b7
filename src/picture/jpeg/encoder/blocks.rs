//! Encodes a block of quantized coefficients in Huffman codes.

use super::bits::{BitWriter, ByteOutput};
use super::tables::SymbolCodes;

/// A block's quantized coefficients in zigzag order.
#[derive(Debug, Clone, Copy)]
pub(super) struct ZigzagBlock<'a> {
    pub(super) values: &'a [i16; 64],
    /// A bit for each value that is not zero.
    pub(super) nonzero: u64,
    /// DC of the component's previous block.
    pub(super) last: i16,
    /// Codes of DC and of AC.
    pub(super) codes: &'a [SymbolCodes; 2],
}

/// The symbols for 16 zeros, and for the end of the block.
const ZEROS: u8 = 0xf0;
const END: u8 = 0;

/// The number of bits of a value, and the bits. A negative value has the inverted bits of its
/// absolute value.
#[inline(always)]
fn value_bits(value: i32) -> (u8, u32) {
    let sign = value >> 31;
    let folded = value + sign;
    let count = 32 - ((folded ^ sign) as u32).leading_zeros();
    (count as u8, folded as u32 & ((1 << count) - 1))
}

/// `EncodeKernels::encode`.
#[inline(always)]
pub(super) fn encode(
    block: ZigzagBlock<'_>,
    bits: BitWriter,
    out: &mut ByteOutput<'_>,
) -> BitWriter {
    let ZigzagBlock {
        values,
        nonzero,
        last,
        codes: [dc, ac],
    } = block;
    let mut bits = bits;
    let (count, value) = value_bits(i32::from(values[0]) - i32::from(last));
    let (code, length) = dc.of(count);
    bits.put(code | value, length, out);
    // The place of the last coded value, and the values to come.
    let mut at = 0;
    let mut rest = nonzero & !1;
    while rest != 0 {
        let next = rest.trailing_zeros() & 63;
        rest &= rest - 1;
        let mut run = next - at - 1;
        at = next;
        while run > 15 {
            let (code, length) = ac.of(ZEROS);
            bits.put(code, length, out);
            run -= 16;
        }
        let (count, value) = value_bits(i32::from(values[at as usize]));
        let (code, length) = ac.of((run as u8) << 4 | count);
        bits.put(code | value, length, out);
    }
    if at < 63 {
        let (code, length) = ac.of(END);
        bits.put(code, length, out);
    }
    bits
}
