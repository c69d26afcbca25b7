//! The inverse transforms, one block at a time: libjpeg-turbo's "islow" at 8 x 8 samples (jidctint)
//! and the reduced ones at 4 x 4, 2 x 2 and 1 x 1 (jidctred).
//!
//! Integers have 13 bits of fraction. Sums and products wrap and saturate where libjpeg-turbo's
//! SSE2 and AVX2 forms do, at 16 or 32 bits. So files with absurd coefficients have the same bytes,
//! too.

use super::blocks::{BlockPair, PairTarget};
use super::frame::QuantizationTable;

/// FIX(x) of jidctint.c and jidctred.c: x * 2^13.
pub(super) mod fix {
    pub(crate) const F0_211: i32 = 1730;
    pub(crate) const F0_298: i32 = 2446;
    pub(crate) const F0_390: i32 = 3196;
    pub(crate) const F0_509: i32 = 4176;
    pub(crate) const F0_541: i32 = 4433;
    pub(crate) const F0_601: i32 = 4926;
    pub(crate) const F0_720: i32 = 5906;
    pub(crate) const F0_765: i32 = 6270;
    pub(crate) const F0_850: i32 = 6967;
    pub(crate) const F0_899: i32 = 7373;
    pub(crate) const F1_061: i32 = 8697;
    pub(crate) const F1_175: i32 = 9633;
    pub(crate) const F1_272: i32 = 10426;
    pub(crate) const F1_451: i32 = 11893;
    pub(crate) const F1_501: i32 = 12299;
    pub(crate) const F1_847: i32 = 15137;
    pub(crate) const F1_961: i32 = 16069;
    pub(crate) const F2_053: i32 = 16819;
    pub(crate) const F2_172: i32 = 17799;
    pub(crate) const F2_562: i32 = 20995;
    pub(crate) const F3_072: i32 = 25172;
    pub(crate) const F3_624: i32 = 29692;
}
use fix::*;

/// A block before it is dequantized, row by row.
pub(in crate::picture::jpeg) type QuantizedBlock = [[i16; 8]; 8];

/// Transforms both blocks of a pair with `one`.
pub(super) fn pair<const N: usize>(
    from: &BlockPair,
    q: &QuantizationTable,
    to: &mut [u8],
    at: PairTarget,
    one: fn(&QuantizedBlock, &QuantizationTable) -> [[u8; N]; N],
) {
    let targets = [Some(at.first), at.second];
    for (which, target) in targets.into_iter().enumerate() {
        let Some(target) = target else { continue };
        for (y, row) in one(&block(from, which), q).iter().enumerate() {
            let start = target + y * at.pitch;
            if let Some(to) = to.get_mut(start..start + N) {
                to.copy_from_slice(row);
            }
        }
    }
}

/// 8 x 8 samples of both blocks of a pair that has only DC coefficients.
#[inline(always)]
pub(super) fn flat(from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) {
    flat_block(from.0[0], q[0], to, at.first, at.pitch);
    if let Some(second) = at.second {
        flat_block(from.0[8], q[0], to, second, at.pitch);
    }
}

/// A block whose samples all equal its mean.
#[inline(always)]
fn flat_block(dc: i16, q: i16, to: &mut [u8], start: usize, pitch: usize) {
    let value = i32::from(dc.wrapping_mul(q).wrapping_shl(2));
    let value = ((value + 16) >> 5).clamp(-128, 127) + 128;
    let Some(to) = to
        .get_mut(start..)
        .and_then(|to| to.get_mut(..7 * pitch + 8))
    else {
        return;
    };
    for line in to.chunks_mut(pitch) {
        if let Some(line) = line.first_chunk_mut::<8>() {
            *line = [value as u8; 8];
        }
    }
}

/// The first or the second block of a pair.
pub(super) fn block(from: &BlockPair, which: usize) -> QuantizedBlock {
    let mut block = [[0; 8]; 8];
    let rows = from.0.chunks_exact(16);
    for (to, row) in block.iter_mut().zip(rows) {
        to.copy_from_slice(&row[8 * which..8 * which + 8]);
    }
    block
}

fn dequantize(from: &QuantizedBlock, q: &QuantizationTable) -> QuantizedBlock {
    let mut block = *from;
    for (value, factor) in block.as_flattened_mut().iter_mut().zip(q) {
        *value = value.wrapping_mul(*factor);
    }
    block
}

/// a * x + b * y, as `pmaddwd` adds.
#[inline(always)]
fn sum(a: i16, x: i32, b: i16, y: i32) -> i32 {
    (i32::from(a) * x).wrapping_add(i32::from(b) * y)
}

/// Shifts right by `bits`, rounded.
#[inline(always)]
fn descale(value: i32, bits: u32) -> i32 {
    value.wrapping_add(1 << (bits - 1)) >> bits
}

/// `packssdw`.
#[inline(always)]
fn to_i16(value: i32) -> i16 {
    value.clamp(-32768, 32767) as i16
}

/// `packssdw` and `packsswb`, then adds half of the range.
#[inline(always)]
fn to_sample(value: i32) -> u8 {
    (value.clamp(-128, 127) + 128) as u8
}

/// Eight values of a row or column, before rounding (`jpeg_idct_islow`).
#[inline(always)]
fn islow([r0, r1, r2, r3, r4, r5, r6, r7]: [i16; 8]) -> [i32; 8] {
    let t0 = i32::from(r0.wrapping_add(r4)) << 13;
    let t1 = i32::from(r0.wrapping_sub(r4)) << 13;
    let t2 = sum(r2, F0_541, r6, F0_541 - F1_847);
    let t3 = sum(r2, F0_541 + F0_765, r6, F0_541);
    let even = [
        t0.wrapping_add(t3),
        t1.wrapping_add(t2),
        t1.wrapping_sub(t2),
        t0.wrapping_sub(t3),
    ];
    let (z3, z4) = (r7.wrapping_add(r3), r5.wrapping_add(r1));
    let (z3, z4) = (
        sum(z3, F1_175 - F1_961, z4, F1_175),
        sum(z3, F1_175, z4, F1_175 - F0_390),
    );
    let odd = [
        sum(r7, -F0_899, r1, F1_501 - F0_899).wrapping_add(z4),
        sum(r5, -F2_562, r3, F3_072 - F2_562).wrapping_add(z3),
        sum(r5, F2_053 - F2_562, r3, -F2_562).wrapping_add(z4),
        sum(r7, F0_298 - F0_899, r1, -F0_899).wrapping_add(z3),
    ];
    [
        even[0].wrapping_add(odd[0]),
        even[1].wrapping_add(odd[1]),
        even[2].wrapping_add(odd[2]),
        even[3].wrapping_add(odd[3]),
        even[3].wrapping_sub(odd[3]),
        even[2].wrapping_sub(odd[2]),
        even[1].wrapping_sub(odd[1]),
        even[0].wrapping_sub(odd[0]),
    ]
}

/// `islow` of each column, rounded. The compiler vectorizes the loop over the columns.
#[inline(always)]
fn islow_columns<T: Copy + Default>(
    rows: &QuantizedBlock,
    bits: u32,
    pack: impl Fn(i32) -> T,
) -> [[T; 8]; 8] {
    let mut out = [[T::default(); 8]; 8];
    for x in 0..8 {
        let column = islow([
            rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], rows[5][x], rows[6][x],
            rows[7][x],
        ]);
        for y in 0..8 {
            out[y][x] = pack(descale(column[y], bits));
        }
    }
    out
}

fn transpose<T: Copy + Default>(rows: &[[T; 8]; 8]) -> [[T; 8]; 8] {
    let mut columns = [[T::default(); 8]; 8];
    for (y, row) in rows.iter().enumerate() {
        for (column, &value) in columns.iter_mut().zip(row) {
            column[y] = value;
        }
    }
    columns
}

/// 8 x 8 samples (jidctint).
pub(in crate::picture::jpeg) fn to8(from: &QuantizedBlock, q: &QuantizationTable) -> [[u8; 8]; 8] {
    let block = dequantize(from, q);
    let columns = if from[1..] == [[0; 8]; 7] {
        [block[0].map(|value| value.wrapping_shl(2)); 8]
    } else {
        islow_columns(&block, 11, to_i16)
    };
    transpose(&islow_columns(&transpose(&columns), 18, to_sample))
}

/// Four values from those at 0, 1, 2, 3, 5, 6, 7 (`jpeg_idct_4x4`).
fn reduced4([r0, r1, r2, r3, _, r5, r6, r7]: [i16; 8]) -> [i32; 4] {
    let even = i32::from(r0) << 14;
    let t = sum(r2, F1_847, r6, -F0_765);
    let (t10, t12) = (even.wrapping_add(t), even.wrapping_sub(t));
    let t0 = sum(r1, F1_061, r3, -F2_172).wrapping_add(sum(r5, F1_451, r7, -F0_211));
    let t2 = sum(r1, F2_562, r3, F0_899).wrapping_add(sum(r5, -F0_601, r7, -F0_509));
    [
        t10.wrapping_add(t2),
        t12.wrapping_add(t0),
        t12.wrapping_sub(t0),
        t10.wrapping_sub(t2),
    ]
}

/// 4 x 4 samples (jidctred).
pub(super) fn to4(from: &QuantizedBlock, q: &QuantizationTable) -> [[u8; 4]; 4] {
    let block = dequantize(from, q);
    let mut columns = [[0; 8]; 4];
    // Row 4 is not used.
    if from[1..4] == [[0; 8]; 3] && from[5..] == [[0; 8]; 3] {
        for row in &mut columns {
            *row = block[0].map(|value| value.wrapping_shl(2));
        }
    } else {
        for x in 0..8 {
            let column = reduced4(std::array::from_fn(|y| block[y][x]));
            for (row, value) in columns.iter_mut().zip(column) {
                row[x] = to_i16(descale(value, 12));
            }
        }
    }
    columns.map(|row| reduced4(row).map(|value| to_sample(descale(value, 19))))
}

/// 2 x 2 samples (jidctred).
pub(super) fn to2(from: &QuantizedBlock, q: &QuantizationTable) -> [[u8; 2]; 2] {
    let odd =
        |r1, r3, r5, r7| sum(r1, F3_624, r3, -F1_272).wrapping_add(sum(r5, F0_850, r7, -F0_720));
    let block = dequantize(from, q);
    let mut columns = [[0i32; 8]; 2];
    for x in [0, 1, 3, 5, 7] {
        let even = i32::from(block[0][x]) << 15;
        let t = odd(block[1][x], block[3][x], block[5][x], block[7][x]);
        columns[0][x] = descale(even.wrapping_add(t), 13);
        columns[1][x] = descale(even.wrapping_sub(t), 13);
    }
    columns.map(|row| {
        // The first value is not packed to 16 bits in between.
        let even = row[0].wrapping_shl(15);
        let [r1, r3, r5, r7] = [row[1], row[3], row[5], row[7]].map(to_i16);
        let t = odd(r1, r3, r5, r7);
        [even.wrapping_add(t), even.wrapping_sub(t)].map(|value| to_sample(descale(value, 20)))
    })
}

/// One sample (jidctred). Absurd values keep their low ten bits (`IDCT_range_limit`).
pub(super) fn to1(dc: i16, q: i16) -> u8 {
    let value = (i32::from(dc) * i32::from(q) + 4) >> 3;
    let value = value & 1023;
    to_sample(if value < 512 { value } else { value - 1024 })
}
