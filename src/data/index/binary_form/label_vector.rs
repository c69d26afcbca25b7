//! The label of a sample. A vector is read in place.
//!
//! Used in every process that maps an index.

use std::fmt;

/// The numbers of one sample: a view of shared memory, which need not be aligned for `f32`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LabelVector<'a>(pub(crate) &'a [[u8; 4]]);

impl<'a> LabelVector<'a> {
    /// The number of values.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The value at position `i`. `None` if there is no such position.
    pub fn get(self, i: usize) -> Option<f32> {
        self.0.get(i).copied().map(f32::from_le_bytes)
    }

    /// The values, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = f32> + 'a {
        self.0.iter().copied().map(f32::from_le_bytes)
    }

    /// The same numbers as little-endian bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

impl fmt::Debug for LabelVector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The label of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Label<'a> {
    None,
    /// A class number. It is -1 in a flat folder.
    Class(i64),
    Vector(LabelVector<'a>),
}
