//! The arrays of a record batch: where their buffers are in the file.
//!
//! Runs in the consumer, on untrusted bytes. A message lists the buffers of all arrays, with those
//! inside of an array after it. So the arrays before the wanted one are counted, and not kept.
//! A compressed buffer begins with its length, which is read here.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::data::arrow::flatbuffer::{FlatTable, FlatVector};
use crate::data::arrow::schema::{ArrowField, ArrowType};
use crate::data::frame_header::FRAME_HEADER;
use crate::data::packed_page::{PackedPage, PageCodec};

/// A range of the file, or a packed part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferPlace {
    pub(super) at: u64,
    /// Its length, unpacked.
    pub(super) bytes: u64,
    /// What its values are parts of, if it is packed.
    pub(super) page: Option<PackedPage>,
}

impl BufferPlace {
    /// Reads the length that a buffer of a compressed batch begins with.
    fn open(&mut self, file: &File, codec: PageCodec) -> Result<(), Option<String>> {
        if self.bytes == 0 {
            return Ok(());
        }
        let packed = self.bytes.checked_sub(8).ok_or(None)?;
        // The header of the frame follows the length.
        let mut begin = [0; 8 + FRAME_HEADER];
        let begin =
            &mut begin[..8 + FRAME_HEADER.min(usize::try_from(packed).unwrap_or(usize::MAX))];
        let read = file.read_exact_at(begin, self.at);
        read.map_err(|e| Some(format!("cannot be read at byte {}: {e}", self.at)))?;
        let (word, header) = begin.split_first_chunk::<8>().ok_or(None)?;
        let at = self.at + 8;
        *self = match i64::from_le_bytes(*word) {
            // Stored as it is.
            -1 => Self {
                at,
                bytes: packed,
                page: None,
            },
            length => {
                let unpacked = u64::try_from(length).map_err(|_| None)?;
                Self {
                    at,
                    bytes: unpacked,
                    page: Some(PackedPage::new(at, packed, unpacked, codec).with_header(header)),
                }
            }
        };
        Ok(())
    }
}

/// An array of a record batch.
#[derive(Debug, Clone)]
pub(super) struct ArrayPlace {
    pub(super) rows: u64,
    /// Whether a value may be missing.
    pub(super) has_nulls: bool,
    /// Its buffers, without those of its children. The first has a bit for each value that is
    /// there, or is empty.
    pub(super) buffers: Vec<BufferPlace>,
    pub(super) children: Vec<ArrayPlace>,
}

impl ArrayPlace {
    /// Reads the lengths of all buffers of a compressed batch.
    fn open(&mut self, file: &File, codec: PageCodec) -> Result<(), Option<String>> {
        for buffer in &mut self.buffers {
            buffer.open(file, codec)?;
        }
        let mut children = self.children.iter_mut();
        children.try_for_each(|child| child.open(file, codec))
    }
}

impl ArrayPlace {
    /// Calls `with` for each packed buffer of the array and of those inside of it.
    pub(super) fn each_page(&self, with: &mut impl FnMut(&PackedPage)) {
        self.buffers
            .iter()
            .filter_map(|b| b.page.as_ref())
            .for_each(&mut *with);
        for child in &self.children {
            child.each_page(with);
        }
    }
}

/// Walks over the arrays of a record batch.
pub(super) struct BatchArrays<'a> {
    nodes: FlatVector<'a>,
    buffers: FlatVector<'a>,
    /// Counts of the buffers that views have.
    views: FlatVector<'a>,
    body: (u64, u64),
    next: [usize; 3],
}

impl<'a> BatchArrays<'a> {
    /// The arrays on the way to the field that `path` leads to, the last one with its children.
    ///
    /// # Errors
    /// `None` if the message is damaged, else the reason as text.
    pub(super) fn find(
        file: &File,
        batch: FlatTable<'a>,
        body: (u64, u64),
        fields: &[ArrowField],
        path: &[usize],
    ) -> Result<Vec<ArrayPlace>, Option<String>> {
        let mut codec = None;
        if let Some(packing) = batch.table(3).ok_or(None)? {
            let by = (packing.byte(0).ok_or(None)?, packing.byte(1).ok_or(None)?);
            codec = Some(match by {
                (0, 0) => PageCodec::Lz4Frame,
                (1, 0) => PageCodec::Zstd,
                (codec, method) => {
                    return Err(Some(format!(
                        "has buffers that are compressed by an unknown method ({codec}, {method}): \
                         write it with lz4, zstd or without compression"
                    )));
                }
            });
        }
        let mut arrays = Self {
            nodes: batch.vector(1, 16).ok_or(None)?,
            buffers: batch.vector(2, 16).ok_or(None)?,
            views: batch.vector(4, 8).ok_or(None)?,
            body,
            next: [0; 3],
        };
        let mut found = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            let rest = match path.split_first() {
                Some((first, rest)) if *first == number => Some(rest),
                _ => None,
            };
            arrays.walk(field, rest, &mut found).ok_or(None)?;
        }
        let all = [arrays.nodes.len(), arrays.buffers.len(), arrays.views.len()];
        if arrays.next != all {
            return Err(None);
        }
        if let Some(codec) = codec {
            for array in &mut found {
                array.open(file, codec)?;
            }
        }
        Ok(found)
    }

    /// Passes over the array of a field. With a path, the array is on the way to the wanted one,
    /// and is added to `found`.
    fn walk(
        &mut self,
        field: &ArrowField,
        path: Option<&[usize]>,
        found: &mut Vec<ArrayPlace>,
    ) -> Option<()> {
        let Some(path) = path else {
            self.array(field, false)?;
            return Some(());
        };
        let Some((next, rest)) = path.split_first() else {
            found.push(self.array(field, true)?);
            return Some(());
        };
        found.push(self.own(field, true)?);
        for (number, child) in field.children.iter().enumerate() {
            self.walk(child, (number == *next).then_some(rest), found)?;
        }
        Some(())
    }

    /// The array of a field with its children. Without `keeps`, its buffers are only passed.
    fn array(&mut self, field: &ArrowField, keeps: bool) -> Option<ArrayPlace> {
        let mut array = self.own(field, keeps)?;
        for child in &field.children {
            let child = self.array(child, keeps)?;
            if keeps {
                array.children.push(child);
            }
        }
        Some(array)
    }

    /// The array of a field without its children.
    fn own(&mut self, field: &ArrowField, keeps: bool) -> Option<ArrayPlace> {
        let (rows, nulls) = self.nodes.pair(self.next[0])?;
        self.next[0] += 1;
        let mut count = field.kind.buffers();
        if let ArrowType::View(_) = field.kind {
            let more = usize::try_from(self.views.long(self.next[2], 8)?).ok()?;
            self.next[2] += 1;
            count = count.checked_add(more)?;
        }
        let end = self.next[1].checked_add(count)?;
        (end <= self.buffers.len()).then_some(())?;
        let mut buffers = Vec::new();
        for number in self.next[1]..end {
            let (offset, bytes) = self.buffers.pair(number)?;
            let (offset, bytes) = (u64::try_from(offset).ok()?, u64::try_from(bytes).ok()?);
            (offset.checked_add(bytes)? <= self.body.1).then_some(())?;
            if keeps {
                buffers.push(BufferPlace {
                    at: self.body.0 + offset,
                    bytes,
                    page: None,
                });
            }
        }
        self.next[1] = end;
        Some(ArrayPlace {
            rows: u64::try_from(rows).ok()?,
            has_nulls: nulls != 0,
            buffers,
            children: Vec::new(),
        })
    }
}
