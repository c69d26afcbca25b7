//! Reads bits as libjpeg-turbo's two readers of sequential data fetch bytes ahead
//! (`decode_mcu_fast` and `decode_mcu_slow` of `jdhuff.c`).
//!
//! The order matters where several 0xff precede a 0. The slow reader takes them for one 0xff byte,
//! as all other code here does. The fast reader takes them for a marker, and decodes the rest of
//! the MCU with zeros. The slow reader then decodes the MCU again, over the coefficients already
//! there.

use super::entropy::ScanHeader;
use super::source::{ByteSource, DecodeWarning};
use super::tables::{BitSource, SymbolTable};

/// The fast reader needs this many bytes left in the file for each block of an MCU.
const FAST_BYTES: usize = 512;

/// The fast reader fetches bytes if it has at most `FAST_LOW` bits, `FAST_FETCH` at a time.
const FAST_LOW: u32 = 16;
const FAST_FETCH: usize = 6;

/// The slow reader fetches bytes until it has this many bits.
const SLOW_FULL: u32 = 57;

/// Bits of a code that the slow reader looks up at once.
const LOOKUP: u32 = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadAhead {
    /// The next bits, from the top; zeros after the `left` counted bits.
    next: u64,
    left: u32,
    is_spent: bool,
    is_fast: bool,
    met_end: bool,
}

impl ReadAhead {
    /// Whether more bits were requested than the data hold.
    pub(super) fn is_spent(self) -> bool {
        self.is_spent
    }

    /// The fast reader, if libjpeg-turbo tries it here.
    pub(super) fn fast(self, source: &ByteSource<'_>, scan: &ScanHeader) -> Option<Self> {
        let is_tried = source.marker == 0 && source.left() >= FAST_BYTES * scan.blocks;
        is_tried.then_some(Self {
            is_fast: true,
            ..self
        })
    }

    /// The state that the fast reader passes to the slow one; `None` if it met a supposed marker.
    pub(super) fn slow(self) -> Option<Self> {
        (!self.met_end).then_some(Self {
            is_fast: false,
            ..self
        })
    }

    fn push(&mut self, byte: u8) {
        self.next |= u64::from(byte) << (56 - self.left);
        self.left += 8;
    }

    fn fetch_fast(&mut self, source: &mut ByteSource<'_>) {
        if self.left > FAST_LOW {
            return;
        }
        for _ in 0..FAST_FETCH {
            let byte = match (source.peek(0), source.peek(1)) {
                (Some(0xFF), Some(0)) => {
                    source.at += 2;
                    0xFF
                }
                (Some(0xFF) | None, _) => {
                    self.met_end = true;
                    0
                }
                (Some(byte), _) => {
                    source.at += 1;
                    byte
                }
            };
            self.push(byte);
        }
    }

    /// Fetches bytes if fewer than `low` bits are left. If the data have ended and fewer than
    /// `need` bits are left, adds zeros.
    fn fetch_slow(&mut self, source: &mut ByteSource<'_>, low: u32, need: u32) {
        if self.left >= low {
            return;
        }
        while source.marker == 0 && self.left < SLOW_FULL {
            match source.coded_byte() {
                Some(byte) => self.push(byte),
                None => break,
            }
        }
        if self.left < need {
            if !self.is_spent {
                source.warn(DecodeWarning::Damage);
                self.is_spent = true;
            }
            self.left = SLOW_FULL;
        }
    }

    fn take(&mut self, bits: u32) -> u32 {
        let value = self.next >> 1 >> (63 - bits);
        self.next <<= bits;
        self.left = self.left.saturating_sub(bits);
        value as u32
    }
}

impl BitSource for ReadAhead {
    fn symbol(&mut self, table: &SymbolTable, source: &mut ByteSource<'_>) -> u32 {
        if self.is_fast {
            self.fetch_fast(source);
            let (length, symbol) = table.code(self.next);
            self.take(length);
            return symbol;
        }
        self.fetch_slow(source, LOOKUP, 0);
        let mut length = 1;
        if self.left >= LOOKUP {
            let (found, symbol) = table.code(self.next);
            if found <= LOOKUP {
                self.take(found);
                return symbol;
            }
            length = LOOKUP + 1;
        }
        // The bits of the code taken so far, from the top.
        let (mut taken, mut bits) = (0, 0u64);
        loop {
            let more = length - taken;
            self.fetch_slow(source, more, more);
            bits |= u64::from(self.take(more)) << (64 - length);
            taken = length;
            let (found, symbol) = table.code(bits);
            if found <= taken || taken > 16 {
                if found > 16 {
                    source.warn(DecodeWarning::Damage);
                }
                return symbol;
            }
            length += 1;
        }
    }

    fn value(&mut self, bits: u32, source: &mut ByteSource<'_>) -> u32 {
        if bits == 0 {
            return 0;
        }
        match self.is_fast {
            true => self.fetch_fast(source),
            false => self.fetch_slow(source, bits, bits),
        }
        self.take(bits)
    }
}
