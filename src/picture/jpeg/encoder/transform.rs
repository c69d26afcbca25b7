//! The forward transform and quantization, one block at a time: libjpeg-turbo's "islow" (jfdctint),
//! in integers with 13 bits of fraction. No value wraps for samples of 8 bits.

use super::super::standard_tables::ZIGZAG;
use super::quantizer::BlockQuantizer;
use super::samples::SamplePair;

/// Quantized coefficients of two blocks, each in zigzag order.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::picture::jpeg) struct QuantizedPair {
    pub(in crate::picture::jpeg) values: [[i16; 64]; 2],
    /// A bit for each value that is not zero, the lowest for DC.
    pub(super) nonzero: [u64; 2],
}

impl QuantizedPair {
    pub(in crate::picture::jpeg) const ZERO: Self = Self {
        values: [[0; 64]; 2],
        nonzero: [0; 2],
    };
}

/// FIX(x) of jfdctint.c: x * 2^13.
pub(super) mod fix {
    pub(crate) const F0_298: i32 = 2446;
    pub(crate) const F0_390: i32 = 3196;
    pub(crate) const F0_541: i32 = 4433;
    pub(crate) const F0_765: i32 = 6270;
    pub(crate) const F0_899: i32 = 7373;
    pub(crate) const F1_175: i32 = 9633;
    pub(crate) const F1_501: i32 = 12299;
    pub(crate) const F1_847: i32 = 15137;
    pub(crate) const F1_961: i32 = 16069;
    pub(crate) const F2_053: i32 = 16819;
    pub(crate) const F2_562: i32 = 20995;
    pub(crate) const F3_072: i32 = 25172;
}
use fix::*;

/// Bits of fraction of the factors.
pub(super) const FRACTION: i32 = 13;
/// Bits of fraction between the passes.
pub(super) const BETWEEN: i32 = 2;

/// Transforms eight values to eight coefficients. Sums without factors are shifted left by `SHIFT`.
/// Sums with factors are shifted right by `FRACTION - SHIFT`.
#[inline(always)]
fn pass<const SHIFT: i32>(s: [i32; 8]) -> [i32; 8] {
    let [s07, s16, s25, s34] = [s[0] + s[7], s[1] + s[6], s[2] + s[5], s[3] + s[4]];
    let [d07, d16, d25, d34] = [s[0] - s[7], s[1] - s[6], s[2] - s[5], s[3] - s[4]];
    let (even, odd) = ((s07 + s34, s16 + s25), (s07 - s34, s16 - s25));
    let whole = |sum: i32| match SHIFT {
        0.. => sum << SHIFT,
        _ => (sum + (1 << (-SHIFT - 1))) >> -SHIFT,
    };
    let round = |sum: i32| (sum + (1 << (FRACTION - SHIFT - 1))) >> (FRACTION - SHIFT);
    let z = (odd.0 + odd.1) * F0_541;
    let (z3, z4) = (d34 + d16, d25 + d07);
    let z5 = (z3 + z4) * F1_175;
    let (z1, z2) = ((d34 + d07) * -F0_899, (d25 + d16) * -F2_562);
    let (z3, z4) = (z3 * -F1_961 + z5, z4 * -F0_390 + z5);
    [
        whole(even.0 + even.1),
        round(d07 * F1_501 + z1 + z4),
        round(z + odd.0 * F0_765),
        round(d16 * F3_072 + z2 + z3),
        whole(even.0 - even.1),
        round(d25 * F2_053 + z2 + z4),
        round(z - odd.1 * F1_847),
        round(d34 * F0_298 + z1 + z3),
    ]
}

fn transpose(rows: [[i32; 8]; 8]) -> [[i32; 8]; 8] {
    std::array::from_fn(|y| std::array::from_fn(|x| rows[x][y]))
}

/// `EncodeKernels::transform`, one block at a time.
pub(in crate::picture::jpeg) fn transform(
    from: &SamplePair,
    q: &BlockQuantizer,
    to: &mut QuantizedPair,
) {
    for which in 0..2 {
        let rows = from.map(|row| std::array::from_fn(|x| i32::from(row[8 * which + x])));
        let mut block: [[i32; 8]; 8] = rows;
        for row in &mut block {
            *row = pass::<BETWEEN>(*row);
        }
        let mut columns = transpose(block);
        for column in &mut columns {
            *column = pass::<{ -BETWEEN }>(*column);
        }
        let rows = transpose(columns);
        let block = rows.as_flattened();
        let mut nonzero = 0;
        for (k, (to, place)) in to.values[which].iter_mut().zip(ZIGZAG).enumerate() {
            let place = usize::from(place);
            *to = q.divide(block[place] as i16, place);
            nonzero |= u64::from(*to != 0) << k;
        }
        to.nonzero[which] = nonzero;
    }
}
