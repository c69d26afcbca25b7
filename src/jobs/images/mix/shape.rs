//! What the rows of a batch are, as numbers.

use crate::recipe::{Dtype, MemoryLayout};

/// What the rows of a batch are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowShape {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) dtype: Dtype,
    pub(crate) layout: MemoryLayout,
}

impl RowShape {
    pub(crate) fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    pub(crate) fn elements(&self) -> usize {
        self.channels * self.height * self.width
    }
}
