//! Thrift's compact protocol, as far as page headers and the check of a footer need it.
//!
//! Runs in the consumer, on untrusted bytes. Allocates nothing. Returns `None` for missing or
//! malformed values.

/// Deepest nesting of values that are skipped.
const MOST_DEPTH: u32 = 32;

/// Field types, by their numbers in the protocol. A boolean's type is its value.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Reads values from bytes, one after the other.
#[derive(Clone)]
pub(super) struct ThriftReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ThriftReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes read so far.
    pub(super) fn read(&self) -> usize {
        self.at
    }

    /// Calls `field` with the number and the type of each field of a structure. `field` must
    /// read or skip the field's value.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut number = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            number = match head >> 4 {
                0 => self.signed()?,
                more => number + i64::from(more),
            };
            // Field numbers have 16 bits, so the sum above cannot overflow.
            if !(0..=i64::from(i16::MAX)).contains(&number) {
                return None;
            }
            field(self, number, head & 15)?;
        }
    }

    /// Reads an integer of 16, 32 or 64 bits. `None` if `kind` is another type.
    pub(super) fn number(&mut self, kind: u8) -> Option<i64> {
        matches!(kind, 4..=6).then(|| self.signed()).flatten()
    }

    /// The value of a boolean field, which is its type. `None` if `kind` is another type.
    pub(super) fn truth(kind: u8) -> Option<bool> {
        matches!(kind, TRUE | FALSE).then_some(kind == TRUE)
    }

    /// Reads the header of a list: the number of elements and their type.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Some((count, head & 15))
    }

    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, MOST_DEPTH)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            3 => self.take(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8),
            BINARY => {
                let len = self.varint()?;
                self.take(usize::try_from(len).ok()?)
            }
            LIST | 10 => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)
                })
            }
            STRUCT => self.fields(|this, _, kind| this.skip_within(kind, depth)),
            13 => self.take(16),
            _ => None,
        }
    }

    /// Skips one element of a list or map. Each takes at least one byte, so a false count ends
    /// with the bytes.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            TRUE | FALSE => self.take(1),
            other => self.skip_within(other, depth),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        let end = self.at.checked_add(bytes)?;
        self.at = (end <= self.bytes.len()).then_some(end)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        varint(|| self.byte())
    }

    fn signed(&mut self) -> Option<i64> {
        self.varint().map(signed)
    }
}

/// Decodes a zigzag number: the lowest bit is the sign.
pub(super) fn signed(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// Reads a number of 7 bits per byte, the lowest first. `None` if it has more than 10 bytes.
pub(super) fn varint(mut next: impl FnMut() -> Option<u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_with_their_numbers_and_others_are_skipped() {
        // 1: i32 -3; 3: a list of two binaries; 4: true; 20: i64 300.
        let bytes = [
            0x15, 0x05, 0x29, 0x28, 0x01, b'a', 0x00, 0x11, 0x06, 0x28, 0xd8, 0x04, 0,
        ];
        let mut seen = Vec::new();
        let mut reader = ThriftReader::new(&bytes);
        let read = reader.fields(|this, number, kind| {
            match kind {
                4..=6 => seen.push((number, this.number(kind)?)),
                kind => {
                    seen.push((number, i64::from(kind)));
                    this.skip(kind)?;
                }
            }
            Some(())
        });
        assert_eq!(read, Some(()));
        assert_eq!(seen, [(1, -3), (3, 9), (4, 1), (20, 300)]);
        assert_eq!(reader.read(), bytes.len());
        for cut in 0..bytes.len() {
            let mut reader = ThriftReader::new(&bytes[..cut]);
            assert_eq!(reader.fields(|this, _, kind| this.skip(kind)), None);
        }
    }

    #[test]
    fn what_is_deep_or_endless_is_malformed() {
        let deep = [0x1c; 1000];
        assert_eq!(ThriftReader::new(&deep).skip(STRUCT), None);
        // A list of 2^63 structures in ten bytes.
        let long = [0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(ThriftReader::new(&long).skip(LIST), None);
        assert_eq!(ThriftReader::new(&[0xff; 20]).skip(BINARY), None);
    }
}
