//! Orders that the caller gives, epoch by epoch, in memory shared by all processes.
//!
//! The consumer writes the ids of an epoch before it posts the first batch of that epoch. Workers
//! and coordinator can map the memory for reading only, which a seal ensures. It has room for two epochs, so that an epoch may be
//! written while rows of the former are still read. 8 bytes per sample and epoch.
//!
//! Memory of another process is never trusted: a reader checks the epoch, and an id is looked up
//! in the index like any other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use nix::unistd::{Pid, getpid};
use twox_hash::XxHash3_128;

use crate::error::{Error, Result};
use crate::sys::shared_memory::SharedMemory;

/// Epochs that have room.
const EPOCHS: u64 = 2;
/// In the place of an id: the row has no sample. Only rows at the end of a batch have none, so
/// batches may have different sizes.
pub(crate) const NO_SAMPLE: u64 = u64::MAX;
/// Bytes of a page.
const PAGE: usize = 4096;

/// The orders of two epochs.
///
/// ```text
/// per epoch: number of the epoch + 1, or 0 | id of row 0 | id of row 1 | ...
///                                      u64   u64s
/// ```
#[derive(Debug)]
pub(crate) struct GivenOrders {
    memory: SharedMemory,
    /// The process that made this value. In a forked copy the memory is that of the parent.
    owner: Pid,
    /// Rows of an epoch on this rank.
    rows: u64,
}

impl GivenOrders {
    /// Room for two orders of `rows` ids. No order is written yet.
    ///
    /// # Errors
    /// The memory cannot be allocated.
    pub(super) fn new(rows: u64) -> Result<Self> {
        let bytes = bytes(rows)?;
        let memory = SharedMemory::create_for_one_writer("featherload-orders", bytes)?;
        memory.allocate(0..bytes, "the orders of two epochs")?;
        let owner = getpid();
        Ok(Self {
            memory,
            owner,
            rows,
        })
    }

    /// Maps the orders of another process, for reading alone.
    pub(super) fn from_fd(fd: OwnedFd, rows: u64) -> Result<Self> {
        let bytes = bytes(rows)?;
        let memory = SharedMemory::open_read_only(fd, bytes)?;
        let owner = getpid();
        Ok(Self {
            memory,
            owner,
            rows,
        })
    }

    /// # Errors
    /// In a forked copy of the process, whose writes would change the orders of the parent.
    pub(crate) fn check_owner(&self) -> Result<()> {
        if getpid() == self.owner {
            return Ok(());
        }
        Err(Error::config(
            "a loader cannot be used in a forked copy of the process that built it: build one \
             there",
        ))
    }

    /// Writes the order of an epoch, in the place of the epoch before the last. Only the consumer
    /// may call it, and only while no row of the replaced order is needed.
    ///
    /// # Errors
    /// Another number of ids; an id that is not below `samples`.
    pub(crate) fn write(&self, epoch: u64, ids: &[u64], samples: u64) -> Result<()> {
        if ids.len() as u64 != self.rows {
            return Err(Error::option(
                "sampler",
                format!(
                    "the order of epoch {epoch} has {} samples, and the length of the sampler was \
                     {}: give an order of that length in each epoch",
                    ids.len(),
                    self.rows
                ),
            ));
        }
        if let Some(row) = ids.iter().position(|id| *id >= samples && *id != NO_SAMPLE) {
            return Err(Error::option(
                "sampler",
                format!(
                    "place {row} of the order of epoch {epoch} has sample {}, and the data set \
                     has {samples}: give numbers below {samples}",
                    ids[row]
                ),
            ));
        }
        let head = self.head(epoch);
        self.memory.word(head).store(0, Ordering::Release);
        for (row, id) in ids.iter().enumerate() {
            self.memory
                .word(head + 1 + row)
                .store(*id, Ordering::Relaxed);
        }
        self.memory.word(head).store(epoch + 1, Ordering::Release);
        Ok(())
    }

    /// Whether the order of an epoch is there.
    pub(crate) fn has(&self, epoch: u64) -> bool {
        let head = self.memory.word(self.head(epoch));
        head.load(Ordering::Acquire) == epoch.wrapping_add(1)
    }

    /// The number of rows with a sample among `rows` rows of an epoch from row `first` on, which
    /// are a batch. Without an order: all.
    pub(super) fn filled_rows(&self, epoch: u64, first: u64, rows: u32) -> u32 {
        if !self.has(epoch) {
            return rows;
        }
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id_at(epoch, first.saturating_add(u64::from(middle))) {
                NO_SAMPLE => high = middle,
                _ => low = middle + 1,
            }
        }
        low
    }

    /// The sample in a row of this rank's epoch. [`NO_SAMPLE`], which no index has, without an
    /// order.
    pub(super) fn id_at(&self, epoch: u64, row: u64) -> u64 {
        if row >= self.rows || !self.has(epoch) {
            return NO_SAMPLE;
        }
        let word = self.head(epoch) + 1 + row as usize;
        self.memory.word(word).load(Ordering::Relaxed)
    }

    /// Number of ids of an order.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Index of the first word of an epoch's order.
    fn head(&self, epoch: u64) -> usize {
        // Below the length of the memory, which `bytes` computed from the same numbers.
        ((epoch % EPOCHS) * (self.rows + 1)) as usize
    }
}

impl AsFd for GivenOrders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// Fingerprint of an order, as hexadecimal digits.
pub(crate) fn hash(ids: &[u64]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytemuck::cast_slice(ids)))
}

/// Whole pages for two orders.
fn bytes(rows: u64) -> Result<usize> {
    let words = rows
        .checked_add(1)
        .and_then(|words| words.checked_mul(EPOCHS));
    let bytes = words.and_then(|words| usize::try_from(words.checked_mul(8)?).ok());
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(PAGE));
    bytes.ok_or_else(|| Error::config(format!("an order of {rows} samples exceeds all memory")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_epochs_are_read_as_they_were_written() {
        let orders = GivenOrders::new(3).unwrap();
        let reader = GivenOrders::from_fd(orders.as_fd().try_clone_to_owned().unwrap(), 3).unwrap();
        let read = |epoch: u64| [0, 1, 2, 3].map(|row| reader.id_at(epoch, row));
        assert_eq!(read(0), [u64::MAX; 4]);
        orders.write(0, &[2, 0, 1], 3).unwrap();
        orders.write(1, &[1, 1, 1], 3).unwrap();
        assert_eq!(read(0), [2, 0, 1, u64::MAX]);
        assert_eq!(read(1), [1, 1, 1, u64::MAX]);
        orders.write(2, &[0, 0, 2], 3).unwrap();
        assert_eq!(read(0), [u64::MAX; 4]);
        assert_eq!(read(1), [1, 1, 1, u64::MAX]);
        assert_eq!(read(2), [0, 0, 2, u64::MAX]);
        assert_eq!(read(u64::MAX), [u64::MAX; 4]);
    }

    #[test]
    fn batches_end_where_their_samples_do() {
        let orders = GivenOrders::new(6).unwrap();
        assert_eq!(orders.filled_rows(0, 0, 3), 3);
        let none = NO_SAMPLE;
        orders.write(0, &[7, none, none, 1, 2, 3], 8).unwrap();
        assert_eq!(orders.filled_rows(0, 0, 3), 1);
        assert_eq!(orders.filled_rows(0, 3, 3), 3);
        assert_eq!(orders.filled_rows(0, 3, 2), 2);
        assert_eq!(orders.filled_rows(0, u64::MAX, 3), 0);
    }

    #[test]
    fn orders_that_do_not_fit_are_errors_and_change_nothing() {
        let orders = GivenOrders::new(2).unwrap();
        orders.write(0, &[1, 0], 2).unwrap();
        let e = orders.write(2, &[1], 2).unwrap_err().to_string();
        assert!(
            e.contains("has 1 samples, and the length of the sampler was 2"),
            "{e}"
        );
        let e = orders.write(2, &[1, 2], 2).unwrap_err().to_string();
        assert!(
            e.contains("place 1 of the order of epoch 2 has sample 2"),
            "{e}"
        );
        assert_eq!(orders.id_at(0, 0), 1);
        let other = orders.as_fd().try_clone_to_owned().unwrap();
        assert!(GivenOrders::from_fd(other, 2_000).is_err());
        assert!(bytes(u64::MAX).is_err());
    }
}
