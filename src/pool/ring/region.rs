//! The mapped ring: rows and slots as bytes, faults as text.
//!
//! Used in every process. Here a claim becomes permission to write. Functions that return slices
//! are `unsafe`; their callers prove the permission by the row word.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::error::{Error, FaultKind, Result, SampleFault, printable};
use crate::pool::ring::layout::{MAGIC, RingLayout, RingShape, record_word, worker_word};
use crate::pool::ring::words::{RingWords, SharedWords, WordIndex};
use crate::pool::ring::worker_side::RowClaim;
use crate::sys::shared_memory::SharedMemory;

/// Name of the ring in `/proc/PID/maps`.
pub(crate) const MEMFD_NAME: &str = "featherload-ring";

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: SharedMemory,
    layout: RingLayout,
}

/// Purpose of the memory, for error texts.
const RING: &str = "the ring (lower batch or depth)";

impl Ring {
    /// Creates a ring in the consumer. Allocates it up to the end of its first slot, which is
    /// enough to start.
    pub(crate) fn create(shape: RingShape) -> Result<Self> {
        let layout = RingLayout::new(shape)?;
        let memory = SharedMemory::create(MEMFD_NAME, layout.total_bytes())?;
        memory.allocate(0..layout.slot_end(0), RING)?;
        let ring = Self { memory, layout };
        let w = ring.words();
        w.store(layout.magic(), MAGIC, Relaxed);
        w.store(layout.hash_word(), layout.hash(), Relaxed);
        Ok(ring)
    }

    /// Allocates the other slots. Call it during the start, before any of them is posted.
    pub(crate) fn allocate_rest(&self) -> Result<()> {
        self.memory
            .allocate(self.layout.slot_end(0)..self.layout.total_bytes(), RING)
    }

    /// Maps a ring that another process created. Used in the coordinator.
    pub(crate) fn open(fd: OwnedFd, shape: RingShape) -> Result<Self> {
        let layout = RingLayout::new(shape)?;
        let memory = SharedMemory::open(fd, layout.total_bytes())?;
        let ring = Self { memory, layout };
        let w = ring.words();
        if w.load(layout.magic(), Acquire) != MAGIC
            || w.load(layout.hash_word(), Acquire) != layout.hash()
        {
            return Err(Error::protocol(
                "the received memory is not a ring of this layout",
            ));
        }
        Ok(ring)
    }

    pub(crate) fn words(&self) -> SharedWords<'_> {
        SharedWords(&self.memory)
    }

    /// One word, for a signal handler, which cannot use the trait.
    pub(crate) fn word(&self, i: WordIndex) -> &AtomicU64 {
        self.memory.word(i)
    }

    pub(crate) fn layout(&self) -> &RingLayout {
        &self.layout
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Address range of the mapping.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let begin = self.memory.bytes_at(0, self.memory.len()) as usize;
        begin..begin + self.memory.len()
    }

    /// Start of the mapping, to pin it.
    pub(crate) fn address(&self) -> *mut u8 {
        self.memory.bytes_at(0, self.memory.len())
    }

    /// Makes the parts that the worker of a lane only reads read-only in this process: tickets, and
    /// records of other lanes. A write there ends the process.
    pub(crate) fn restrict_writes(&self, lane: u32) -> Result<()> {
        let only_read = self.layout.read_only(lane);
        only_read
            .into_iter()
            .try_for_each(|r| self.memory.make_read_only(r))
    }

    /// Maps a part of a slot into this process before its first use. Ignores parts outside the
    /// slot.
    pub(crate) fn populate(&self, slot: u32, part: &Range<usize>) {
        if let Some((offset, len)) = self.layout.part(slot, part) {
            // Older kernels do not support this. Then pages are mapped one by one.
            let _ = self.memory.populate(offset, len);
        }
    }

    /// The bytes of a claimed row: those at `place` in its slot.
    ///
    /// # Errors
    /// `place` is outside the slot, because the ticket's words were overwritten.
    ///
    /// # Safety
    /// The claim must be live: `Claimed` by this process and not committed. `place` must be the
    /// row's own range from its job. Every process computes the same ranges for a ticket, and two
    /// rows never overlap.
    #[expect(
        clippy::mut_from_ref,
        reason = "the claim, not the borrow, is what makes it ours"
    )]
    pub(crate) unsafe fn row_mut(
        &self,
        claim: &RowClaim,
        place: Range<usize>,
    ) -> Result<&mut [u8]> {
        let (offset, len) = self.layout.part(claim.slot, &place).ok_or_else(|| {
            Error::protocol(format!(
                "row {} of ticket {} would be at bytes {place:?} of a slot of {}",
                claim.row,
                claim.ticket.sequence,
                self.layout.shape().slot_bytes
            ))
        })?;
        let bytes = self.memory.bytes_at(offset, len);
        // SAFETY: in bounds by `bytes_at`; exclusive by this function's contract.
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes, len) })
    }

    /// All bytes of a slot, to read.
    ///
    /// # Safety
    /// The slot's ticket must be ready (all rows final) or drained. The slot must not be posted
    /// again while the slice lives. Then no process writes it.
    pub(crate) unsafe fn slot_bytes(&self, slot: u32) -> &[u8] {
        let (offset, len) = self.layout.slot_data(slot);
        let bytes = self.memory.bytes_at(offset, len);
        // SAFETY: in bounds by `bytes_at`; not written by this function's contract.
        unsafe { std::slice::from_raw_parts(bytes, len) }
    }

    /// Copies bytes of a slot from offset `from` on; false if they are not inside. A compromised
    /// worker may write them meanwhile, so each word is read once.
    pub(crate) fn copy(&self, slot: u32, from: usize, to: &mut [u8]) -> bool {
        let place = from..from.saturating_add(to.len());
        let Some((mut at, _)) = self.layout.part(slot, &place) else {
            return false;
        };
        let mut rest = to;
        while !rest.is_empty() {
            let word = self.words().load(at / 8, Relaxed).to_ne_bytes();
            let word = &word[at % 8..];
            let (now, behind) = rest.split_at_mut(word.len().min(rest.len()));
            now.copy_from_slice(&word[..now.len()]);
            at += now.len();
            rest = behind;
        }
        true
    }

    /// Writes bytes of a slot from offset `from` on; false if they are not inside.
    pub(crate) fn write(&self, slot: u32, from: usize, bytes: &[u8]) -> bool {
        let place = from..from.saturating_add(bytes.len());
        let part = self.layout.part(slot, &place);
        if let Some((at, _)) = part {
            self.memory.write_bytes(at, bytes);
        }
        part.is_some()
    }

    /// Address and length of a slot's data.
    pub(crate) fn slot_memory(&self, slot: u32) -> (*const u8, usize) {
        let (offset, len) = self.layout.slot_data(slot);
        (self.memory.bytes_at(offset, len).cast_const(), len)
    }

    /// All bytes of a slot, to write in the consumer.
    ///
    /// # Safety
    /// Like [`Ring::slot_bytes`], and no other slice of the slot may be alive.
    #[expect(
        clippy::mut_from_ref,
        reason = "holding the slot, not the borrow, is what makes it ours"
    )]
    pub(crate) unsafe fn slot_bytes_mut(&self, slot: u32) -> &mut [u8] {
        let (offset, len) = self.layout.slot_data(slot);
        let bytes = self.memory.bytes_at(offset, len);
        // SAFETY: in bounds by `bytes_at`; exclusive by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(bytes, len) }
    }

    /// Writes the fault of a row's own sample. Call it before the next attempt or the commit.
    pub(crate) fn write_fault(&self, slot: u32, row: u32, fault: &SampleFault) {
        let record = self.layout.record(slot, row);
        let text = shorten_reason(&fault.reason).as_bytes();
        let w = self.words();
        for (i, chunk) in text.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let at = record + record_word::TEXT + i;
            w.store(at, u64::from_le_bytes(bytes), Relaxed);
        }
        let head = u64::from(fault.kind as u8) | (text.len() as u64) << 8;
        w.store(record + record_word::FAULT, head, Relaxed);
    }

    /// Reads the fault of a row's own sample. Checks every length, because a faulty decoder may
    /// overwrite it.
    pub(crate) fn read_fault(&self, slot: u32, row: u32) -> SampleFault {
        let record = self.layout.record(slot, row);
        let w = self.words();
        let head = w.load(record + record_word::FAULT, Relaxed);
        let len = ((head >> 8) as usize & 0xffff).min(record_word::TEXT_BYTES);
        let mut text = Vec::with_capacity(len.next_multiple_of(8));
        for i in 0..len.div_ceil(8) {
            let word = w.load(record + record_word::TEXT + i, Relaxed);
            text.extend_from_slice(&word.to_le_bytes());
        }
        text.truncate(len);
        // The text may be printed on a terminal.
        SampleFault::new(FaultKind::from_code(head as u8), printable(&text))
    }

    /// Committed rows of all workers.
    pub(crate) fn rows_committed(&self) -> u64 {
        // Workers write these words, so they may hold any number.
        self.rows_by_lane().fold(0, u64::wrapping_add)
    }

    /// Committed rows by lane.
    pub(crate) fn rows_by_lane(&self) -> impl Iterator<Item = u64> {
        (0..self.layout.shape().lanes).map(|lane| {
            let at = self.layout.worker(lane) + worker_word::ROWS;
            self.words().load(at, Relaxed)
        })
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// Shortens a fault's reason to the length that a record holds. Without a ring it is shortened too,
/// so that both ways report the same text.
pub(crate) fn shorten_reason(reason: &str) -> &str {
    let mut end = reason.len().min(record_word::TEXT_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Ring {
        Ring::create(RingShape {
            slots: 2,
            rows: 3,
            slot_bytes: 300,
            lanes: 1,
        })
        .unwrap()
    }

    #[test]
    fn faults_round_trip_and_are_cut_at_a_character() {
        let r = ring();
        for reason in ["", "short", "exactly8", &"é".repeat(400)] {
            r.write_fault(1, 2, &SampleFault::new(FaultKind::Corrupt, reason));
            let f = r.read_fault(1, 2);
            assert_eq!(f.kind, FaultKind::Corrupt);
            assert!(reason.starts_with(&f.reason));
            assert_eq!(f.reason, shorten_reason(reason), "as without a ring");
            assert!(f.reason.len() + 2 > reason.len().min(record_word::TEXT_BYTES));
        }
    }

    #[test]
    fn bytes_of_a_slot_are_copied_from_any_place() {
        let r = ring();
        let bytes: Vec<u8> = (0..300).map(|n| (n % 251) as u8).collect();
        // SAFETY: no other process has the ring.
        unsafe { r.slot_bytes_mut(1) }.copy_from_slice(&bytes);
        for from in 0..20 {
            for len in [0, 1, 7, 8, 9, 64, 280] {
                let mut to = vec![0; len];
                assert!(r.copy(1, from, &mut to));
                assert_eq!(to, bytes[from..from + len], "{len} from {from}");
            }
        }
        assert!(!r.copy(1, 293, &mut [0; 8]));
        assert!(!r.copy(1, usize::MAX, &mut [0; 8]));
    }

    #[test]
    fn a_fault_moves_no_cursor() {
        let r = ring();
        r.write_fault(
            0,
            0,
            &SampleFault::new(FaultKind::Corrupt, "a\u{1b}[2Jb\r\nc"),
        );
        let reason = r.read_fault(0, 0).reason;
        assert_eq!(reason, "a\\u{1b}[2Jb\\r\\nc");
    }

    #[test]
    fn a_scribbled_record_is_read_without_harm() {
        let r = ring();
        let at = r.layout().record(0, 0);
        for i in 0..record_word::LEN {
            r.words().store(at + i, u64::MAX, Relaxed);
        }
        assert_eq!(r.read_fault(0, 0).kind, FaultKind::Unknown);
    }

    #[test]
    fn another_layout_is_refused() {
        let r = ring();
        let fd = || r.as_fd().try_clone_to_owned().unwrap();
        assert!(Ring::open(fd(), r.layout().shape()).is_ok());
        let mut other = r.layout().shape();
        other.lanes += 1;
        assert!(Ring::open(fd(), other).is_err());
    }
}
