//! Position of every word and byte of the ring.
//!
//! Pure arithmetic, the same in every process. Consumer and coordinator compare
//! [`RingLayout::hash`] in the handshake, before they use the shared memory.
//!
//! ```text
//! header        magic, hash of the layout, one cache line for each hot word
//! tickets       1 cache line for each slot
//! workers       one page for each lane, in blocks of 64
//! slots         for each: hint (1 cache line), row words, row records
//! data          for each slot, page-aligned; the job defines where rows lie
//! ```
//!
//! Each section begins on a page. A worker may write its own page of `workers`, and the sections
//! after that ([`RingLayout::read_only`]).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, size_rounded_up};
use crate::pool::ring::words::WordIndex;

/// Marks a mapping as a ring.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"fthrring");

/// Must change with every change of layout or protocol.
pub(crate) const LAYOUT_VERSION: u64 = 6;

const LINE: usize = 8;
const PAGE: usize = 4096;
const PAGE_WORDS: usize = PAGE / 8;
/// Words before the tickets.
const HEADER: usize = 4 * LINE;
const _: () = assert!(worker_word::LEN <= PAGE_WORDS);

/// Most workers of a pool.
pub(crate) const MAX_LANES: u32 = 1 << 12;

/// Worker records are reserved in blocks of this number (256 KiB), so that the ring has the same
/// size for any number of workers up to it.
const RECORD_BLOCK: usize = 64;

/// Words of a worker's record.
pub(crate) mod worker_word {
    use crate::pool::ring::words::WordIndex;

    /// Serial of the worker that uses the lane.
    pub(crate) const SERIAL: WordIndex = 0;
    pub(crate) const PID: WordIndex = 1;
    /// Written by the SIGBUS handler: 1 = the live input map broke.
    pub(crate) const BROKEN_MAP: WordIndex = 2;
    /// Written by the SIGSYS handler: number of the forbidden system call, plus 1.
    pub(crate) const REFUSED_CALL: WordIndex = 3;
    /// Rows committed by all workers that used the lane.
    pub(crate) const ROWS: WordIndex = 8;
    /// Bytes of encoded input read.
    pub(crate) const BYTES: WordIndex = 9;
    /// First of `meter::STAGES` stage times, in nanoseconds.
    pub(crate) const STAGES: WordIndex = 10;
    /// Time of the first commit, nanoseconds of the monotonic clock.
    pub(crate) const FIRST_COMMIT: WordIndex = 20;
    /// Rows that the job counts separately.
    pub(crate) const COUNTED: WordIndex = 21;
    /// Rows of truncated files.
    pub(crate) const TRUNCATED: WordIndex = 22;
    /// Images that were decoded.
    pub(crate) const DECODED: WordIndex = 23;
    /// Used words of a record. It takes a whole page, so that workers of other lanes cannot write
    /// it.
    pub(crate) const LEN: usize = 32;
}

/// Words of a slot's ticket.
pub(crate) mod ticket_word {
    use crate::pool::ring::words::WordIndex;

    pub(crate) const SEQUENCE: WordIndex = 0;
    pub(crate) const KEY: [WordIndex; 2] = [1, 2];
    pub(crate) const ROWS: WordIndex = 3;
    /// One cache line.
    pub(crate) const LEN: usize = 8;
}

/// Words of a row's record: attempt, fault, receipt.
pub(crate) mod record_word {
    use crate::pool::ring::words::WordIndex;

    /// Sequence and attempt, see `ring::attempt`.
    pub(crate) const ATTEMPT: WordIndex = 0;
    /// Fault kind in the low byte, length of the text in the next 16 bits.
    pub(crate) const FAULT: WordIndex = 1;
    /// How the row ended, see `ring::receipt`.
    pub(crate) const RECEIPT: WordIndex = 2;
    /// Text of the fault, at most `TEXT_BYTES` of UTF-8.
    pub(crate) const TEXT: WordIndex = 3;
    pub(crate) const LEN: usize = 32;
    pub(crate) const TEXT_BYTES: usize = (LEN - TEXT) * 8;
}

/// The parameters of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RingShape {
    /// Number of slots. Each holds one batch.
    pub slots: u32,
    /// Rows per slot: the batch size.
    pub rows: u32,
    /// Bytes of data per slot: enough for the rows of any batch.
    pub slot_bytes: u64,
    /// Number of workers at a time.
    pub lanes: u32,
}

/// Positions of all sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingLayout {
    shape: RingShape,
    workers: usize,
    /// First word that every worker may write.
    shared: usize,
    slots: usize,
    slot_words: usize,
    data: usize,
    slot_bytes: usize,
    total: usize,
}

impl RingLayout {
    /// Computes a layout, or reports which parameter is out of range.
    pub(crate) fn new(shape: RingShape) -> Result<Self> {
        let RingShape {
            slots,
            rows,
            slot_bytes,
            lanes,
        } = shape;
        for (what, value, most) in [
            ("depth", slots, 1 << 10),
            ("batch_size", rows, 1 << 20),
            ("workers", lanes, MAX_LANES),
        ] {
            if value == 0 || value > most {
                return Err(Error::option(
                    what,
                    format!("`{what}` is {value}: use 1 to {most}"),
                ));
            }
        }
        if slot_bytes == 0 {
            return Err(Error::config("a slot of 0 bytes holds no row"));
        }
        let too_large = || {
            Error::config(format!(
                "a batch of {rows} rows takes {}, and {slots} of them do not fit the address \
                 space: lower `batch_size` or `depth`",
                size_rounded_up(slot_bytes)
            ))
        };
        let tickets = HEADER + slots as usize * ticket_word::LEN;
        let workers = tickets.next_multiple_of(PAGE_WORDS);
        let records = (lanes as usize).next_multiple_of(RECORD_BLOCK);
        let shared = workers + records * PAGE_WORDS;
        let slot_table = shared + LINE;
        let row_words = (rows as usize).next_multiple_of(LINE);
        let slot_words = LINE + row_words + rows as usize * record_word::LEN;
        let words = slot_table + slots as usize * slot_words;
        let data = (words * 8).next_multiple_of(PAGE);
        let slot_bytes = usize::try_from(slot_bytes)
            .ok()
            .and_then(|b| b.checked_next_multiple_of(PAGE))
            .ok_or_else(too_large)?;
        let total = slot_bytes
            .checked_mul(slots as usize)
            .and_then(|b| b.checked_add(data))
            .filter(|b| *b <= isize::MAX as usize)
            .ok_or_else(too_large)?;
        Ok(Self {
            shape,
            workers,
            shared,
            slots: slot_table,
            slot_words,
            data,
            slot_bytes,
            total,
        })
    }

    pub(crate) fn shape(&self) -> RingShape {
        self.shape
    }

    /// Bytes of the whole ring: the amount that is pinned for a GPU.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total
    }

    /// Fingerprint that changes when any word or byte moves.
    pub(crate) fn hash(&self) -> u64 {
        let numbers = [
            LAYOUT_VERSION,
            u64::from(self.shape.slots),
            u64::from(self.shape.rows),
            self.shape.slot_bytes,
            u64::from(self.shape.lanes),
            self.workers as u64,
            worker_word::LEN as u64,
            self.shared as u64,
            self.slots as u64,
            self.slot_words as u64,
            ticket_word::LEN as u64,
            record_word::LEN as u64,
            self.data as u64,
            self.slot_bytes as u64,
        ];
        // FNV-1a is enough for a few numbers.
        numbers.iter().fold(0xcbf2_9ce4_8422_2325, |h, n| {
            (h ^ n).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    pub(crate) fn magic(&self) -> WordIndex {
        0
    }

    pub(crate) fn hash_word(&self) -> WordIndex {
        1
    }

    /// 1 = workers end after their current row.
    pub(crate) fn stop(&self) -> WordIndex {
        LINE
    }

    /// Counts up when there may be rows to claim. Workers sleep on it.
    pub(crate) fn work(&self) -> WordIndex {
        2 * LINE
    }

    /// Nonzero = the pool failed. The coordinator reports the reason.
    pub(crate) fn fatal(&self) -> WordIndex {
        3 * LINE
    }

    /// Counts the coordinator's checks of the rows.
    pub(crate) fn heartbeat(&self) -> WordIndex {
        3 * LINE + 1
    }

    /// A word of a slot's ticket.
    pub(crate) fn ticket(&self, slot: u32, word: WordIndex) -> WordIndex {
        assert!(slot < self.shape.slots, "slot {slot} does not exist");
        HEADER + slot as usize * ticket_word::LEN + word
    }

    /// First word of a lane's record.
    pub(crate) fn worker(&self, lane: u32) -> WordIndex {
        assert!(lane < self.shape.lanes, "lane {lane} does not exist");
        self.workers + lane as usize * PAGE_WORDS
    }

    /// Counts up when a slot may be ready or the pool has failed. The consumer sleeps on it.
    pub(crate) fn done(&self) -> WordIndex {
        self.shared
    }

    /// Byte ranges, in whole pages, that the worker of a lane only reads.
    pub(crate) fn read_only(&self, lane: u32) -> [Range<usize>; 2] {
        let own = self.worker(lane) * 8;
        [0..own, own + PAGE..self.shared * 8]
    }

    fn slot(&self, slot: u32) -> WordIndex {
        assert!(slot < self.shape.slots, "slot {slot} does not exist");
        self.slots + slot as usize * self.slot_words
    }

    /// Where workers start their search for an open row of a slot.
    pub(crate) fn hint(&self, slot: u32) -> WordIndex {
        self.slot(slot)
    }

    /// The word of a row.
    pub(crate) fn row(&self, slot: u32, row: u32) -> WordIndex {
        assert!(row < self.shape.rows, "row {row} does not exist");
        self.slot(slot) + LINE + row as usize
    }

    /// First word of a row's record.
    pub(crate) fn record(&self, slot: u32, row: u32) -> WordIndex {
        assert!(row < self.shape.rows, "row {row} does not exist");
        let row_words = (self.shape.rows as usize).next_multiple_of(LINE);
        self.slot(slot) + LINE + row_words + row as usize * record_word::LEN
    }

    /// Offset and length in bytes of a slot's data.
    pub(crate) fn slot_data(&self, slot: u32) -> (usize, usize) {
        assert!(slot < self.shape.slots, "slot {slot} does not exist");
        (
            self.data + slot as usize * self.slot_bytes,
            self.shape.slot_bytes as usize,
        )
    }

    /// End of a slot's data and padding, in bytes.
    pub(crate) fn slot_end(&self, slot: u32) -> usize {
        self.slot_data(slot).0 + self.slot_bytes
    }

    /// Offset and length of a part of a slot's data, in bytes; `None` if it is outside.
    pub(crate) fn part(&self, slot: u32, part: &Range<usize>) -> Option<(usize, usize)> {
        let (start, len) = self.slot_data(slot);
        (part.start <= part.end && part.end <= len).then(|| (start + part.start, part.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(slots: u32, rows: u32, slot_bytes: u64, lanes: u32) -> RingShape {
        RingShape {
            slots,
            rows,
            slot_bytes,
            lanes,
        }
    }

    #[test]
    fn nothing_overlaps_and_all_lies_inside() {
        for s in [
            shape(1, 1, 1, 1),
            shape(3, 5, 4995, 4),
            shape(2, 64, 1 << 18, 1),
        ] {
            let l = RingLayout::new(s).unwrap();
            let mut used = vec![0u8; l.total_bytes().div_ceil(8)];
            let mut take = |from: usize, n: usize| {
                for w in &mut used[from..from + n] {
                    assert_eq!(*w, 0);
                    *w = 1;
                }
            };
            for w in [
                l.magic(),
                l.hash_word(),
                l.stop(),
                l.work(),
                l.done(),
                l.fatal(),
            ] {
                take(w, 1);
            }
            for lane in 0..s.lanes {
                take(l.worker(lane), PAGE_WORDS);
            }
            for slot in 0..s.slots {
                take(l.ticket(slot, 0), ticket_word::LEN);
                take(l.hint(slot), LINE);
                for row in 0..s.rows {
                    take(l.row(slot, row), 1);
                    take(l.record(slot, row), record_word::LEN);
                }
                let (start, len) = l.slot_data(slot);
                assert_eq!(start % PAGE, 0);
                take(start / 8, len.div_ceil(8));
                assert_eq!(l.part(slot, &(0..len)), Some((start, len)));
                assert_eq!(l.part(slot, &(len..len)), Some((start + len, 0)));
                for outside in [0..len + 1, len + 1..len + 1, usize::MAX..usize::MAX] {
                    assert_eq!(l.part(slot, &outside), None);
                }
                #[expect(clippy::reversed_empty_ranges, reason = "what must be refused")]
                let reversed = 1..0;
                assert_eq!(l.part(slot, &reversed), None);
            }
        }
    }

    #[test]
    fn a_worker_only_reads_tickets_and_other_lanes_records() {
        let s = shape(300, 5, 4995, 70);
        let l = RingLayout::new(s).unwrap();
        for lane in [0, 1, 69] {
            let only_read = |word| l.read_only(lane).iter().any(|r| r.contains(&(word * 8)));
            let ends =
                |r: &Range<usize>| r.start.is_multiple_of(PAGE) && r.end.is_multiple_of(PAGE);
            assert!(l.read_only(lane).iter().all(ends));
            for word in [l.magic(), l.hash_word(), l.stop(), l.work(), l.fatal()] {
                assert!(only_read(word));
            }
            for slot in 0..s.slots {
                assert!((0..ticket_word::LEN).all(|w| only_read(l.ticket(slot, w))));
            }
            for other in 0..s.lanes {
                let record = l.worker(other);
                let all = (record..record + worker_word::LEN).map(only_read);
                assert!(all.into_iter().all(|r| r == (other != lane)));
            }
            assert!(!only_read(l.done()));
            for slot in 0..s.slots {
                assert!(!only_read(l.hint(slot)) && !only_read(l.row(slot, 0)));
                assert!(!only_read(l.record(slot, 4)) && !only_read(l.slot_data(slot).0 / 8));
            }
        }
    }

    #[test]
    fn the_hash_sees_every_number() {
        let base = RingLayout::new(shape(2, 4, 100, 3)).unwrap().hash();
        for s in [
            shape(3, 4, 100, 3),
            shape(2, 5, 100, 3),
            shape(2, 4, 101, 3),
            shape(2, 4, 100, 4),
        ] {
            assert_ne!(RingLayout::new(s).unwrap().hash(), base);
        }
    }

    #[test]
    fn the_ring_has_the_same_size_for_1_to_64_workers() {
        for (rows, row_bytes) in [(1, 1), (8, 602_112), (64, 301_056)] {
            let size = |lanes| {
                let l = RingLayout::new(shape(3, rows, row_bytes, lanes)).unwrap();
                l.total_bytes()
            };
            assert!((1..=64).all(|lanes| size(lanes) == size(1)));
            assert!(size(65) > size(64));
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        for (s, name) in [
            (shape(0, 1, 1, 1), "`depth` is 0"),
            (shape(1, 0, 1, 1), "`batch_size` is 0: use 1 to 1048576"),
            (shape(1, 1, 1, 0), "workers"),
            (shape(1, 1, 0, 1), "slot"),
            (
                shape(1000, 1 << 20, 1 << 60, 1),
                "lower `batch_size` or `depth`",
            ),
        ] {
            let e = RingLayout::new(s).unwrap_err().to_string();
            assert!(e.contains(name), "{e}");
        }
    }
}
