//! The memory of the model: the few words of a small ring that the protocol uses, and the access of
//! production functions to them.
//!
//! A process of the model is a plain function. It runs again from its start with the results of its
//! operations so far ([`Replay`]). The first operation beyond the record is not performed. It
//! becomes the *pending* operation of the process, and unwinding leaves the function. The explorer
//! performs pending operations, one at a time, in every order.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::words::{RingWords, WordIndex};

/// An operation on shared state: words, sleeps, and the kernel's list of live processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Load(WordIndex),
    Store(WordIndex, u64),
    /// Result: the previous value. It was exchanged if that is `current`.
    CompareExchange {
        word: WordIndex,
        current: u64,
        new: u64,
    },
    Add(WordIndex, u64),
    Fence,
    SlotWait(WordIndex, u64),
    Wake(WordIndex),
    /// Checks the coordinator's pidfd: 1 = it is alive.
    CoordinatorLives,
    /// waitpid, together with a check of the consumer's socket. Result: a dead worker's lane, or
    /// [`CONSUMER_GONE`].
    Reap,
    /// Starts a worker in a lane, with a serial.
    Fork(u32, u32),
    /// Waits until no worker is alive.
    AllEnded,
}

/// Result of [`Op::Reap`] after the consumer has ended.
pub(crate) const CONSUMER_GONE: u64 = u64::MAX;

/// A performed operation, and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) op: Op,
    pub(crate) result: u64,
}

/// The constant value of a counter word in the model. `work` and `done` only count up, and their
/// values are only compared with the current one. So the model keeps the word constant. An
/// increment instead *ages* the values that processes remember to [`STALE`]. Not modelled: 2^32
/// increments during one wait.
pub(crate) const FRESH: u64 = 1;
/// A remembered value of a counter that has been incremented since.
pub(crate) const STALE: u64 = 0;

/// Unwinds a routine at its pending operation.
struct AtPending;

/// Ring words that answer from a record, then stop the routine.
pub(crate) struct Replay<'a> {
    record: &'a [Entry],
    at: Cell<usize>,
    pending: RefCell<Option<Op>>,
}

impl<'a> Replay<'a> {
    /// Runs `routine` on a record. Returns its result, or the operation at which the record ends.
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
                // Ageing changes the argument of a wait only.
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

    /// A dead worker's lane; `None` after the consumer has ended.
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

/// The purpose of a word of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Stop,
    Work,
    Done,
    Fatal,
    /// A word of a slot's ticket.
    Ticket(u32, WordIndex),
    /// Where workers start their search in a slot.
    Hint,
    Row(u32, u32),
    /// The current attempt at a row.
    Attempt(u32, u32),
    /// The bytes of a row: one word.
    Payload(u32, u32),
}

/// The words that the model keeps, of all words of the ring.
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

    /// Index of a word in the model.
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

    /// Words that a row word guards.
    pub(crate) fn is_guarded(&self, word: WordIndex) -> bool {
        use ticket_word::{KEY, ROWS};
        match self.place(word) {
            Place::Ticket(_, part) => part == ROWS || KEY.contains(&part),
            Place::Attempt(..) | Place::Payload(..) => true,
            _ => false,
        }
    }

    /// The words of a new ring.
    pub(crate) fn fresh(&self) -> Vec<u64> {
        let value = |p: &Place| match p {
            Place::Work | Place::Done => FRESH,
            _ => 0,
        };
        self.places.iter().map(value).collect()
    }
}

/// The word for a row's bytes.
pub(crate) fn payload(l: &RingLayout, slot: u32, row: u32) -> WordIndex {
    l.slot_data(slot).0 / 8 + row as usize
}
