//! Memory of this process for rows where there is no ring. Buffers are reused from batch to batch.
//!
//! Runs in the consumer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::unistd::{Pid, getpid};

/// Buffers that are free for reuse.
#[derive(Debug, Clone)]
pub(crate) struct BufferPool {
    idle: Arc<Mutex<Vec<Vec<u64>>>>,
    /// The process that owns the lock. A forked copy might find it locked for ever, so it never
    /// takes it.
    owner: Pid,
}

/// A buffer that returns to its pool when dropped. Made of words, so that every element is aligned.
#[derive(Debug)]
pub struct PooledBuffer {
    words: Vec<u64>,
    pool: BufferPool,
}

impl BufferPool {
    pub(crate) fn take(&self, bytes: usize) -> PooledBuffer {
        let mut words = self.lock().pop().unwrap_or_default();
        words.resize(bytes.div_ceil(8), 0);
        PooledBuffer {
            words,
            pool: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u64>>> {
        // The list is valid between any two operations, so a poisoned lock is harmless.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        Self {
            idle: Arc::default(),
            owner: getpid(),
        }
    }
}

impl PooledBuffer {
    /// All bytes: the requested number, rounded up to a multiple of 8.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if getpid() == self.pool.owner {
            let words = std::mem::take(&mut self.words);
            self.pool.lock().push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back() {
        let pool = BufferPool::default();
        drop(pool.take(9));
        assert_eq!(pool.lock().len(), 1);
        assert_eq!(pool.take(9).bytes().len(), 16);
        assert_eq!(pool.lock().len(), 1);
    }

    #[test]
    fn a_forked_copy_waits_for_no_lock() {
        let pool = BufferPool {
            owner: Pid::from_raw(1),
            ..BufferPool::default()
        };
        let buffer = pool.take(9);
        let _taken = pool.lock();
        drop(buffer);
    }
}
