//! Decodes Parquet's hybrid of run lengths and bit packing: runs of one number, and groups of
//! eight packed numbers.
//!
//! Runs in the consumer, on untrusted bytes.

use crate::data::index::parquet::thrift::varint;

/// Iterates over numbers of `width` bits. Ends when the bytes end.
pub(super) struct RleDecoder<'a> {
    bytes: &'a [u8],
    width: u32,
    /// The current run: repetitions left, and the number.
    run: (u64, u32),
    /// The current groups: numbers left, and the first bit of the next.
    groups: (u64, u64),
}

impl<'a> RleDecoder<'a> {
    /// `None` if `width` is more than 32.
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Option<Self> {
        (width <= 32).then_some(Self {
            bytes,
            width,
            run: (0, 0),
            groups: (0, 0),
        })
    }

    /// The number of bits of numbers from 0 to `most`.
    pub(super) fn width_of(most: u32) -> u32 {
        32 - most.leading_zeros()
    }

    /// Reads the header of the next run or groups.
    fn begin(&mut self) -> Option<()> {
        let head = varint(|| Some(*self.bytes.split_off_first()?))?;
        let count = head >> 1;
        if head & 1 == 1 {
            // The last group may lack bytes that no number needs, so they are not removed here.
            self.groups = (count.checked_mul(8)?, 0);
            return Some(());
        }
        let mut number = [0; 4];
        let bytes = self.bytes.split_off(..self.width.div_ceil(8) as usize)?;
        number[..bytes.len()].copy_from_slice(bytes);
        self.run = (count, u32::from_le_bytes(number));
        Some(())
    }

    fn of_group(&mut self) -> Option<u32> {
        let (left, bit) = self.groups;
        let at = usize::try_from(bit / 8).ok()?;
        let mut word = [0; 8];
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let here = bytes.len().min(8);
        word[..here].copy_from_slice(&bytes[..here]);
        let end = bit + u64::from(self.width);
        if end.div_ceil(8) > self.bytes.len() as u64 {
            return None;
        }
        let word = u64::from_le_bytes(word) >> (bit % 8);
        let mask = (1u64 << self.width) - 1;
        self.groups = (left - 1, end);
        if left == 1 {
            let used = usize::try_from(end / 8).ok()?;
            self.bytes = self.bytes.get(used..)?;
        }
        Some((word & mask) as u32)
    }
}

impl Iterator for RleDecoder<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            if self.run.0 > 0 {
                self.run.0 -= 1;
                return Some(self.run.1);
            }
            if self.groups.0 > 0 {
                return self.of_group();
            }
            self.begin()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32) -> Vec<u32> {
        RleDecoder::new(bytes, width).unwrap().take(40).collect()
    }

    #[test]
    fn runs_and_groups_follow_each_other() {
        // Three times 5; then 0 to 7 in three bits, as in the format's specification; then 1.
        let bytes = [0x06, 5, 0x03, 0x88, 0xc6, 0xfa, 0x02, 1];
        assert_eq!(all(&bytes, 3), [5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7, 1]);
        assert_eq!(all(&[0x08, 1, 2, 0x00], 9), [513; 4]);
        assert_eq!(RleDecoder::width_of(0), 0);
        assert_eq!(RleDecoder::width_of(2), 2);
        assert_eq!(RleDecoder::width_of(255), 8);
    }

    #[test]
    fn bytes_that_end_and_endless_runs_hang_nobody() {
        assert_eq!(all(&[0x03, 0x88], 3), [0, 1]);
        assert!(all(&[0x06], 3).is_empty());
        assert_eq!(all(&[0x00, 7, 0x02, 1], 3), [1]);
        assert!(all(&[0x01, 0x01, 0x01], 3).is_empty());
        assert_eq!(all(&[0xff; 30], 32).len(), 0);
        let endless = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 9];
        assert_eq!(all(&endless, 8), [9; 40]);
        assert!(RleDecoder::new(&[], 33).is_none());
        // Numbers of no bits take no bytes.
        assert_eq!(all(&[0x03], 0), [0; 8]);
    }
}
