//! The buffers of AugMix.

/// Images that AugMix keeps beside the current one, upright and tight.
#[derive(Debug, Default)]
pub(super) struct MixBuffers {
    pub(super) kept: Vec<u8>,
    pub(super) sum: Vec<f64>,
}

impl MixBuffers {
    /// Bytes of both buffers.
    pub(super) fn held_bytes(&self) -> usize {
        self.kept.capacity() + self.sum.capacity() * size_of::<f64>()
    }
}
