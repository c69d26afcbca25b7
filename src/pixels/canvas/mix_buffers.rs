//! What AugMix holds beside the picture.

/// What AugMix holds beside the picture, upright and tight.
#[derive(Debug, Default)]
pub(super) struct MixBuffers {
    pub(super) kept: Vec<u8>,
    pub(super) sum: Vec<f64>,
}

impl MixBuffers {
    /// Bytes that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.kept.capacity() + self.sum.capacity() * size_of::<f64>()
    }
}
