//! Memory of this process in which rows lie where no ring is, reused from batch to
//! batch.
//!
//! In the consumer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::unistd::{Pid, getpid};

/// Buffers that were given back.
#[derive(Debug, Clone)]
pub(crate) struct BufferPool {
    idle: Arc<Mutex<Vec<Vec<u64>>>>,
    /// The process whose lock it is: in a forked copy nobody may ever give it back.
    owner: Pid,
}

/// A buffer that goes back to its pool. Words, so that every element is aligned.
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
        // The list is whole at every moment: a panic elsewhere cannot tear it.
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
