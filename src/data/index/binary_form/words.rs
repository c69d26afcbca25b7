//! Reads numbers and sections from untrusted bytes. No access is out of bounds.
//!
//! Runs in every process that maps an index.

use std::ops::Range;

use crate::data::index::binary_form::IndexDamage;

/// An array of integers of 4 or 8 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordArray {
    pub(crate) at: usize,
    pub(crate) wide: bool,
}

impl WordArray {
    pub(crate) fn unsigned(self, bytes: &[u8], i: usize) -> Option<u64> {
        if self.wide {
            word(bytes, self.at + i * 8).map(u64::from_le_bytes)
        } else {
            word(bytes, self.at + i * 4).map(|w| u64::from(u32::from_le_bytes(w)))
        }
    }

    pub(crate) fn signed(self, bytes: &[u8], i: usize) -> Option<i64> {
        if self.wide {
            word(bytes, self.at + i * 8).map(i64::from_le_bytes)
        } else {
            word(bytes, self.at + i * 4).map(|w| i64::from(i32::from_le_bytes(w)))
        }
    }
}

pub(crate) fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads fields in order. A missing field reads as zero, which a check then rejects.
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl FieldReader<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Takes sections in order. Rejects a section that would end past `end`.
pub(crate) struct SectionCursor {
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl SectionCursor {
    pub(crate) fn next(
        &mut self,
        sides: [u64; 3],
        of: &'static str,
    ) -> Result<Range<usize>, IndexDamage> {
        sides
            .into_iter()
            .try_fold(1u64, u64::checked_mul)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .and_then(|bytes| self.at.checked_add(bytes))
            .filter(|&end| end <= self.end)
            .map(|end| {
                let section = self.at..end;
                self.at = end;
                section
            })
            .ok_or(IndexDamage::Counts { of })
    }
}
