//! Planted faults: wrong versions of single rules of the protocol. The explorer must detect each of
//! them, which shows that it can detect faults at all.

use std::sync::atomic::Ordering::{self, Acquire, Release};
use std::time::Duration;

use crate::error::Result;
use crate::pool::ring::attempt;
use crate::pool::ring::consumer_side::SlotWait;
use crate::pool::ring::coordinator_side;
use crate::pool::ring::coordinator_side::RowVerdict;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::{RingWords, WordIndex};
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{RowClaim, RowOutcome, WorkerStep};
use crate::processes::LIMIT;

/// The planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    /// Workers are never woken.
    DropWorkWake,
    /// The consumer is never woken.
    DropDoneWake,
    /// A worker sleeps on a value of `work` that it read after its search for rows.
    WaitUnchecked,
    /// After a death: wake, fork, and only then reopen the rows.
    WakeForkReturn,
    /// After a death: reopen the rows, but wake no process.
    BuryWithoutWake,
    /// The coordinator reopens the rows of a live worker.
    ReturnFromTheLiving,
    /// The same, and commit is a plain store instead of a compare-and-swap.
    CommitByStore,
    /// The consumer trusts a counter that workers increment after their commit.
    ReadyByCounter,
    /// A row is first marked as claimed, and then its owner is written.
    ClaimInTwoSteps,
    /// A slot of a cancelled ticket is reused while rows of it are claimed.
    ReuseUndrained,
    /// Drain treats a reopened row as final.
    DrainMissesReturned,
    /// Drain reads each row once: a row is seen claimed before the next one is voided.
    DrainInOnePass,
    /// An attempt counts for the row whatever ticket it belongs to.
    StaleAttempt,
    /// After a death: open the row, and only then record its next attempt.
    OpenThenMoveOn,
}

/// Ring words without some operations.
pub(crate) struct Tampered<'a, W> {
    pub(crate) inner: &'a W,
    pub(crate) layout: &'a RingLayout,
    pub(crate) fault: Fault,
}

impl<W: RingWords> RingWords for Tampered<'_, W> {
    fn load(&self, word: WordIndex, order: Ordering) -> u64 {
        self.inner.load(word, order)
    }

    fn store(&self, word: WordIndex, value: u64, order: Ordering) {
        self.inner.store(word, value, order);
    }

    fn compare_exchange(
        &self,
        word: WordIndex,
        current: u64,
        new: u64,
    ) -> std::result::Result<u64, u64> {
        self.inner.compare_exchange(word, current, new)
    }

    fn fetch_add(&self, word: WordIndex, value: u64) -> u64 {
        self.inner.fetch_add(word, value)
    }

    fn full_fence(&self) {
        self.inner.full_fence();
    }

    fn wait(&self, word: WordIndex, value: u64, limit: Duration) {
        self.inner.wait(word, value, limit);
    }

    fn wake_all(&self, word: WordIndex) {
        let dropped = match self.fault {
            Fault::DropWorkWake => word == self.layout.work(),
            Fault::DropDoneWake => word == self.layout.done(),
            _ => false,
        };
        if !dropped {
            self.inner.wake_all(word);
        }
    }
}

/// `worker_side::next` that reads the word to sleep on too late.
pub(crate) fn next_unchecked<W: RingWords>(w: &W, l: &RingLayout, serial: u32) -> WorkerStep {
    // The production function, interrupted when it is about to sleep.
    let looked = NoSleep(w);
    match worker_side::next(&looked, l, serial, LIMIT, None) {
        WorkerStep::Again => {
            let work = w.load(l.work(), Acquire);
            w.wait(l.work(), work, LIMIT);
            WorkerStep::Again
        }
        other => other,
    }
}

/// `worker_side::next` whose claim marks the row first, then writes the owner.
pub(crate) fn next_in_two_steps<W: RingWords>(w: &W, l: &RingLayout, serial: u32) -> WorkerStep {
    match worker_side::next(w, l, 0, LIMIT, None) {
        WorkerStep::Fill(claim) => {
            let word = RowWord::claimed(serial, claim.ticket.sequence).pack();
            w.store(l.row(claim.slot, claim.row), word, Release);
            WorkerStep::Fill(claim)
        }
        other => other,
    }
}

/// `worker_side::commit` that does not check its ownership of the row.
pub(crate) fn commit_by_store<W: RingWords>(
    w: &W,
    l: &RingLayout,
    serial: u32,
    c: RowClaim,
) -> Result<()> {
    let last = RowWord::new(RowState::Done, serial, c.ticket.sequence);
    w.store(l.row(c.slot, c.row), last.pack(), Release);
    w.fetch_add(l.done(), 1);
    w.wake_all(l.done());
    Ok(())
}

/// A word of the ticket that the protocol does not use: number of committed rows.
fn counter(l: &RingLayout, slot: u32) -> WordIndex {
    l.ticket(slot, ticket_word::LEN - 1)
}

/// `worker_side::commit` that also counts.
pub(crate) fn commit_and_count<W: RingWords>(
    w: &W,
    l: &RingLayout,
    serial: u32,
    c: RowClaim,
) -> Result<()> {
    worker_side::commit(w, l, serial, c, RowOutcome::Done)?;
    if w.fetch_add(counter(l, c.slot), 1) + 1 == u64::from(c.ticket.rows) {
        w.fetch_add(l.done(), 1);
        w.wake_all(l.done());
    }
    Ok(())
}

/// Clears the counter of a slot, if the consumer trusts it.
pub(crate) fn before_post<W: RingWords>(fault: Fault, w: &W, l: &RingLayout, slot: u32) {
    if fault == Fault::ReadyByCounter {
        w.store(counter(l, slot), 0, Release);
    }
}

/// `consumer_side::wait_ready` that trusts the counter.
pub(crate) fn wait_by_counter<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    t: Ticket,
) -> SlotWait {
    let done = w.load(l.done(), Acquire);
    if w.load(counter(l, slot), Acquire) >= u64::from(t.rows) {
        return SlotWait::Ready;
    }
    w.wait(l.done(), done, LIMIT);
    SlotWait::Again
}

/// `coordinator_side::resolve_rows_of` in the wrong order.
pub(crate) fn wake_fork_return<W: RingWords>(
    w: &W,
    l: &RingLayout,
    dead: u32,
    fork: impl FnOnce(),
) {
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
    coordinator_side::wake_consumer(w, l);
    fork();
    for held in coordinator_side::rows_claimed_by(w, l, dead) {
        coordinator_side::resolve_row(w, l, held, RowVerdict::Retry);
    }
}

/// `coordinator_side::resolve_rows_of` without its last lines.
pub(crate) fn return_silently<W: RingWords>(w: &W, l: &RingLayout, dead: u32) {
    for held in coordinator_side::rows_claimed_by(w, l, dead) {
        coordinator_side::resolve_row(w, l, held, RowVerdict::Retry);
    }
}

/// `consumer_side::drain` that reads each row once, in order.
pub(crate) fn drain_in_one_pass<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) -> bool {
    let mut idle = true;
    for row in 0..t.rows {
        let open = RowWord::open(t.sequence).pack();
        let void = RowWord::void(t.sequence).pack();
        match w.compare_exchange(l.row(slot, row), open, void) {
            Ok(_) => {}
            Err(found) => idle &= RowWord::unpack(found).state != RowState::Claimed,
        }
    }
    idle
}

/// `consumer_side::drain` whose second pass only checks for claimed rows.
pub(crate) fn drain_missing_returned<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    t: Ticket,
) -> bool {
    drain_in_one_pass(w, l, slot, t);
    (0..t.rows)
        .all(|row| RowWord::unpack(w.load(l.row(slot, row), Acquire)).state != RowState::Claimed)
}

/// `attempt::load` that ignores the sequence.
pub(crate) fn attempt_of_any_ticket<W: RingWords>(w: &W, l: &RingLayout, c: &RowClaim) -> u32 {
    let word = w.load(attempt::word(l, c.slot, c.row), Acquire);
    attempt::unpack(word, word as u32)
}

/// `coordinator_side::resolve_rows_of` that advances a row in the wrong order.
pub(crate) fn open_then_move_on<W: RingWords>(w: &W, l: &RingLayout, dead: u32) {
    coordinator_side::resolve_rows_of(w, l, dead, |held| {
        coordinator_side::resolve_row(w, l, held, RowVerdict::Retry);
        attempt::store(w, l, held.slot, held.row, held.sequence, held.attempt + 1);
        RowVerdict::Retry
    });
}

/// Ring words on which no process sleeps.
struct NoSleep<'a, W>(&'a W);

impl<W: RingWords> RingWords for NoSleep<'_, W> {
    fn load(&self, word: WordIndex, order: Ordering) -> u64 {
        self.0.load(word, order)
    }

    fn store(&self, word: WordIndex, value: u64, order: Ordering) {
        self.0.store(word, value, order);
    }

    fn compare_exchange(
        &self,
        word: WordIndex,
        current: u64,
        new: u64,
    ) -> std::result::Result<u64, u64> {
        self.0.compare_exchange(word, current, new)
    }

    fn fetch_add(&self, word: WordIndex, value: u64) -> u64 {
        self.0.fetch_add(word, value)
    }

    fn full_fence(&self) {
        self.0.full_fence();
    }

    fn wait(&self, _: WordIndex, _: u64, _: Duration) {}

    fn wake_all(&self, word: WordIndex) {
        self.0.wake_all(word);
    }
}
