//! The inverse transforms of two blocks to 4 x 4 and 2 x 2 samples, one block in each lane.
//!
//! The arithmetic is that of `super::super::transform`, in the order of libjpeg-turbo's SIMD.

use super::super::blocks::{BlockPair, PairTarget};
use super::super::frame::QuantizationTable;
use super::super::transform::{self, fix::*};
use super::lanes::Lanes;
use super::words::{dequantized, is_absurd, sum, targets};

/// `reduced4` of `transform` for half of the words of eight rows, rounded off by `BITS`.
#[inline(always)]
fn half_to_4<L: Lanes, const BITS: i32>(
    l: L,
    r0: L::V,
    r13: L::V,
    r57: L::V,
    r26: L::V,
) -> [L::V; 4] {
    let even = l.add_epi32(r0, l.set1_epi32(1 << (BITS - 1)));
    let t = sum(l, r26, F1_847, -F0_765);
    let (t10, t12) = (l.add_epi32(even, t), l.sub_epi32(even, t));
    let t0 = l.add_epi32(sum(l, r13, F1_061, -F2_172), sum(l, r57, F1_451, -F0_211));
    let t2 = l.add_epi32(sum(l, r13, F2_562, F0_899), sum(l, r57, -F0_601, -F0_509));
    [
        l.srai_epi32::<BITS>(l.add_epi32(t10, t2)),
        l.srai_epi32::<BITS>(l.add_epi32(t12, t0)),
        l.srai_epi32::<BITS>(l.sub_epi32(t12, t0)),
        l.srai_epi32::<BITS>(l.sub_epi32(t10, t2)),
    ]
}

/// `transform::to4` of two blocks.
#[inline(always)]
pub(super) fn to4<L: Lanes>(
    l: L,
    from: &BlockPair,
    q: &QuantizationTable,
    to: &mut [u8],
    at: PairTarget,
) {
    for block in 0..2 / L::BLOCKS {
        let Some(targets) = targets::<L>(at, block) else {
            return;
        };
        let rows = dequantized::<L, 8>(l, from, block, q);
        if is_absurd(l, rows[0]) {
            return transform::pair::<4>(from, q, to, at, transform::to4);
        }
        let samples = samples_4(l, rows);
        let [first, second] = targets;
        if let Some(start) = first {
            let rows = [l.quad::<0>(samples), l.quad::<1>(samples)];
            put_4(rows, to, start, at.pitch);
        }
        if let Some(start) = second {
            let rows = [l.quad::<2>(samples), l.quad::<3>(samples)];
            put_4(rows, to, start, at.pitch);
        }
    }
}

/// 4 x 4 samples of each lane, row by row.
#[inline(always)]
fn samples_4<L: Lanes>(l: L, r: [L::V; 8]) -> L::V {
    let zero = l.set1_epi16(0);
    let low = half_to_4::<L, 12>(
        l,
        l.srai_epi32::<2>(l.unpacklo_epi16(zero, r[0])),
        l.unpacklo_epi16(r[1], r[3]),
        l.unpacklo_epi16(r[5], r[7]),
        l.unpacklo_epi16(r[2], r[6]),
    );
    let high = half_to_4::<L, 12>(
        l,
        l.srai_epi32::<2>(l.unpackhi_epi16(zero, r[0])),
        l.unpackhi_epi16(r[1], r[3]),
        l.unpackhi_epi16(r[5], r[7]),
        l.unpackhi_epi16(r[2], r[6]),
    );
    let p = [
        l.packs_epi32(low[0], high[0]),
        l.packs_epi32(low[1], high[1]),
        l.packs_epi32(low[2], high[2]),
        l.packs_epi32(low[3], high[3]),
    ];
    // Converts to columns of four words: two columns per register and lane.
    let (a0, a1) = (l.unpacklo_epi16(p[0], p[1]), l.unpackhi_epi16(p[0], p[1]));
    let (a2, a3) = (l.unpacklo_epi16(p[2], p[3]), l.unpackhi_epi16(p[2], p[3]));
    let (c01, c23) = (l.unpacklo_epi32(a0, a2), l.unpackhi_epi32(a0, a2));
    let (c45, c67) = (l.unpacklo_epi32(a1, a3), l.unpackhi_epi32(a1, a3));
    let d = half_to_4::<L, 19>(
        l,
        l.srai_epi32::<2>(l.unpacklo_epi16(zero, c01)),
        l.unpackhi_epi16(c01, c23),
        l.unpackhi_epi16(c45, c67),
        l.unpacklo_epi16(c23, c67),
    );
    // Converts columns of four rows to rows of four bytes.
    let (x, y) = (l.packs_epi32(d[0], d[2]), l.packs_epi32(d[1], d[3]));
    let (x, y) = (l.unpacklo_epi16(x, y), l.unpackhi_epi16(x, y));
    let (x, y) = (l.unpacklo_epi32(x, y), l.unpackhi_epi32(x, y));
    l.add_epi8(l.packs_epi16(x, y), l.set1_epi8(-128))
}

/// Writes four rows of four samples.
#[inline(always)]
fn put_4(samples: [u64; 2], to: &mut [u8], start: usize, pitch: usize) {
    let Some(to) = to
        .get_mut(start..)
        .and_then(|to| to.get_mut(..3 * pitch + 4))
    else {
        return;
    };
    let [a, b] = samples;
    let rows = [a, a >> 32, b, b >> 32];
    for (line, row) in to.chunks_mut(pitch).zip(rows) {
        if let Some(line) = line.first_chunk_mut::<4>() {
            *line = (row as u32).to_le_bytes();
        }
    }
}

/// The odd part of 2 x 2 samples: half of the words of rows 1 and 3, and of 5 and 7.
#[inline(always)]
fn odd_of_2<L: Lanes>(l: L, r13: L::V, r57: L::V) -> L::V {
    l.add_epi32(sum(l, r13, F3_624, -F1_272), sum(l, r57, F0_850, -F0_720))
}

/// `transform::to2` of two blocks.
#[inline(always)]
pub(super) fn to2<L: Lanes>(
    l: L,
    from: &BlockPair,
    q: &QuantizationTable,
    to: &mut [u8],
    at: PairTarget,
) {
    for block in 0..2 / L::BLOCKS {
        let Some(targets) = targets::<L>(at, block) else {
            return;
        };
        let samples = samples_2(l, dequantized::<L, 8>(l, from, block, q));
        let [first, second] = targets;
        if let Some(start) = first {
            put_2(l.quad::<0>(samples), to, start, at.pitch);
        }
        if let Some(start) = second {
            put_2(l.quad::<2>(samples), to, start, at.pitch);
        }
    }
}

/// 2 x 2 samples at the start of each lane, row by row.
#[inline(always)]
fn samples_2<L: Lanes>(l: L, r: [L::V; 8]) -> L::V {
    let zero = l.set1_epi16(0);
    let round = l.set1_epi32(1 << 12);
    let low = odd_of_2(
        l,
        l.unpacklo_epi16(r[1], r[3]),
        l.unpacklo_epi16(r[5], r[7]),
    );
    let high = odd_of_2(
        l,
        l.unpackhi_epi16(r[1], r[3]),
        l.unpackhi_epi16(r[5], r[7]),
    );
    let even_low = l.srai_epi32::<1>(l.unpacklo_epi16(zero, r[0]));
    let even_high = l.srai_epi32::<1>(l.unpackhi_epi16(zero, r[0]));
    let (even_low, even_high) = (l.add_epi32(even_low, round), l.add_epi32(even_high, round));
    // The two rows of eight columns.
    let first = l.srai_epi32::<13>(l.add_epi32(even_low, low));
    let second = l.srai_epi32::<13>(l.sub_epi32(even_low, low));
    let odd = |row: L::V, high: L::V| {
        // Columns 1, 3, 5 and 7; the others are not used.
        let words = l.packs_epi32(row, l.srai_epi32::<13>(high));
        let factors = [
            0,
            F3_624 as i16,
            0,
            -F1_272 as i16,
            0,
            F0_850 as i16,
            0,
            -F0_720 as i16,
        ];
        l.madd_epi16(words, l.words(&factors))
    };
    let first_odd = odd(first, l.add_epi32(even_high, high));
    let second_odd = odd(second, l.sub_epi32(even_high, high));
    let odd = l.hadd_epi32(first_odd, second_odd);
    let odd = l.hadd_epi32(odd, odd);
    // Column 0 of both rows is not packed to 16 bits in between.
    let even = l.slli_epi32::<15>(l.unpacklo_epi32(first, second));
    let even = l.add_epi32(even, l.set1_epi32(1 << 19));
    let left = l.srai_epi32::<20>(l.add_epi32(even, odd));
    let right = l.srai_epi32::<20>(l.sub_epi32(even, odd));
    let rows = l.unpacklo_epi32(left, right);
    let rows = l.packs_epi32(rows, rows);
    l.add_epi8(l.packs_epi16(rows, rows), l.set1_epi8(-128))
}

/// Writes two rows of two samples.
#[inline(always)]
fn put_2(samples: u64, to: &mut [u8], start: usize, pitch: usize) {
    let [a, b, c, d, ..] = samples.to_le_bytes();
    for (start, row) in [(start, [a, b]), (start + pitch, [c, d])] {
        if let Some(to) = to.get_mut(start..start + 2) {
            to.copy_from_slice(&row);
        }
    }
}
