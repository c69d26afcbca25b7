//! Unstuffing, upsampling and colour, one register of samples at a time. The last step of a row may
//! write past it. If there is no room for that, the rest is done one sample at a time.

use super::super::filters as plain;
use super::lanes::Lanes;
use super::words::sum;

/// Bytes of a register.
const fn size<L: Lanes>() -> usize {
    16 * L::BLOCKS
}

/// Copies a register at a time, up to the first 0xff. Returns the number of bytes before it.
#[inline(always)]
pub(super) fn copy_clean<L: Lanes>(l: L, from: &[u8], to: &mut [u8]) -> usize {
    let mut clean = 0;
    // Not by iterators of chunks: each stuffed byte would need a new one, which costs a division.
    while let (Some(from), Some(to)) = (
        from.get(clean..clean + size::<L>()),
        to.get_mut(clean..clean + size::<L>()),
    ) {
        let Some(bytes) = l.bytes(from) else { break };
        l.store(to, bytes);
        let found = l.signs(l.cmpeq_epi8(bytes, l.set1_epi8(-1)));
        if found != 0 {
            return clean + found.trailing_zeros() as usize;
        }
        clean += size::<L>();
    }
    clean
}

/// Half a register of samples from `at` on, as words.
#[inline(always)]
fn words<L: Lanes>(l: L, row: &[u8], at: usize) -> Option<L::V> {
    l.widened(row.get(at..)?)
}

#[inline(always)]
fn triple<L: Lanes>(l: L, value: L::V) -> L::V {
    l.add_epi16(value, l.add_epi16(value, value))
}

/// Two blends of each of the sums, interleaved as bytes.
#[inline(always)]
fn blend<L: Lanes, const BITS: i32>(
    l: L,
    [left, middle, right]: [L::V; 3],
    [first, second]: [i16; 2],
) -> L::V {
    let middle = triple(l, middle);
    let even = l.add_epi16(l.add_epi16(middle, left), l.set1_epi16(first));
    let odd = l.add_epi16(l.add_epi16(middle, right), l.set1_epi16(second));
    let odd = l.slli_epi16::<8>(l.srli_epi16::<BITS>(odd));
    l.or(l.srli_epi16::<BITS>(even), odd)
}

/// `filters::across`.
#[inline(always)]
pub(super) fn across<L: Lanes>(l: L, near: &[u8], count: usize, to: &mut [u8]) {
    let mut at = 0;
    while at < count {
        let to = to.get_mut(2 * at..).unwrap_or_default();
        let sums = (
            words(l, near, at),
            words(l, near, at + 1),
            words(l, near, at + 2),
        );
        let is_done = match sums {
            (Some(left), Some(middle), Some(right)) => {
                l.store(to, blend::<L, 2>(l, [left, middle, right], [1, 2]))
            }
            _ => false,
        };
        if !is_done {
            return plain::across(near.get(at..).unwrap_or_default(), count - at, to);
        }
        at += size::<L>() / 2;
    }
}

/// Three times the near samples plus the far ones, half a register of each.
#[inline(always)]
fn sums<L: Lanes>(l: L, near: &[u8], far: &[u8], at: usize) -> Option<L::V> {
    Some(l.add_epi16(triple(l, words(l, near, at)?), words(l, far, at)?))
}

/// `filters::both`.
#[inline(always)]
pub(super) fn both<L: Lanes>(l: L, near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
    let mut at = 0;
    let mut left = sums(l, near, far, 0);
    while at < count {
        let to = to.get_mut(2 * at..).unwrap_or_default();
        // They are the left ones of the next step.
        let next = sums(l, near, far, at + size::<L>() / 2);
        let is_done = match (left, next) {
            (Some(own), Some(behind)) => {
                let middle = l.slide::<2>(own, behind);
                let right = l.slide::<4>(own, behind);
                l.store(to, blend::<L, 4>(l, [own, middle, right], [8, 7]))
            }
            _ => false,
        };
        if !is_done {
            let (near, far) = (near.get(at..), far.get(at..));
            let (near, far) = (near.unwrap_or_default(), far.unwrap_or_default());
            return plain::both(near, far, count - at, to);
        }
        left = next;
        at += size::<L>() / 2;
    }
}

/// RGB of pixels as words, not yet clamped. Factors are split or halved to fit in words.
#[inline(always)]
fn rgb<L: Lanes>(l: L, y: L::V, cb: L::V, cr: L::V) -> [L::V; 3] {
    let one = l.set1_epi16(1);
    let half = l.set1_epi32(1 << 15);
    let (cb2, cr2) = (l.add_epi16(cb, cb), l.add_epi16(cr, cr));
    // 1.402 is 1 + 0.402, and 1.772 is 2 - 0.228.
    let red = l.mulhi_epi16(cr2, l.set1_epi16(26345));
    let red = l.srai_epi16::<1>(l.add_epi16(red, one));
    let blue = l.mulhi_epi16(cb2, l.set1_epi16(-14942));
    let blue = l.srai_epi16::<1>(l.add_epi16(blue, one));
    // 0.71414 is 1 - 0.28586.
    let green = |pairs: L::V| {
        let sum = sum(l, pairs, -22554, 18734);
        l.srai_epi32::<16>(l.add_epi32(sum, half))
    };
    let green = l.packs_epi32(
        green(l.unpacklo_epi16(cb, cr)),
        green(l.unpackhi_epi16(cb, cr)),
    );
    [
        l.add_epi16(l.add_epi16(y, cr), red),
        l.add_epi16(y, l.sub_epi16(green, cr)),
        l.add_epi16(l.add_epi16(y, cb2), blue),
    ]
}

/// Shuffles that spread planes into 48 bytes of RGB: 16 bytes for each third and plane.
const SPREAD: [[[u8; 16]; 3]; 3] = {
    let mut spread = [[[0x80; 16]; 3]; 3];
    let mut i = 0;
    while i < 48 {
        spread[i / 16][i % 3][i % 16] = (i / 3) as u8;
        i += 1;
    }
    spread
};

/// Writes the pixels of one register of each of three planes: three registers.
#[inline(always)]
fn put<L: Lanes>(l: L, planes: [L::V; 3], to: &mut [u8]) {
    let (to, _) = to.as_chunks_mut::<16>();
    for (third, masks) in SPREAD.iter().enumerate() {
        let mut bytes = l.set1_epi8(0);
        for (plane, mask) in planes.into_iter().zip(masks) {
            bytes = l.or(bytes, l.shuffle(plane, mask));
        }
        l.store_lanes(to, [third, third + 3], bytes);
    }
}

/// A register of samples of each row; `None` near the end of a row, or without room for the pixels.
#[inline(always)]
fn samples<L: Lanes>(l: L, [a, b, c]: [&[u8]; 3], at: usize, to: &[u8]) -> Option<[L::V; 3]> {
    if to.len() < 3 * size::<L>() {
        return None;
    }
    Some([
        l.bytes(a.get(at..)?)?,
        l.bytes(b.get(at..)?)?,
        l.bytes(c.get(at..)?)?,
    ])
}

/// `filters::ycc_to_rgb`.
#[inline(always)]
pub(super) fn ycc_to_rgb<L: Lanes>(l: L, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    let zero = l.set1_epi16(0);
    let center = l.set1_epi16(128);
    let mut at = 0;
    while at < pixels {
        let to = to.get_mut(3 * at..).unwrap_or_default();
        let Some([y, cb, cr]) = samples(l, rows, at, to) else {
            let rows = rows.map(|row| row.get(at..).unwrap_or_default());
            return plain::ycc_to_rgb(rows, pixels - at, to);
        };
        let low = rgb(
            l,
            l.unpacklo_epi8(y, zero),
            l.sub_epi16(l.unpacklo_epi8(cb, zero), center),
            l.sub_epi16(l.unpacklo_epi8(cr, zero), center),
        );
        let high = rgb(
            l,
            l.unpackhi_epi8(y, zero),
            l.sub_epi16(l.unpackhi_epi8(cb, zero), center),
            l.sub_epi16(l.unpackhi_epi8(cr, zero), center),
        );
        let planes = [
            l.packus_epi16(low[0], high[0]),
            l.packus_epi16(low[1], high[1]),
            l.packus_epi16(low[2], high[2]),
        ];
        put(l, planes, to);
        at += size::<L>();
    }
}

/// `filters::interleave`.
#[inline(always)]
pub(super) fn interleave<L: Lanes>(l: L, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
    let mut at = 0;
    while at < pixels {
        let to = to.get_mut(3 * at..).unwrap_or_default();
        let Some(planes) = samples(l, rows, at, to) else {
            let rows = rows.map(|row| row.get(at..).unwrap_or_default());
            return plain::interleave(rows, pixels - at, to);
        };
        put(l, planes, to);
        at += size::<L>();
    }
}
