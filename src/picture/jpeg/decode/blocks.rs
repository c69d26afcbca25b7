//! Decodes the coefficients of a block (ITU-T T.81, F.2.2), in full or by their lengths only.
//!
//! The loops have one unpredictable branch, the end of the block. Rare cases are found there, taken
//! back and decoded by hand: long codes, runs of 16 zeros, and lookups past the end of the block.

use super::super::standard_tables::ZIGZAG;
use super::bits::{BitPosition, UnstuffedData};
use super::huffman::{AcTable, DcTable, END, END_ALONE};

/// The coefficients of two blocks: rows of eight of the first and eight of the second. The last
/// rows receive values that have no place.
#[derive(Debug, Clone)]
#[repr(align(32))]
pub(super) struct BlockPair(pub(super) [i16; 256]);

/// Offsets of two blocks of samples in the buffer of planes: the first sample of each. The second
/// may be absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairTarget {
    pub(super) first: usize,
    pub(super) second: Option<usize>,
    pub(super) pitch: usize,
}

/// The place in a [`BlockPair`] of each place in zigzag order, counted from 1, for the first and
/// the second block. They repeat from 129 on, for entries with the end of the block. All other
/// places are in the last rows.
pub(super) type PairPlaces = [[u8; 512]; 2];

pub(super) const PLACES: PairPlaces = places();

const NO_PLACE: u8 = 144;

const fn places() -> PairPlaces {
    let mut places = [[NO_PLACE; 512]; 2];
    let mut i = 0;
    while i < 64 {
        let natural = ZIGZAG[i];
        let place = natural / 8 * 16 + natural % 8;
        places[0][i + 1] = place;
        places[1][i + 1] = place + 8;
        places[0][i + 129] = place;
        places[1][i + 129] = place + 8;
        i += 1;
    }
    places
}

/// An end that no block has: the block is damaged.
pub(super) const BROKEN: u64 = 100;

/// Decodes the difference of a DC coefficient; `None` for an invalid code.
#[inline(always)]
fn difference(bits: &mut BitPosition, data: &UnstuffedData, table: &DcTable) -> Option<i32> {
    let mut entry = table.entry(bits.next);
    bits.fill(data);
    if entry == 0 {
        entry = table.long(bits.next)?;
    }
    let first = bits.next.wrapping_shl(entry >> 8 & 255);
    bits.take(entry & 255);
    // Shifts in two steps: the value may have no bits.
    let shift = entry >> 16;
    let all = (u64::MAX >> 1).wrapping_shr(shift);
    let positive = (first as i64 >> 63) as u64;
    let value = (first >> 1).wrapping_shr(shift);
    Some(value.wrapping_sub(all & !positive) as i32)
}

/// A block's component and tables.
#[derive(Clone, Copy)]
pub(super) struct BlockTables<'a> {
    pub(super) component: usize,
    pub(super) dc: &'a DcTable,
    pub(super) ac: &'a AcTable,
}

/// Decodes a block. All coefficients except DC go to `to`. Returns the DC difference, and one more
/// than the last place with a coefficient: 1 to 64, or more for a damaged block.
#[inline(always)]
pub(super) fn decode(
    bits: &mut BitPosition,
    data: &UnstuffedData,
    codes: BlockTables<'_>,
    places: &[u8; 512],
    to: &mut [i16; 256],
) -> (i32, u64) {
    let mut b = *bits;
    let Some(difference) = difference(&mut b, data, codes.dc) else {
        return (0, BROKEN);
    };
    let end = coefficients(&mut b, data, codes.ac, places, to);
    *bits = b;
    (difference, end)
}

/// Like [`decode`], for several blocks, without storing AC coefficients. Adds to `dc`, the last DC
/// coefficient of each component. Returns false for a damaged block.
#[inline(always)]
pub(super) fn decode_dc(
    bits: &mut BitPosition,
    data: &UnstuffedData,
    blocks: &[BlockTables<'_>],
    dc: &mut [i32; 4],
) -> bool {
    let mut b = *bits;
    for codes in blocks {
        let Some(difference) = difference(&mut b, data, codes.dc) else {
            return false;
        };
        let sum = &mut dc[codes.component & 3];
        *sum = sum.wrapping_add(difference);
        if skip(&mut b, data, codes.ac) >= BROKEN {
            return false;
        }
    }
    *bits = b;
    true
}

/// The value whose bits are at the top of `bits` (T.81, F.2.2.1, EXTEND). `shift` is 64 minus its
/// number of bits, at least one; `all` has that number of bits set.
#[inline(always)]
fn value(bits: u64, shift: u32, all: u64) -> i16 {
    // Subtracts `all`, and adds it again if the first bit is 1.
    let positive = (bits as i64 >> 63) as u64;
    let value = bits.wrapping_shr(shift).wrapping_sub(all);
    value.wrapping_add(all & positive) as i16
}

/// Decodes the AC coefficients of a block. Returns one more than the last place with a coefficient:
/// 1 to 64, or more for a damaged block.
#[inline(always)]
fn coefficients(
    bits: &mut BitPosition,
    data: &UnstuffedData,
    table: &AcTable,
    places: &[u8; 512],
    to: &mut [i16; 256],
) -> u64 {
    let mut b = *bits;
    let mut k = 1u64;
    let mut entry;
    // One lookup. The fill comes after it, so that the lookup does not wait for it.
    macro_rules! step {
        ($($fill:expr)?) => {
            entry = table.pair(b.next);
            $($fill;)?
            let first = (k + u64::from(entry.values >> 16 & 31)) as usize & 511;
            to[usize::from(places[first])] = entry.values as i16;
            let last = b.next.wrapping_shl(entry.step >> 8);
            k += u64::from(entry.step >> 23);
            b.next = b.next.wrapping_shl(entry.step);
            b.count = b.count.wrapping_sub(u64::from(entry.step));
            let last = value(last, entry.step >> 16, u64::from(entry.values >> 21));
            to[usize::from(places[k as usize & 511])] = last;
        };
    }
    loop {
        loop {
            step!(b.fill(data));
            if k >= 64 {
                break;
            }
            step!();
            if k >= 64 {
                break;
            }
        }
        let go = u64::from(entry.step >> 23);
        let is_end = k == 64
            || (k > END && k < END + 64)
            || (go == END_ALONE && k > END_ALONE && k < END_ALONE + 64);
        if is_end {
            break;
        }
        let back = b.back(u64::from(entry.step), data);
        (b, k) = by_hand(back, data, table, k - go, places, Some(to));
        if k >= 64 {
            break;
        }
    }
    *bits = b;
    end_of(k)
}

/// Like [`coefficients`], without values.
#[inline(always)]
fn skip(bits: &mut BitPosition, data: &UnstuffedData, table: &AcTable) -> u64 {
    let mut b = *bits;
    let mut k = 1u64;
    let mut entry;
    macro_rules! step {
        ($($fill:expr)?) => {
            entry = table.length(b.next);
            $($fill;)?
            k += entry >> 8;
            b.next = b.next.wrapping_shl(entry as u32);
            b.count = b.count.wrapping_sub(entry);
        };
    }
    loop {
        loop {
            step!(b.fill(data));
            if k >= 64 {
                break;
            }
            step!();
            if k >= 64 {
                break;
            }
        }
        let go = entry >> 8;
        // 255 means by hand. Other entries from END on hold the end of the block.
        if k == 64 || ((END..255).contains(&go) && k > END && k < END + 64) {
            break;
        }
        let back = b.back(entry, data);
        (b, k) = by_hand(back, data, table, k - go, &PLACES[0], None);
        if k >= 64 {
            break;
        }
    }
    *bits = b;
    end_of(k)
}

fn end_of(k: u64) -> u64 {
    match k {
        64 => 64,
        _ if k > END && k & 63 > 0 => k & 63,
        _ => BROKEN,
    }
}

/// Decodes any AC symbol at place `k`. Returns the next place, plus [`END`] for the end of the
/// block.
#[cold]
#[inline(never)]
fn by_hand(
    mut bits: BitPosition,
    data: &UnstuffedData,
    table: &AcTable,
    k: u64,
    places: &[u8; 512],
    to: Option<&mut [i16; 256]>,
) -> (BitPosition, u64) {
    bits.fill(data);
    let Some((length, size, run)) = table.symbol(bits.next) else {
        return (bits, BROKEN);
    };
    let mut next = k + u64::from(run) + 1;
    if size > 0 {
        let all = (1 << size) - 1;
        let value = value(bits.next.wrapping_shl(length), 64 - size, all);
        if let Some(to) = to {
            to[usize::from(places[next as usize & 511])] = value;
        }
    } else if run < 15 {
        next = k + END;
    }
    bits.take(length + size);
    bits.fill(data);
    (bits, next)
}
