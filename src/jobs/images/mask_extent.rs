//! Where the masks of a batch lie in its memory.

use crate::jobs::mask_rule::MaskType;

/// Where the masks of a batch lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchMasks {
    pub(crate) dtype: MaskType,
    /// Offset of the first mask in the bytes of the batch.
    pub(crate) start: usize,
}
