//! The inverse transform of two blocks to 8 x 8 samples, one block in each lane.
//!
//! The arithmetic is that of `super::super::transform`, in the order of libjpeg-turbo's SIMD.

use super::super::blocks::{BlockPair, PairTarget};
use super::super::frame::QuantizationTable;
use super::super::transform::{self, fix::*};
use super::lanes::Lanes;
use super::words::{dequantized, is_absurd, sum, targets};

/// Combines even and odd parts to eight values, rounded off by `BITS`. `even` includes the
/// rounding.
#[inline(always)]
fn butterfly<L: Lanes, const BITS: i32>(l: L, even: [L::V; 4], odd: [L::V; 4]) -> [L::V; 8] {
    let up = |i: usize| l.srai_epi32::<BITS>(l.add_epi32(even[i], odd[i]));
    let down = |i: usize| l.srai_epi32::<BITS>(l.sub_epi32(even[i], odd[i]));
    [
        up(0),
        up(1),
        up(2),
        up(3),
        down(3),
        down(2),
        down(1),
        down(0),
    ]
}

/// `islow` of `transform` for half of the words of eight rows.
#[inline(always)]
fn half<L: Lanes, const BITS: i32>(l: L, [r26, s, d, z34, r71, r53]: [L::V; 6]) -> [L::V; 8] {
    let round = l.set1_epi32(1 << (BITS - 1));
    let (t0, t1) = (l.add_epi32(s, round), l.add_epi32(d, round));
    let t2 = sum(l, r26, F0_541, F0_541 - F1_847);
    let t3 = sum(l, r26, F0_541 + F0_765, F0_541);
    let z3 = sum(l, z34, F1_175 - F1_961, F1_175);
    let z4 = sum(l, z34, F1_175, F1_175 - F0_390);
    let odd = [
        l.add_epi32(sum(l, r71, -F0_899, F1_501 - F0_899), z4),
        l.add_epi32(sum(l, r53, -F2_562, F3_072 - F2_562), z3),
        l.add_epi32(sum(l, r53, F2_053 - F2_562, -F2_562), z4),
        l.add_epi32(sum(l, r71, F0_298 - F0_899, -F0_899), z3),
    ];
    butterfly::<L, BITS>(
        l,
        [
            l.add_epi32(t0, t3),
            l.add_epi32(t1, t2),
            l.sub_epi32(t1, t2),
            l.sub_epi32(t0, t3),
        ],
        odd,
    )
}

/// A pass over eight rows of words.
#[inline(always)]
fn pass<L: Lanes, const BITS: i32>(l: L, r: [L::V; 8]) -> [L::V; 8] {
    let zero = l.set1_epi16(0);
    let s = l.add_epi16(r[0], r[4]);
    let d = l.sub_epi16(r[0], r[4]);
    let z3 = l.add_epi16(r[7], r[3]);
    let z4 = l.add_epi16(r[5], r[1]);
    let low = half::<L, BITS>(
        l,
        [
            l.unpacklo_epi16(r[2], r[6]),
            l.srai_epi32::<3>(l.unpacklo_epi16(zero, s)),
            l.srai_epi32::<3>(l.unpacklo_epi16(zero, d)),
            l.unpacklo_epi16(z3, z4),
            l.unpacklo_epi16(r[7], r[1]),
            l.unpacklo_epi16(r[5], r[3]),
        ],
    );
    let high = half::<L, BITS>(
        l,
        [
            l.unpackhi_epi16(r[2], r[6]),
            l.srai_epi32::<3>(l.unpackhi_epi16(zero, s)),
            l.srai_epi32::<3>(l.unpackhi_epi16(zero, d)),
            l.unpackhi_epi16(z3, z4),
            l.unpackhi_epi16(r[7], r[1]),
            l.unpackhi_epi16(r[5], r[3]),
        ],
    );
    pack(l, low, high)
}

#[inline(always)]
fn pack<L: Lanes>(l: L, low: [L::V; 8], high: [L::V; 8]) -> [L::V; 8] {
    [
        l.packs_epi32(low[0], high[0]),
        l.packs_epi32(low[1], high[1]),
        l.packs_epi32(low[2], high[2]),
        l.packs_epi32(low[3], high[3]),
        l.packs_epi32(low[4], high[4]),
        l.packs_epi32(low[5], high[5]),
        l.packs_epi32(low[6], high[6]),
        l.packs_epi32(low[7], high[7]),
    ]
}

/// Like `half`, for rows of which the last four are zero: row 0 with 13 bits of fraction, row 2 and
/// zeros, rows 1 and 3.
#[inline(always)]
fn half_of_four<L: Lanes, const BITS: i32>(l: L, r0: L::V, r2: L::V, r13: L::V) -> [L::V; 8] {
    let t = l.add_epi32(r0, l.set1_epi32(1 << (BITS - 1)));
    let t2 = sum(l, r2, F0_541, 0);
    let t3 = sum(l, r2, F0_541 + F0_765, 0);
    let odd = [
        sum(l, r13, F1_501 - F0_899 + F1_175 - F0_390, F1_175),
        sum(l, r13, F1_175, F3_072 - F2_562 + F1_175 - F1_961),
        sum(l, r13, F1_175 - F0_390, F1_175 - F2_562),
        sum(l, r13, F1_175 - F0_899, F1_175 - F1_961),
    ];
    butterfly::<L, BITS>(
        l,
        [
            l.add_epi32(t, t3),
            l.add_epi32(t, t2),
            l.sub_epi32(t, t2),
            l.sub_epi32(t, t3),
        ],
        odd,
    )
}

/// Transposes eight rows of words in each lane.
#[inline(always)]
fn transpose<L: Lanes>(l: L, r: [L::V; 8]) -> [L::V; 8] {
    let a = [
        l.unpacklo_epi16(r[0], r[1]),
        l.unpackhi_epi16(r[0], r[1]),
        l.unpacklo_epi16(r[2], r[3]),
        l.unpackhi_epi16(r[2], r[3]),
        l.unpacklo_epi16(r[4], r[5]),
        l.unpackhi_epi16(r[4], r[5]),
        l.unpacklo_epi16(r[6], r[7]),
        l.unpackhi_epi16(r[6], r[7]),
    ];
    let b = [
        l.unpacklo_epi32(a[0], a[2]),
        l.unpackhi_epi32(a[0], a[2]),
        l.unpacklo_epi32(a[4], a[6]),
        l.unpackhi_epi32(a[4], a[6]),
        l.unpacklo_epi32(a[1], a[3]),
        l.unpackhi_epi32(a[1], a[3]),
        l.unpacklo_epi32(a[5], a[7]),
        l.unpackhi_epi32(a[5], a[7]),
    ];
    [
        l.unpacklo_epi64(b[0], b[2]),
        l.unpackhi_epi64(b[0], b[2]),
        l.unpacklo_epi64(b[1], b[3]),
        l.unpackhi_epi64(b[1], b[3]),
        l.unpacklo_epi64(b[4], b[6]),
        l.unpackhi_epi64(b[4], b[6]),
        l.unpacklo_epi64(b[5], b[7]),
        l.unpackhi_epi64(b[5], b[7]),
    ]
}

/// Writes 8 x 8 samples of each lane. `d` holds their columns as words.
#[inline(always)]
fn store_8<L: Lanes>(l: L, d: [L::V; 8], to: &mut [u8], targets: [Option<usize>; 2], pitch: usize) {
    let a = l.packs_epi16(d[0], d[4]);
    let b = l.packs_epi16(d[1], d[5]);
    let c = l.packs_epi16(d[2], d[6]);
    let d = l.packs_epi16(d[3], d[7]);
    let (ab, ef) = (l.unpacklo_epi8(a, b), l.unpackhi_epi8(a, b));
    let (cd, gh) = (l.unpacklo_epi8(c, d), l.unpackhi_epi8(c, d));
    let (a0, a4) = (l.unpacklo_epi16(ab, cd), l.unpackhi_epi16(ab, cd));
    let (e0, e4) = (l.unpacklo_epi16(ef, gh), l.unpackhi_epi16(ef, gh));
    // Two rows of each lane.
    let rows = [
        l.unpacklo_epi32(a0, e0),
        l.unpackhi_epi32(a0, e0),
        l.unpacklo_epi32(a4, e4),
        l.unpackhi_epi32(a4, e4),
    ];
    let center = l.set1_epi8(-128);
    let rows = [
        l.add_epi8(rows[0], center),
        l.add_epi8(rows[1], center),
        l.add_epi8(rows[2], center),
        l.add_epi8(rows[3], center),
    ];
    let [first, second] = targets;
    if let Some(to) = first.and_then(|start| to.get_mut(start..)) {
        for (i, row) in rows.into_iter().enumerate() {
            put_8(l.quad::<0>(row), to, 2 * i * pitch);
            put_8(l.quad::<1>(row), to, (2 * i + 1) * pitch);
        }
    }
    if let Some(to) = second.and_then(|start| to.get_mut(start..)) {
        for (i, row) in rows.into_iter().enumerate() {
            put_8(l.quad::<2>(row), to, 2 * i * pitch);
            put_8(l.quad::<3>(row), to, (2 * i + 1) * pitch);
        }
    }
}

/// Writes a row of eight samples.
#[inline(always)]
fn put_8(row: u64, to: &mut [u8], at: usize) {
    let line = to.get_mut(at..);
    if let Some(line) = line.and_then(|line| line.first_chunk_mut::<8>()) {
        *line = row.to_le_bytes();
    }
}

/// `transform::to8` of two blocks.
#[inline(always)]
pub(super) fn to8<L: Lanes>(
    l: L,
    from: &BlockPair,
    q: &QuantizationTable,
    end: u64,
    to: &mut [u8],
    at: PairTarget,
) {
    if end <= 1 {
        return transform::flat(from, q, to, at);
    }
    for block in 0..2 / L::BLOCKS {
        let Some(targets) = targets::<L>(at, block) else {
            return;
        };
        let [first] = dequantized::<L, 1>(l, from, block, q);
        if is_absurd(l, first) {
            return transform::pair::<8>(from, q, to, at, transform::to8);
        }
        let columns = if end <= 10 {
            of_four(l, dequantized::<L, 4>(l, from, block, q))
        } else {
            let rows = pass::<L, 11>(l, dequantized::<L, 8>(l, from, block, q));
            pass::<L, 18>(l, transpose(l, rows))
        };
        store_8(l, columns, to, targets, at.pitch);
    }
}

/// The columns of 8 x 8 samples. Only the upper left 4 x 4 coefficients are not zero.
#[inline(always)]
fn of_four<L: Lanes>(l: L, r: [L::V; 4]) -> [L::V; 8] {
    let zero = l.set1_epi16(0);
    // Row i, columns 0 to 3.
    let low = half_of_four::<L, 11>(
        l,
        l.srai_epi32::<3>(l.unpacklo_epi16(zero, r[0])),
        l.unpacklo_epi16(r[2], zero),
        l.unpacklo_epi16(r[1], r[3]),
    );
    // Words of row i, then of row i + 4.
    let p = [
        l.packs_epi32(low[0], low[4]),
        l.packs_epi32(low[1], low[5]),
        l.packs_epi32(low[2], low[6]),
        l.packs_epi32(low[3], low[7]),
    ];
    let a0 = l.unpacklo_epi16(p[0], p[1]);
    let a1 = l.unpackhi_epi16(p[0], p[1]);
    let a2 = l.unpacklo_epi16(p[2], p[3]);
    let a3 = l.unpackhi_epi16(p[2], p[3]);
    let (b0, b1) = (l.unpacklo_epi32(a0, a2), l.unpackhi_epi32(a0, a2));
    let (b2, b3) = (l.unpacklo_epi32(a1, a3), l.unpackhi_epi32(a1, a3));
    // Columns 0 to 3, rows as words.
    let (c0, c1) = (l.unpacklo_epi64(b0, b2), l.unpackhi_epi64(b0, b2));
    let (c2, c3) = (l.unpacklo_epi64(b1, b3), l.unpackhi_epi64(b1, b3));
    let low = half_of_four::<L, 18>(
        l,
        l.srai_epi32::<3>(l.unpacklo_epi16(zero, c0)),
        l.unpacklo_epi16(c2, zero),
        l.unpacklo_epi16(c1, c3),
    );
    let high = half_of_four::<L, 18>(
        l,
        l.srai_epi32::<3>(l.unpackhi_epi16(zero, c0)),
        l.unpackhi_epi16(c2, zero),
        l.unpackhi_epi16(c1, c3),
    );
    pack(l, low, high)
}
