//! Reads tables of the format FlatBuffers, in which Arrow writes its messages.
//!
//! Runs in the consumer, on untrusted bytes. Every offset is checked where it is used, and nothing
//! is allocated. Each table costs the reader one step, so a text that refers to itself ends at
//! the limit of depth of its reader.

/// A table in the bytes of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A vector in the bytes of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatVector<'a> {
    bytes: &'a [u8],
    /// Offset of the first element.
    at: usize,
    len: usize,
}

impl<'a> FlatTable<'a> {
    /// The table that a message begins with.
    pub(super) fn root(bytes: &'a [u8]) -> Option<Self> {
        let at = word(bytes, 0)? as usize;
        Some(Self { bytes, at })
    }

    /// The offset of a field. `Some(None)` if the table does not have it.
    fn place(&self, field: usize) -> Option<Option<usize>> {
        let back = word(self.bytes, self.at)? as i32;
        let vtable = i64::try_from(self.at).ok()? - i64::from(back);
        let vtable = usize::try_from(vtable).ok()?;
        let length = usize::from(half(self.bytes, vtable)?);
        let entry = 4 + 2 * field;
        if entry + 2 > length {
            return Some(None);
        }
        let offset = usize::from(half(self.bytes, vtable.checked_add(entry)?)?);
        Some((offset > 0).then(|| self.at + offset))
    }

    /// Whether the table has a field.
    pub(super) fn has(&self, field: usize) -> Option<bool> {
        self.place(field).map(|place| place.is_some())
    }

    fn bytes_of<const N: usize>(&self, field: usize) -> Option<[u8; N]> {
        match self.place(field)? {
            None => Some([0; N]),
            Some(at) => array(self.bytes, at),
        }
    }

    /// A number of one byte. 0 if it is absent.
    pub(super) fn byte(&self, field: usize) -> Option<u8> {
        self.bytes_of::<1>(field).map(|[byte]| byte)
    }

    pub(super) fn short(&self, field: usize) -> Option<i16> {
        self.bytes_of(field).map(i16::from_le_bytes)
    }

    pub(super) fn int(&self, field: usize) -> Option<i32> {
        self.bytes_of(field).map(i32::from_le_bytes)
    }

    pub(super) fn long(&self, field: usize) -> Option<i64> {
        self.bytes_of(field).map(i64::from_le_bytes)
    }

    /// The offset that a field refers to. `Some(None)` if the field is absent.
    fn target(&self, field: usize) -> Option<Option<usize>> {
        let Some(at) = self.place(field)? else {
            return Some(None);
        };
        let to = at.checked_add(word(self.bytes, at)? as usize)?;
        Some(Some(to))
    }

    /// A table. `Some(None)` if the field is absent.
    pub(super) fn table(&self, field: usize) -> Option<Option<Self>> {
        let at = self.target(field)?;
        Some(at.map(|at| Self {
            bytes: self.bytes,
            at,
        }))
    }

    /// A vector of elements of `size` bytes. Empty if the field is absent.
    pub(super) fn vector(&self, field: usize, size: usize) -> Option<FlatVector<'a>> {
        let empty = FlatVector {
            bytes: self.bytes,
            at: 0,
            len: 0,
        };
        let Some(at) = self.target(field)? else {
            return Some(empty);
        };
        let len = word(self.bytes, at)? as usize;
        let at = at.checked_add(4)?;
        let end = at.checked_add(len.checked_mul(size)?)?;
        (end <= self.bytes.len()).then_some(FlatVector {
            bytes: self.bytes,
            at,
            len,
        })
    }

    /// The bytes of a text. Empty if the field is absent.
    pub(super) fn text(&self, field: usize) -> Option<&'a [u8]> {
        let text = self.vector(field, 1)?;
        self.bytes.get(text.at..text.at + text.len)
    }
}

impl<'a> FlatVector<'a> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// An element that is a reference to a table.
    pub(super) fn table(&self, number: usize) -> Option<FlatTable<'a>> {
        let at = self.at.checked_add(number.checked_mul(4)?)?;
        let at = (number < self.len).then_some(at)?;
        let to = at.checked_add(word(self.bytes, at)? as usize)?;
        Some(FlatTable {
            bytes: self.bytes,
            at: to,
        })
    }

    /// An element of two words of 64 bits, which is 16 bytes long.
    pub(super) fn pair(&self, number: usize) -> Option<(i64, i64)> {
        let at = self.at.checked_add(number.checked_mul(16)?)?;
        let at = (number < self.len).then_some(at)?;
        let first = i64::from_le_bytes(array(self.bytes, at)?);
        let second = i64::from_le_bytes(array(self.bytes, at.checked_add(8)?)?);
        Some((first, second))
    }

    /// The first 64 bits of an element of `size` bytes.
    pub(super) fn long(&self, number: usize, size: usize) -> Option<i64> {
        let at = self.at.checked_add(number.checked_mul(size)?)?;
        let at = (number < self.len).then_some(at)?;
        array(self.bytes, at).map(i64::from_le_bytes)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with a byte 7 in field 0, no field 1, and the text `hi` in field 2.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![16, 0, 0, 0];
        // The vtable at 4: its length, the table's length, and three fields.
        bytes.extend([10, 0, 12, 0, 4, 0, 0, 0, 8, 0, 0, 0]);
        // The table at 16.
        bytes.extend([12, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, b'h', b'i', 0, 0]);
        bytes
    }

    #[test]
    fn fields_are_read_by_their_numbers() {
        let bytes = sample();
        let table = FlatTable::root(&bytes).unwrap();
        assert_eq!(table.byte(0), Some(7));
        assert_eq!((table.int(1), table.long(9)), (Some(0), Some(0)));
        assert_eq!(table.text(2), Some(&b"hi"[..]));
        assert_eq!(table.text(5), Some(&b""[..]));
        assert!(table.table(1).unwrap().is_none());
    }

    #[test]
    fn any_bytes_are_read_within_their_bounds() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            if let Some(table) = FlatTable::root(&bytes[..cut]) {
                let _ = (table.byte(0), table.text(2), table.vector(2, 16));
            }
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let Some(table) = FlatTable::root(&changed) else {
                    continue;
                };
                let _ = (table.byte(0), table.long(1), table.text(2));
                if let Some(vector) = table.vector(2, 16) {
                    let _ = (
                        vector.pair(0),
                        vector.table(vector.len()),
                        vector.long(0, 8),
                    );
                }
            }
        }
    }
}
