//! Writes tables of the format FlatBuffers, for the messages of an Arrow file.
//!
//! Runs in the consumer. A table is written before what it refers to, so each reference is filled
//! in when its target is written. Numbers are aligned to their size.

/// A field of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum FlatField {
    /// The table does not have it.
    Absent,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// A table, a text or a vector, which is written later.
    Reference,
}

impl FlatField {
    fn bytes(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Int(_) | Self::Reference => 4,
            Self::Long(_) => 8,
        }
    }
}

/// The bytes of a message so far.
#[derive(Debug, Default)]
pub(super) struct FlatWriter {
    bytes: Vec<u8>,
}

impl FlatWriter {
    /// A message, whose first reference is to its table.
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; 4] }
    }

    /// The offset of the reference to the table that the message begins with.
    pub(super) const ROOT: usize = 0;

    /// Writes the table that the reference at `from` is to. Returns the offsets of its fields.
    pub(super) fn table<const N: usize>(
        &mut self,
        from: usize,
        fields: [FlatField; N],
    ) -> [usize; N] {
        // The list of fields comes before the table. A table begins with 4 bytes, after which
        // numbers of 8 bytes follow.
        let listed = 4 + 2 * N;
        let at = self.aligned(listed, 8, 4);
        let mut offsets = [0usize; N];
        let mut end = 4;
        for size in [8, 4, 2, 1] {
            for (offset, field) in offsets.iter_mut().zip(fields) {
                if field.bytes() == size {
                    *offset = end;
                    end += size;
                }
            }
        }
        for half in [listed, end].into_iter().chain(offsets) {
            self.bytes.extend((half as u16).to_le_bytes());
        }
        self.bytes.extend((listed as i32).to_le_bytes());
        self.bytes.resize(at + end, 0);
        for (offset, field) in offsets.iter().zip(fields) {
            let to = &mut self.bytes[at + offset..][..field.bytes()];
            match field {
                FlatField::Absent | FlatField::Reference => {}
                FlatField::Byte(value) => to.copy_from_slice(&[value]),
                FlatField::Short(value) => to.copy_from_slice(&value.to_le_bytes()),
                FlatField::Int(value) => to.copy_from_slice(&value.to_le_bytes()),
                FlatField::Long(value) => to.copy_from_slice(&value.to_le_bytes()),
            }
        }
        self.refer(from, at);
        offsets.map(|offset| at + offset)
    }

    /// Writes the text that the reference at `from` is to.
    pub(super) fn text(&mut self, from: usize, text: &str) {
        let at = self.count(from, text.len());
        self.bytes.truncate(at);
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// Writes a vector of `count` references, to which the one at `from` is. Returns the offset of
    /// the first.
    pub(super) fn references(&mut self, from: usize, count: usize) -> usize {
        let at = self.count(from, count);
        self.bytes.resize(at + 4 * count, 0);
        at
    }

    /// Writes a vector of elements of whole words of 64 bits, to which the reference at `from` is.
    pub(super) fn words<const N: usize>(&mut self, from: usize, elements: &[[u64; N]]) {
        self.count(from, elements.len());
        let words = elements.iter().flatten();
        self.bytes.extend(words.flat_map(|word| word.to_le_bytes()));
    }

    /// Writes the count of a vector. Returns the offset of its first element.
    fn count(&mut self, from: usize, count: usize) -> usize {
        let at = self.aligned(0, 8, 4);
        self.refer(from, at);
        self.bytes.extend((count as u32).to_le_bytes());
        at + 4
    }

    /// Fills up, so that the place after `before` further bytes has this remainder.
    fn aligned(&mut self, before: usize, unit: usize, remainder: usize) -> usize {
        while (self.bytes.len() + before) % unit != remainder {
            self.bytes.push(0);
        }
        self.bytes.len() + before
    }

    fn refer(&mut self, from: usize, to: usize) {
        self.bytes[from..from + 4].copy_from_slice(&((to - from) as u32).to_le_bytes());
    }

    /// The bytes of the message, a multiple of 8.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::arrow::flatbuffer::FlatTable;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = FlatWriter::new();
        let [_, _, _, long, text, list] = writer.table(
            FlatWriter::ROOT,
            [
                FlatField::Byte(7),
                FlatField::Short(-2),
                FlatField::Absent,
                FlatField::Long(i64::MIN),
                FlatField::Reference,
                FlatField::Reference,
            ],
        );
        writer.text(text, "é");
        let first = writer.references(list, 2);
        writer.table(first, [FlatField::Int(-9)]);
        let [pairs] = writer.table(first + 4, [FlatField::Reference]);
        writer.words(pairs, &[[1, 2], [3, u64::MAX]]);
        let bytes = writer.finish();
        assert!(bytes.len().is_multiple_of(8) && long.is_multiple_of(8));
        let table = FlatTable::root(&bytes).unwrap();
        assert_eq!((table.byte(0), table.short(1)), (Some(7), Some(-2)));
        assert_eq!((table.long(2), table.long(3)), (Some(0), Some(i64::MIN)));
        assert_eq!(table.text(4), Some("é".as_bytes()));
        let list = table.vector(5, 4).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list.table(0).unwrap().int(0), Some(-9));
        let pairs = list.table(1).unwrap().vector(0, 16).unwrap();
        assert_eq!(pairs.pair(1), Some((3, -1)));
    }
}
