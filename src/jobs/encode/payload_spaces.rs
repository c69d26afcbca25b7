//! Where the rows of a cache build are: 8 bytes per sample, shared by all processes.
//!
//! Made in the consumer from the sizes of all samples. Coordinator and workers map it read-only. A
//! row is one place of the cache's order, and a ticket is a run of places. The offsets of both
//! follow from running sums.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{self, Error, Result};
use crate::jobs::encode::payload::HEAD;
use crate::sys::sealed_bytes::SealedBytes;

/// Rows begin at multiples of this.
const ALIGN: u64 = 64;

/// The end of each place's space, as if all were in one slot. Immutable.
#[derive(Debug)]
pub(crate) struct PayloadSpaces {
    sealed: SealedBytes,
}

impl PayloadSpaces {
    /// Seals the spaces for payloads of at most these numbers of bytes, in order.
    pub(crate) fn seal(payloads: impl Iterator<Item = u64>) -> Result<Self> {
        let mut ends = Vec::with_capacity(payloads.size_hint().0);
        let mut end = 0u64;
        for bytes in payloads {
            let room = bytes
                .checked_add(HEAD as u64)
                .and_then(|b| b.checked_next_multiple_of(ALIGN));
            end = room.and_then(|room| end.checked_add(room)).ok_or_else(|| {
                Error::config(format!(
                    "sample {} of the order takes {}: lower max_pixels",
                    ends.len(),
                    error::size(bytes)
                ))
            })?;
            ends.push(end);
        }
        Ok(Self {
            sealed: SealedBytes::new("featherload-rooms", &[bytemuck::cast_slice(&ends)])?,
        })
    }

    /// The spaces of `samples` samples, from another process.
    pub(crate) fn from_fd(fd: OwnedFd, samples: u64) -> Result<Self> {
        let sealed = SealedBytes::from_fd(fd)?;
        let bytes = sealed.bytes().len() as u64;
        if Some(bytes) != samples.checked_mul(size_of::<u64>() as u64) {
            return Err(Error::protocol(format!(
                "the received payload spaces have {bytes} bytes, and {samples} samples need 8 each"
            )));
        }
        Ok(Self { sealed })
    }

    /// Another handle to the same shared memory.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let fd = self
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| Error::io("duplicate the descriptor of the payload spaces", e))?;
        Self::from_fd(fd, self.len())
    }

    fn ends(&self) -> &[u64] {
        // A mapping begins on a page, and its length was checked. Without samples it is empty.
        bytemuck::try_cast_slice(self.sealed.bytes()).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> u64 {
        self.ends().len() as u64
    }

    /// The beginning and the end of the space of `position`.
    fn room(&self, position: u64) -> Option<Range<u64>> {
        let at = usize::try_from(position).ok()?;
        let end = *self.ends().get(at)?;
        let begin = match at {
            0 => 0,
            _ => *self.ends().get(at - 1)?,
        };
        Some(begin..end)
    }

    /// The range of `position`'s row in the slot of the ticket that begins with `first`. None for a
    /// position outside of the cache.
    pub(crate) fn place(&self, first: u64, position: u64) -> Option<Range<usize>> {
        let begin = self.room(first)?.start;
        let room = self.room(position)?;
        let within = |at: u64| usize::try_from(at.checked_sub(begin)?).ok();
        Some(within(room.start)?..within(room.end)?)
    }

    /// Bytes of the largest space. 0 if there is none.
    pub(crate) fn largest(&self) -> u64 {
        let begins = std::iter::once(&0).chain(self.ends());
        let rooms = self
            .ends()
            .iter()
            .zip(begins)
            .map(|(end, begin)| end - begin);
        rooms.max().unwrap_or(0)
    }

    /// Bytes of all spaces from `first` on.
    pub(crate) fn bytes_from(&self, first: u64) -> u64 {
        let last = self.ends().last().copied().unwrap_or(0);
        self.room(first).map_or(0, |room| last - room.start)
    }

    /// Number of rows of the ticket that begins with `first`: as many as fit a slot of
    /// `slot_bytes`, at most `most`. 0 after the last place.
    pub(crate) fn ticket(&self, first: u64, slot_bytes: u64, most: u32) -> u32 {
        let Some(begin) = self.room(first).map(|room| room.start) else {
            return 0;
        };
        let from = usize::try_from(first).unwrap_or(usize::MAX);
        let ends = self.ends().get(from..).unwrap_or_default();
        let ends = &ends[..ends.len().min(most as usize)];
        ends.partition_point(|end| end - begin <= slot_bytes) as u32
    }
}

impl AsFd for PayloadSpaces {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_one_behind_the_other_from_the_ticket_on() {
        let rooms = PayloadSpaces::seal([0, 1, 64, 65].into_iter()).unwrap();
        assert_eq!(rooms.len(), 4);
        assert_eq!(rooms.place(0, 0), Some(0..64));
        assert_eq!(rooms.place(0, 1), Some(64..192));
        assert_eq!(rooms.place(1, 1), Some(0..128));
        assert_eq!(rooms.place(1, 3), Some(256..448));
        assert_eq!(rooms.largest(), 192);
        assert_eq!(rooms.bytes_from(0), 512);
        assert_eq!(rooms.bytes_from(3), 192);
        assert_eq!(rooms.bytes_from(4), 0);
        // Scribbled tickets.
        for (first, position) in [(0, 4), (4, 4), (2, 1), (u64::MAX, 0), (0, u64::MAX)] {
            assert_eq!(rooms.place(first, position), None);
        }
    }

    #[test]
    fn tickets_fill_slots_and_cover_every_place_once() {
        let rooms = PayloadSpaces::seal((0..1000).map(|n| n * 37 % 900)).unwrap();
        for (slot, most) in [(1024, 256), (5000, 3), (1 << 20, 256)] {
            let mut at = 0;
            while at < rooms.len() {
                let rows = rooms.ticket(at, slot, most);
                assert!((1..=most).contains(&rows));
                let last = rooms.place(at, at + u64::from(rows) - 1).unwrap();
                assert!(last.end as u64 <= slot);
                if rows < most && at + u64::from(rows) < rooms.len() {
                    let next = rooms.place(at, at + u64::from(rows)).unwrap();
                    assert!(next.end as u64 > slot, "there was room for one more");
                }
                at += u64::from(rows);
            }
            assert_eq!(rooms.ticket(at, slot, most), 0);
        }
    }

    #[test]
    fn another_process_sees_the_same_rooms() {
        let rooms = PayloadSpaces::seal([5, 6].into_iter()).unwrap();
        let other = rooms.try_clone().unwrap();
        assert_eq!(other.place(0, 1), rooms.place(0, 1));
        let fd = || rooms.as_fd().try_clone_to_owned().unwrap();
        for samples in [0, 1, 3, u64::MAX] {
            assert!(PayloadSpaces::from_fd(fd(), samples).is_err());
        }
        assert!(PayloadSpaces::seal([u64::MAX].into_iter()).is_err());
        assert_eq!(
            PayloadSpaces::seal(std::iter::empty()).unwrap().largest(),
            0
        );
    }
}
