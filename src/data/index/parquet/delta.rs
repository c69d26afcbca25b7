//! Decodes Parquet's `DELTA_BINARY_PACKED`: the first number, then blocks of differences of a few
//! bits each.
//!
//! Runs in the consumer, on untrusted bytes. Decodes one number at a time and allocates nothing,
//! because a few bytes can hold very many equal numbers.

use crate::data::index::parquet::thrift::{signed, varint};

/// Iterates over the numbers. Ends early if the bytes end or are malformed.
#[derive(Clone)]
pub(super) struct DeltaDecoder<'a> {
    bytes: &'a [u8],
    /// Differences per miniblock.
    small: u64,
    /// Miniblocks per block.
    smalls: u64,
    /// Numbers still to come.
    left: u64,
    /// The last number returned. Before that, the first number.
    number: i64,
    has_begun: bool,
    /// The smallest difference of the block, which is added to each.
    least: i64,
    /// Bits per difference of each remaining miniblock of the block.
    widths: &'a [u8],
    /// Of the current miniblock: differences left, bits of each, and the first bit of the next.
    open: (u64, u32, u64),
}

impl<'a> DeltaDecoder<'a> {
    /// Reads the header. `None` if it is malformed, or states more than `most` numbers.
    pub(super) fn new(mut bytes: &'a [u8], most: u64) -> Option<Self> {
        let mut number = || varint(|| Some(*bytes.split_off_first()?));
        let (block, smalls, left, first) = (number()?, number()?, number()?, number()?);
        let small = block.checked_div(smalls)?;
        // The format requires these multiples.
        let is_even = small > 0 && small.is_multiple_of(32) && block == small * smalls;
        (is_even && block.is_multiple_of(128) && left <= most).then_some(Self {
            bytes,
            small,
            smalls,
            left,
            number: signed(first),
            has_begun: false,
            least: 0,
            widths: &[],
            open: (0, 0, 0),
        })
    }

    /// The bytes after the last number. `None` if the numbers are malformed.
    pub(super) fn remaining_bytes(mut self) -> Option<&'a [u8]> {
        while self.left > 0 {
            self.next()?;
        }
        self.close()?;
        Some(self.bytes)
    }

    /// Skips the rest of the current miniblock, which is padded to its full length.
    fn close(&mut self) -> Option<()> {
        let (left, width, bit) = self.open;
        let bits = bit.checked_add(left.checked_mul(u64::from(width))?)?;
        self.bytes = self.bytes.get(usize::try_from(bits / 8).ok()?..)?;
        self.open = (0, 0, 0);
        Some(())
    }

    fn difference(&mut self) -> Option<i64> {
        if self.open.0 == 0 {
            self.close()?;
            if self.widths.is_empty() {
                self.least = signed(varint(|| Some(*self.bytes.split_off_first()?))?);
                self.widths = self.bytes.split_off(..usize::try_from(self.smalls).ok()?)?;
            }
            let width = u32::from(*self.widths.split_off_first()?);
            if width > 64 {
                return None;
            }
            self.open = (self.small, width, 0);
        }
        let (left, width, bit) = self.open;
        let at = usize::try_from(bit / 8).ok()?;
        let end = usize::try_from((bit + u64::from(width)).div_ceil(8)).ok()?;
        let mut word = [0; 16];
        let bytes = self.bytes.get(at..end)?;
        word[..bytes.len()].copy_from_slice(bytes);
        let mask = (1u128 << width) - 1;
        let raw = u128::from_le_bytes(word) >> (bit % 8) & mask;
        self.open = (left - 1, width, bit + u64::from(width));
        Some(self.least.wrapping_add(raw as u64 as i64))
    }
}

impl Iterator for DeltaDecoder<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        // The first number is in the header.
        if std::mem::replace(&mut self.has_begun, true) {
            self.number = self.number.wrapping_add(self.difference()?);
        }
        Some(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's specification, in blocks of 128 with 4 miniblocks.
    #[test]
    fn numbers_are_those_of_the_formats_page() {
        // 1 to 5: all differences are 1, so they take no bits.
        let equal = [0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0, 7, 8];
        let delta = DeltaDecoder::new(&equal, 5).unwrap();
        assert_eq!(delta.clone().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(delta.remaining_bytes(), Some(&[7, 8][..]));
        // 7, 5, 3, 1, 2, 3, 4, 5: the least difference is -2, and the others have 2 bits.
        let mut mixed = vec![0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 2, 0, 0, 0];
        mixed.extend([0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0, 9]);
        let delta = DeltaDecoder::new(&mixed, 8).unwrap();
        let numbers: Vec<_> = delta.clone().collect();
        assert_eq!(numbers, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert_eq!(delta.remaining_bytes(), Some(&[9][..]));
        // A single number has no block.
        let one = [0x80, 0x01, 0x04, 0x01, 0x03, 6];
        let delta = DeltaDecoder::new(&one, 1).unwrap();
        assert_eq!(delta.clone().collect::<Vec<_>>(), [-2]);
        assert_eq!(delta.remaining_bytes(), Some(&[6][..]));
    }

    #[test]
    fn bytes_that_end_and_counts_without_numbers_are_none() {
        let good = [0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0];
        for cut in 0..good.len() {
            let numbers = DeltaDecoder::new(&good[..cut], 5).map(|d| d.count());
            assert_ne!(numbers, Some(5), "{cut}");
        }
        assert!(DeltaDecoder::new(&good, 4).is_none());
        // No miniblocks; differences of 65 bits; no count; very many miniblocks.
        assert!(DeltaDecoder::new(&[0x80, 0x01, 0x00, 0x05, 0x02], 9).is_none());
        let wide = [0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 65, 0, 0, 0, 0, 0];
        assert_eq!(DeltaDecoder::new(&wide, 9).unwrap().count(), 1);
        assert!(
            DeltaDecoder::new(&wide, 9)
                .unwrap()
                .remaining_bytes()
                .is_none()
        );
        assert!(DeltaDecoder::new(&[0xff; 40], u64::MAX).is_none());
        let block = [&[0x80; 9][..], &[1], &[0x80; 8], &[1], &[5, 2, 2, 0, 0]].concat();
        assert_eq!(DeltaDecoder::new(&block, 9).unwrap().count(), 1);
    }
}
