//! Shared memory in which the consumer hands the bytes of samples to workers, batch by batch.
//!
//! Used in the consumer, which writes, and in workers, which read. The memory has a fixed size. The
//! bytes of a batch stay until the batch was returned. So if a worker dies, another makes its row
//! from the same bytes. Workers copy the bytes of a row before they decode them, because the
//! consumer may write new bytes there after a cancelled batch. Such a row is never returned.
//!
//! ```text
//! per place: epoch + 1, or 0 | samples before the batch | rows x (offset, length)   u64s
//! then, from a whole page on: the bytes
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::order::EpochMark;
use crate::sys::shared_memory::SharedMemory;

/// Bytes of a page, the unit of [`SharedMemory::make_read_only`].
const PAGE: usize = 4096;
/// Words of a place before those of its rows.
const KEY: usize = 2;

/// The size of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedShape {
    /// Batches that may be there at one time.
    pub(crate) places: u32,
    /// Most rows of a batch.
    pub(crate) rows: u32,
    /// Most bytes of all samples that are there at one time.
    pub(crate) bytes: u64,
}

impl HandedShape {
    fn words_per_place(self) -> usize {
        KEY + 2 * self.rows as usize
    }

    /// Offset of the bytes, and bytes of the whole memory.
    fn layout(self) -> Result<(usize, usize)> {
        let words = self.words_per_place().checked_mul(self.places as usize);
        let head = words.and_then(|words| words.checked_mul(8)?.checked_next_multiple_of(PAGE));
        let whole = head.and_then(|head| {
            let bytes = usize::try_from(self.bytes).ok()?;
            head.checked_add(bytes)?.checked_next_multiple_of(PAGE)
        });
        let too_large = || Error::option("feed_limit", "`feed_limit` is larger than all memory");
        head.zip(whole).ok_or_else(too_large)
    }
}

/// The mapped memory.
#[derive(Debug)]
pub(crate) struct HandedItems {
    memory: SharedMemory,
    shape: HandedShape,
    bytes_at: usize,
}

impl HandedItems {
    /// Memory without samples. Its pages are allocated when bytes are written.
    ///
    /// # Errors
    /// The system gives no memory.
    pub(crate) fn create(shape: HandedShape) -> Result<Self> {
        let (bytes_at, whole) = shape.layout()?;
        let memory = SharedMemory::create("featherload-items", whole)?;
        memory.allocate(0..bytes_at, "the places of samples")?;
        Ok(Self {
            memory,
            shape,
            bytes_at,
        })
    }

    /// Maps the memory of another process, for reading alone.
    pub(crate) fn from_fd(fd: OwnedFd, shape: HandedShape) -> Result<Self> {
        let (bytes_at, whole) = shape.layout()?;
        let memory = SharedMemory::open(fd, whole)?;
        memory.make_read_only(0..whole)?;
        Ok(Self {
            memory,
            shape,
            bytes_at,
        })
    }

    pub(crate) fn shape(&self) -> HandedShape {
        self.shape
    }

    /// Writes the bytes of a row at an offset. The batch is not there for workers until
    /// [`HandedItems::publish`]. Only the consumer may call it.
    ///
    /// # Errors
    /// The system gives no memory.
    pub(crate) fn write(&self, place: usize, row: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = (offset.checked_add(bytes.len() as u64)).filter(|end| *end <= self.shape.bytes);
        if end.is_none() || row >= self.shape.rows as usize {
            return Err(Error::protocol(
                "a sample was written outside of its memory",
            ));
        }
        let at = self.bytes_at + offset as usize;
        (self.memory).allocate(at..at + bytes.len(), "the bytes of samples")?;
        self.memory.write_bytes(at, bytes);
        let words = self.row_words(place, row);
        self.memory.word(words).store(offset, Ordering::Relaxed);
        let length = bytes.len() as u64;
        self.memory.word(words + 1).store(length, Ordering::Relaxed);
        Ok(())
    }

    /// Makes a batch visible, whose rows are all written.
    pub(crate) fn publish(&self, place: usize, at: EpochMark) {
        let head = self.head(place);
        self.memory
            .word(head + 1)
            .store(at.samples, Ordering::Relaxed);
        // SYNC: with the load in `place_of`.
        self.memory
            .word(head)
            .store(at.epoch + 1, Ordering::Release);
    }

    /// Makes the batch of a place invisible. Its bytes may then be overwritten.
    pub(crate) fn clear(&self, place: usize) {
        self.memory
            .word(self.head(place))
            .store(0, Ordering::Release);
    }

    /// Copies the bytes of a row to `out`: at most `most`.
    ///
    /// # Errors
    /// The batch is not there; an empty or too long sample.
    pub(crate) fn read(
        &self,
        at: EpochMark,
        row: u32,
        most: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), SampleFault> {
        let gone = || FaultKind::Unreadable.fault("its bytes are not in memory any more");
        let place = self.place_of(at).filter(|_| row < self.shape.rows);
        let words = self.row_words(place.ok_or_else(gone)?, row as usize);
        let offset = self.memory.word(words).load(Ordering::Relaxed);
        let length = self.memory.word(words + 1).load(Ordering::Relaxed);
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= self.shape.bytes);
        end.ok_or_else(gone)?;
        if length == 0 {
            return Err(FaultKind::Truncated.fault("the image is empty"));
        }
        if length > most {
            return Err(FaultKind::TooLarge.fault(format!(
                "the image has {length} bytes, over max_scratch of {most}: raise max_scratch"
            )));
        }
        out.clear();
        (out.try_reserve_exact(length as usize))
            .map_err(|_| FaultKind::Unreadable.fault("no memory for its bytes"))?;
        out.resize(length as usize, 0);
        self.memory.read_bytes(self.bytes_at + offset as usize, out);
        Ok(())
    }

    fn place_of(&self, at: EpochMark) -> Option<usize> {
        (0..self.shape.places as usize).find(|place| {
            let head = self.head(*place);
            let epoch = self.memory.word(head).load(Ordering::Acquire);
            epoch != 0
                && epoch == at.epoch.wrapping_add(1)
                && self.memory.word(head + 1).load(Ordering::Relaxed) == at.samples
        })
    }

    /// Index of the first word of a place.
    fn head(&self, place: usize) -> usize {
        (place % self.shape.places as usize) * self.shape.words_per_place()
    }

    /// Index of the words of a row.
    fn row_words(&self, place: usize, row: usize) -> usize {
        self.head(place) + KEY + 2 * row
    }
}

impl AsFd for HandedItems {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: HandedShape = HandedShape {
        places: 2,
        rows: 3,
        bytes: 10,
    };

    #[test]
    fn rows_are_read_as_they_were_written() {
        let items = HandedItems::create(SHAPE).unwrap();
        let fd = items.as_fd().try_clone_to_owned().unwrap();
        let reader = HandedItems::from_fd(fd, SHAPE).unwrap();
        let (first, second) = (EpochMark::new(0, 0), EpochMark::new(0, 3));
        let mut out = vec![1; 99];
        let mut read = |at, row| {
            let read = reader.read(at, row, 5, &mut out);
            read.map(|()| out.clone()).map_err(|fault| fault.kind)
        };
        items.write(0, 0, 0, b"abc").unwrap();
        items.write(0, 1, 3, b"").unwrap();
        items.write(0, 2, 4, b"6 byte").unwrap();
        assert_eq!(read(first, 0), Err(FaultKind::Unreadable));
        items.publish(0, first);
        assert_eq!(read(first, 0), Ok(b"abc".to_vec()));
        assert_eq!(read(first, 1), Err(FaultKind::Truncated));
        assert_eq!(read(first, 2), Err(FaultKind::TooLarge));
        assert_eq!(read(first, 3), Err(FaultKind::Unreadable));
        assert_eq!(read(second, 0), Err(FaultKind::Unreadable));
        items.write(1, 0, 9, b"z").unwrap();
        items.publish(1, second);
        assert_eq!(read(second, 0), Ok(b"z".to_vec()));
        items.clear(0);
        assert_eq!(read(first, 0), Err(FaultKind::Unreadable));
        assert_eq!(
            read(EpochMark::new(u64::MAX, 0), 0),
            Err(FaultKind::Unreadable)
        );
    }

    #[test]
    fn nothing_is_written_outside() {
        let items = HandedItems::create(SHAPE).unwrap();
        assert!(items.write(0, 0, 8, b"abc").is_err());
        assert!(items.write(0, 0, u64::MAX, b"abc").is_err());
        assert!(items.write(0, 3, 0, b"abc").is_err());
        let fd = items.as_fd().try_clone_to_owned().unwrap();
        assert!(
            HandedItems::from_fd(
                fd,
                HandedShape {
                    bytes: 9000,
                    ..SHAPE
                }
            )
            .is_err()
        );
        let huge = HandedShape {
            bytes: u64::MAX,
            ..SHAPE
        };
        assert!(HandedItems::create(huge).is_err());
    }
}
