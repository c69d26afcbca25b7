//! Arithmetic for the transforms: rows of words, with a block in each lane.

use super::super::blocks::{BlockPair, PairTarget};
use super::super::frame::QuantizationTable;
use super::lanes::Lanes;

/// x * the even words + y * the odd ones.
#[inline(always)]
pub(super) fn sum<L: Lanes>(l: L, words: L::V, x: i32, y: i32) -> L::V {
    let factors = (x as u16 as u32 | (y as u16 as u32) << 16) as i32;
    l.madd_epi16(words, l.set1_epi32(factors))
}

/// The first rows of the blocks from `block` on, dequantized.
#[inline(always)]
pub(super) fn dequantized<L: Lanes, const N: usize>(
    l: L,
    from: &BlockPair,
    block: usize,
    q: &QuantizationTable,
) -> [L::V; N] {
    let (q, _) = q.as_chunks::<8>();
    let mut rows = [l.set1_epi16(0); N];
    for (i, (row, q)) in rows.iter_mut().zip(q).enumerate() {
        *row = l.mullo_epi16(l.row(from, i, block), l.words(q));
    }
    rows
}

/// Whether a value of the first row is so large that a column of it alone would saturate.
/// libjpeg-turbo's shortcut for such columns wraps.
#[inline(always)]
pub(super) fn is_absurd<L: Lanes>(l: L, row: L::V) -> bool {
    let high = l.cmpgt_epi16(row, l.set1_epi16(8191));
    let low = l.cmpgt_epi16(l.set1_epi16(-8192), row);
    l.signs(l.or(high, low)) != 0
}

/// The place of each lane's block, in the register that begins with `block`; `None` for a register
/// without a block.
#[inline(always)]
pub(super) fn targets<L: Lanes>(at: PairTarget, block: usize) -> Option<[Option<usize>; 2]> {
    match (L::BLOCKS, block) {
        (1, 0) => Some([Some(at.first), None]),
        (1, _) => Some([Some(at.second?), None]),
        _ => Some([Some(at.first), at.second]),
    }
}
