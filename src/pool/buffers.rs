//! Memory of this process in which rows lie where no ring is, reused from batch to
//! batch.
//!
//! In the consumer.

use std::sync::{Arc, Mutex, PoisonError};

/// Buffers that were given back.
#[derive(Debug, Clone, Default)]
pub(crate) struct BufferPool(Arc<Mutex<Vec<Vec<u64>>>>);

/// A buffer that goes back to its pool. Words, so that every element is aligned.
#[derive(Debug)]
pub struct PooledBuffer {
    words: Vec<u64>,
    pool: BufferPool,
}

impl BufferPool {
    pub(crate) fn take(&self, bytes: usize) -> PooledBuffer {
        let mut words = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        words.resize(bytes.div_ceil(8), 0);
        PooledBuffer {
            words,
            pool: self.clone(),
        }
    }
}

impl PooledBuffer {
    /// All of it, which may be a few bytes more than were asked for.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.pool
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(words);
    }
}
