//! Access to the shared words, as a trait, so that the model test can stand
//! between any two operations and the protocol stays free of system calls.
//!
//! Used in every process. [`SharedWords`] is the real thing; the explorer and
//! the loom test bring their own.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::sys::futex;
use crate::sys::shared_memory::SharedMemory;

/// Index of an 8-byte word in the ring.
pub(crate) type WordIndex = usize;

/// The memory that the protocol runs on.
///
/// `wait` and `wake_all` act on the low 32 bits of a word that only ever counts
/// up, so a wake that came before the sleep is seen as a changed value.
pub(crate) trait RingWords {
    fn load(&self, word: WordIndex, order: Ordering) -> u64;
    fn store(&self, word: WordIndex, value: u64, order: Ordering);
    /// Puts `new` when the word holds `current`; else says what it holds.
    /// SeqCst on success, Acquire on failure.
    fn compare_exchange(&self, word: WordIndex, current: u64, new: u64) -> Result<u64, u64>;
    fn fetch_add(&self, word: WordIndex, value: u64) -> u64;
    /// A sequentially consistent fence: stores before it are seen by whoever
    /// passes a fence later.
    fn full_fence(&self);
    /// Sleeps while the low half of the word is that of `value`, at most `limit`.
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
