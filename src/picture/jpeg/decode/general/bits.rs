//! The bits of coded data, without stuffed bytes, as libjpeg-turbo reads them: a marker ends
//! them, and then come zeros (`jpeg_fill_bit_buffer`).

use super::source::{ByteSource, DecodeWarning};

/// A place between two bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CodedBits {
    /// The next bits, from the top.
    next: u64,
    /// How many of them are counted.
    pub(super) left: u32,
    /// More bits were taken than there are (`insufficient_data`).
    pub(super) is_spent: bool,
}

/// Bits after a fill, but at the end of the data: enough for a code and its value.
const ENOUGH: u32 = 32;

/// Bits that the buffer has when the data are over.
const ZEROS: u32 = 57;

impl CodedBits {
    /// Drops the bits that are left of a segment.
    pub(super) fn restart(&mut self, source: &mut ByteSource<'_>) {
        source.dropped |= self.left >= 8;
        (self.next, self.left) = (0, 0);
    }

    /// Makes a code of up to 17 bits and a value of up to 15 available, if they are there.
    #[inline(always)]
    pub(super) fn fill(&mut self, source: &mut ByteSource<'_>) {
        if self.left >= ENOUGH {
            return;
        }
        match source.clean() {
            Some(number) if source.marker == 0 => {
                self.next |= number >> self.left;
                let bytes = (63 - self.left) / 8;
                source.at += bytes as usize;
                self.left += 8 * bytes;
            }
            _ => *self = self.filled(source, 0),
        }
    }

    /// The next bits; zeros after the end of the data.
    #[inline(always)]
    pub(super) fn peek(self) -> u64 {
        self.next
    }

    /// Takes up to 32 bits, after [`Self::fill`] up to 32 in all.
    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32, source: &mut ByteSource<'_>) -> u32 {
        if self.left < bits {
            *self = self.filled(source, bits);
        }
        // One bit less, and then the rest: there may be none.
        let value = self.next >> 1 >> (63 - bits);
        self.next <<= bits;
        self.left -= bits;
        value as u32
    }

    /// Fills byte by byte. When the data are over and `need` bits are not there, with zeros.
    #[inline(never)]
    fn filled(mut self, source: &mut ByteSource<'_>, need: u32) -> Self {
        if source.marker == 0 && source.clean().is_some() {
            self.fill(source);
        }
        while source.marker == 0 && self.left < ZEROS {
            let Some(byte) = source.coded_byte() else {
                break;
            };
            self.next |= u64::from(byte) << (56 - self.left);
            self.left += 8;
        }
        if self.left < need {
            if !self.is_spent {
                source.warn(DecodeWarning::Damage);
                self.is_spent = true;
            }
            self.left = ZEROS;
        }
        self
    }
}

/// A value of so many bits, at most 15 (T.81, F.2.2.1, EXTEND).
#[inline(always)]
pub(super) fn extend(value: u32, bits: u32) -> i32 {
    let value = value as i32;
    // Of no bits it is 0.
    match value < 1 << bits >> 1 {
        true => value - (1 << bits) + 1,
        false => value,
    }
}
