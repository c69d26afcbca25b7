//! The memory of the model: the few words of a small ring that the protocol
//! touches, and the `RingWords` through which the production functions touch it.
//!
//! A process of the model is a plain function that is run again from its start
//! with the results of its operations so far ([`Replay`]). The first operation
//! beyond the record is not performed: it becomes the process's *pending*
//! operation, and the function is left by unwinding. The explorer performs
//! pending operations, one at a time, in every order.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::words::{RingWords, WordIndex};

/// One operation on what the processes share: words, sleeps, and the kernel's
/// knowledge of who lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Load(WordIndex),
    Store(WordIndex, u64),
    /// Result: the value found; it was exchanged when that is `current`.
    CompareExchange {
        word: WordIndex,
        current: u64,
        new: u64,
    },
    Add(WordIndex, u64),
    Fence,
    SlotWait(WordIndex, u64),
    Wake(WordIndex),
    /// A look at the coordinator's pidfd: 1 = it lives.
    CoordinatorLives,
    /// waitpid, together with a look at the consumer's socket. Result: a dead
    /// worker's lane, or [`CONSUMER_GONE`].
    Reap,
    /// Starts a worker in a lane, with a serial.
    Fork(u32, u32),
    /// Waits until no worker lives.
    AllEnded,
}

/// Result of [`Op::Reap`] when the consumer has ended.
pub(crate) const CONSUMER_GONE: u64 = u64::MAX;

/// An operation performed, and what it gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) op: Op,
    pub(crate) result: u64,
}

/// What a counter word of the model always holds. `work` and `done` only count
/// up and their values are only compared with what the word holds now, so the
/// model keeps the word still and, when it is counted up, *ages* the values
/// that processes remember to [`STALE`]. Not modelled: 2^32 counts within one
/// wait.
pub(crate) const FRESH: u64 = 1;
/// A remembered value that a counter has left behind.
pub(crate) const STALE: u64 = 0;

/// Unwinds a routine at its pending operation.
struct AtPending;

/// `RingWords` that answers from a record, then stops the routine.
pub(crate) struct Replay<'a> {
    record: &'a [Entry],
    at: Cell<usize>,
    pending: RefCell<Option<Op>>,
}

impl<'a> Replay<'a> {
    /// Runs `routine` on a record: what it returned, or the operation at which
    /// the record ends.
    pub(crate) fn run<T>(
        record: &'a [Entry],
        routine: impl FnOnce(&Self) -> T,
    ) -> std::result::Result<T, Op> {
        let replay = Self {
            record,
            at: Cell::new(0),
            pending: RefCell::new(None),
        };
        match catch_unwind(AssertUnwindSafe(|| routine(&replay))) {
            Ok(value) => {
                assert_eq!(replay.at.get(), record.len(), "a routine lost its record");
                Ok(value)
            }
            Err(token) if token.is::<AtPending>() => {
                Err(replay.pending.into_inner().expect("an operation is noted"))
            }
            Err(real) => resume_unwind(real),
        }
    }

    pub(crate) fn perform(&self, op: Op) -> u64 {
        let at = self.at.get();
        match self.record.get(at) {
            Some(entry) => {
                // Ageing changes the argument of a wait, nothing else.
                let same = entry.op == op
                    || matches!((entry.op, op), (Op::SlotWait(a, _), Op::SlotWait(b, _)) if a == b);
                assert!(same, "a routine is no function of its record");
                self.at.set(at + 1);
                entry.result
            }
            None => {
                *self.pending.borrow_mut() = Some(op);
                resume_unwind(Box::new(AtPending))
            }
        }
    }

    pub(crate) fn coordinator_lives(&self) -> bool {
        self.perform(Op::CoordinatorLives) != 0
    }

    /// A dead worker's lane; `None` when the consumer has gone.
    pub(crate) fn reap(&self) -> Option<usize> {
        let lane = self.perform(Op::Reap);
        (lane != CONSUMER_GONE).then_some(lane as usize)
    }

    pub(crate) fn fork(&self, lane: usize, serial: u32) {
        self.perform(Op::Fork(lane as u32, serial));
    }

    pub(crate) fn all_ended(&self) {
        self.perform(Op::AllEnded);
    }
}

impl RingWords for Replay<'_> {
    fn load(&self, word: WordIndex, _: Ordering) -> u64 {
        self.perform(Op::Load(word))
    }

    fn store(&self, word: WordIndex, value: u64, _: Ordering) {
        self.perform(Op::Store(word, value));
    }

    fn compare_exchange(&self, word: WordIndex, current: u64, new: u64) -> Result<u64, u64> {
        let found = self.perform(Op::CompareExchange { word, current, new });
        if found == current {
            Ok(found)
        } else {
            Err(found)
        }
    }

    fn fetch_add(&self, word: WordIndex, value: u64) -> u64 {
        self.perform(Op::Add(word, value))
    }

    fn full_fence(&self) {
        self.perform(Op::Fence);
    }

    fn wait(&self, word: WordIndex, value: u64, _: Duration) {
        self.perform(Op::SlotWait(word, value));
    }

    fn wake_all(&self, word: WordIndex) {
        self.perform(Op::Wake(word));
    }
}

/// What a word of the ring is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Stop,
    Work,
    Done,
    Fatal,
    /// A word of a slot's ticket.
    Ticket(u32, WordIndex),
    /// Where workers start to look in a slot.
    Hint,
    Row(u32, u32),
    /// The attempt at which a row stands.
    Attempt(u32, u32),
    /// The bytes of a row: one word.
    Payload(u32, u32),
}

/// The words that the model keeps, of all the words of the ring.
pub(crate) struct Places {
    places: Vec<Place>,
    compact: Vec<Option<u8>>,
}

impl Places {
    pub(crate) fn new(l: &RingLayout) -> Self {
        let mut found = vec![
            (l.stop(), Place::Stop),
            (l.work(), Place::Work),
            (l.done(), Place::Done),
            (l.fatal(), Place::Fatal),
        ];
        for slot in 0..l.shape().slots {
            found.push((l.hint(slot), Place::Hint));
            found
                .extend((0..ticket_word::LEN).map(|i| (l.ticket(slot, i), Place::Ticket(slot, i))));
            for row in 0..l.shape().rows {
                found.push((l.row(slot, row), Place::Row(slot, row)));
                found.push((attempt::word(l, slot, row), Place::Attempt(slot, row)));
                found.push((payload(l, slot, row), Place::Payload(slot, row)));
            }
        }
        let mut compact = vec![None; l.total_bytes() / 8];
        for (i, (word, _)) in found.iter().enumerate() {
            compact[*word] = Some(u8::try_from(i).expect("a small ring"));
        }
        Self {
            places: found.into_iter().map(|(_, p)| p).collect(),
            compact,
        }
    }

    /// Where the model keeps a word.
    pub(crate) fn index(&self, word: WordIndex) -> usize {
        usize::from(self.compact[word].expect("the protocol touches no other word"))
    }

    pub(crate) fn place(&self, word: WordIndex) -> Place {
        self.places[self.index(word)]
    }

    pub(crate) fn all(&self) -> &[Place] {
        &self.places
    }

    pub(crate) fn is_counter(&self, word: WordIndex) -> bool {
        matches!(self.place(word), Place::Work | Place::Done)
    }

    pub(crate) fn is_hint(&self, word: WordIndex) -> bool {
        self.place(word) == Place::Hint
    }

    pub(crate) fn is_attempt(&self, word: WordIndex) -> bool {
        matches!(self.place(word), Place::Attempt(..))
    }

    /// RingWords that a row word guards.
    pub(crate) fn is_guarded(&self, word: WordIndex) -> bool {
        use ticket_word::{KEY, ROWS};
        match self.place(word) {
            Place::Ticket(_, part) => part == ROWS || KEY.contains(&part),
            Place::Attempt(..) | Place::Payload(..) => true,
            _ => false,
        }
    }

    /// The words of a fresh ring.
    pub(crate) fn fresh(&self) -> Vec<u64> {
        let value = |p: &Place| match p {
            Place::Work | Place::Done => FRESH,
            _ => 0,
        };
        self.places.iter().map(value).collect()
    }
}

/// The word that stands for a row's bytes.
pub(crate) fn payload(l: &RingLayout, slot: u32, row: u32) -> WordIndex {
    l.slot_data(slot).0 / 8 + row as usize
}
