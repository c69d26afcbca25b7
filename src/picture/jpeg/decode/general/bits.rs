//! The bits of coded data without stuffed bytes, as libjpeg-turbo reads them. Data end at a marker,
//! and zero bits follow (`jpeg_fill_bit_buffer`).

use super::source::{ByteSource, DecodeWarning};

/// A bit position in the coded data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CodedBits {
    /// The next bits, from the top.
    next: u64,
    /// Bits of `next` that count as read.
    pub(super) left: u32,
    /// More bits were requested than the data hold (`insufficient_data`).
    pub(super) is_spent: bool,
}

/// Bits available after a fill, except at the end of the data: enough for a code and its value.
const ENOUGH: u32 = 32;

/// Bits up to which bytes are read one by one. At the end of the data, zeros fill up to it.
const ZEROS: u32 = 57;

impl CodedBits {
    /// Drops the remaining bits of a segment.
    pub(super) fn restart(&mut self, source: &mut ByteSource<'_>) {
        source.dropped |= self.left >= 8;
        (self.next, self.left) = (0, 0);
    }

    /// Reads bits for a code of up to 17 bits and a value of up to 15, if the data have them.
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

    /// Takes up to 32 bits. After [`Self::fill`], 32 bits in all need no further read.
    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32, source: &mut ByteSource<'_>) -> u32 {
        if self.left < bits {
            *self = self.filled(source, bits);
        }
        // Shifts in two steps: with 0 bits, a single shift would be by 64.
        let value = self.next >> 1 >> (63 - bits);
        self.next <<= bits;
        self.left -= bits;
        value as u32
    }

    /// Reads byte by byte. If the data have ended and fewer than `need` bits are left, adds zeros.
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

/// The signed value of `bits` bits, at most 15 (T.81, F.2.2.1, EXTEND).
#[inline(always)]
pub(super) fn extend(value: u32, bits: u32) -> i32 {
    let value = value as i32;
    // With 0 bits the value is 0.
    match value < 1 << bits >> 1 {
        true => value - (1 << bits) + 1,
        false => value,
    }
}
