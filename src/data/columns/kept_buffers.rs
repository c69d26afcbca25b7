//! Unpacked buffers of columns that were used last: one budget for all columns of a run.
//!
//! In the consumer. Reads no file: a reader hands in how a buffer is unpacked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes of buffers that are kept, for all columns of a run together.
pub(crate) const MOST_KEPT: u64 = 128 << 20;
/// Bytes that a fault counts as.
const FAULT_BYTES: u64 = 1 << 10;

/// The buffers that were used last, the newest at the end. A broken buffer stays as its fault, so it
/// is not unpacked for each row.
pub(crate) struct KeptBuffers<V> {
    entries: Mutex<Vec<KeptEntry<V>>>,
    turn: Mutex<()>,
}

struct KeptEntry<V> {
    /// The number of its file, and its offset there.
    place: (usize, u64),
    bytes: u64,
    value: Result<V, String>,
}

impl<V> Default for KeptBuffers<V> {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            turn: Mutex::default(),
        }
    }
}

impl<V> std::fmt::Debug for KeptBuffers<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "{} buffers", entries.len())
    }
}

impl<V: Clone> KeptBuffers<V> {
    /// Held while a row is read: then one thread at a time uses a buffer that is no longer kept.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer at `place`, which has `bytes` bytes. If it is not kept, others make room before
    /// `unpack` is called.
    ///
    /// # Errors
    /// The inner error of `unpack`, which is kept; the outer one, which is not.
    pub(crate) fn get(
        &self,
        place: (usize, u64),
        bytes: u64,
        unpack: impl FnOnce() -> Result<Result<V, String>, String>,
    ) -> Result<V, String> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = entries.iter().rposition(|entry| entry.place == place) {
            entries[found..].rotate_left(1);
        } else {
            let mut all: u64 = entries.iter().map(|entry| entry.bytes).sum();
            while all.saturating_add(bytes) > MOST_KEPT && !entries.is_empty() {
                all -= entries.remove(0).bytes;
            }
            let value = unpack()?;
            entries.push(KeptEntry {
                place,
                bytes: if value.is_ok() { bytes } else { FAULT_BYTES },
                value,
            });
        }
        match entries.last() {
            Some(entry) => entry.value.clone(),
            None => Err("has no such buffer".to_owned()),
        }
    }
}

/// The memory that unpacking takes for columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UnpackingMemory {
    /// Bytes of all buffers, unpacked.
    pub(crate) all: u64,
    /// Most bytes that one buffer takes while it is unpacked.
    pub(crate) once: u64,
}

impl UnpackingMemory {
    /// Adds a buffer of `bytes` bytes, which takes `once` bytes while it is unpacked.
    pub(crate) fn add(&mut self, bytes: u64, once: u64) {
        self.all = self.all.saturating_add(bytes);
        self.once = self.once.max(once);
    }

    /// The memory for the columns of both, which share one [`KeptBuffers`].
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            all: self.all.saturating_add(other.all),
            once: self.once.max(other.once),
        }
    }

    /// Most bytes at one time.
    pub(crate) fn most_bytes(self) -> u64 {
        self.all.min(MOST_KEPT).saturating_add(self.once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_share_one_budget() {
        let kept = KeptBuffers::<u64>::default();
        let mut unpacked = Vec::new();
        let mut get = |file: usize, at: u64, bytes: u64| {
            let value = kept.get((file, at), bytes, || {
                unpacked.push((file, at));
                Ok(Ok(at))
            });
            assert_eq!(value, Ok(at));
            let entries = kept.entries.lock().unwrap();
            let all: u64 = entries.iter().map(|entry| entry.bytes).sum();
            assert!(all <= MOST_KEPT);
            (entries.len(), unpacked.len())
        };
        let most = 64 << 20;
        assert_eq!(get(0, 8, most), (1, 1));
        assert_eq!(get(0, 9, most), (2, 2));
        // The one that was used last stays.
        assert_eq!(get(0, 8, most), (2, 2));
        assert_eq!(get(1, 8, 1), (2, 3));
        assert_eq!(get(0, 8, most), (2, 3));
        assert_eq!(get(0, 9, most), (2, 4));
    }

    #[test]
    fn a_fault_is_kept_and_an_unreadable_file_is_not() {
        let kept = KeptBuffers::<u8>::default();
        let mut calls = 0;
        for _ in 0..3 {
            let broken = kept.get((0, 0), 5, || {
                calls += 1;
                Ok(Err("broken".into()))
            });
            assert_eq!(broken, Err("broken".into()));
        }
        assert_eq!(calls, 1);
        for _ in 0..3 {
            let unreadable = kept.get((0, 1), 5, || {
                calls += 1;
                Err("no disk".into())
            });
            assert_eq!(unreadable, Err("no disk".into()));
        }
        assert_eq!(calls, 4);
        assert_eq!(kept.get((0, 1), 5, || Ok(Ok(7))), Ok(7));
    }

    #[test]
    fn the_bound_is_the_budget_and_one_buffer() {
        let mut small = UnpackingMemory::default();
        assert_eq!(small.most_bytes(), 0);
        small.add(1000, 3000);
        small.add(500, 100);
        assert_eq!(small.most_bytes(), 1500 + 3000);
        let mut large = UnpackingMemory::default();
        large.add(u64::MAX, 10);
        assert_eq!(small.and(large).most_bytes(), MOST_KEPT + 3000);
    }
}
