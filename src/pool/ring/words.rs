//! Access to the shared words as a trait. So the model test can act between any two operations, and
//! the protocol makes no system call itself.
//!
//! Used in every process. [`SharedWords`] is the implementation; the explorer and the loom test
//! have their own.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::sys::futex;
use crate::sys::shared_memory::SharedMemory;

/// Index of an 8-byte word in the ring.
pub(crate) type WordIndex = usize;

/// The memory that the protocol runs on.
///
/// `wait` and `wake_all` use the low 32 bits of a word that only counts up. So a wake before the
/// sleep shows as a changed value.
pub(crate) trait RingWords {
    fn load(&self, word: WordIndex, order: Ordering) -> u64;
    fn store(&self, word: WordIndex, value: u64, order: Ordering);
    /// Stores `new` if the word holds `current`, else returns its value. SeqCst on success, Acquire
    /// on failure.
    fn compare_exchange(&self, word: WordIndex, current: u64, new: u64) -> Result<u64, u64>;
    fn fetch_add(&self, word: WordIndex, value: u64) -> u64;
    /// A sequentially consistent fence: earlier stores are visible after a later fence of another
    /// process.
    fn full_fence(&self);
    /// Sleeps while the low half of the word equals that of `value`, at most `limit`.
    fn wait(&self, word: WordIndex, value: u64, limit: Duration);
    fn wake_all(&self, word: WordIndex);
}

/// The words of a mapped ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedWords<'a>(pub(crate) &'a SharedMemory);

impl RingWords for SharedWords<'_> {
    #[inline]
    fn load(&self, word: WordIndex, order: Ordering) -> u64 {
        self.0.word(word).load(order)
    }

    #[inline]
    fn store(&self, word: WordIndex, value: u64, order: Ordering) {
        self.0.word(word).store(value, order);
    }

    #[inline]
    fn compare_exchange(&self, word: WordIndex, current: u64, new: u64) -> Result<u64, u64> {
        self.0
            .word(word)
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::Acquire)
    }

    #[inline]
    fn fetch_add(&self, word: WordIndex, value: u64) -> u64 {
        self.0.word(word).fetch_add(value, Ordering::SeqCst)
    }

    #[inline]
    fn full_fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn wait(&self, word: WordIndex, value: u64, limit: Duration) {
        futex::wait(self.0.word(word), value as u32, limit);
    }

    fn wake_all(&self, word: WordIndex) {
        futex::wake_all(self.0.word(word));
    }
}
