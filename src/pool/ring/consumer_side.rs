//! The consumer's operations on the ring: post tickets, check and wait for slots, cancel, drain,
//! stop.
//!
//! Runs in the consumer only. Never claims or fills a row.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::receipt;
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::RingWords;

/// Posts a ticket into a slot. No worker may hold a row of it.
pub(crate) fn post<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) {
    debug_assert!(t.rows <= l.shape().rows && t.sequence != 0);
    for (word, key) in ticket_word::KEY.into_iter().zip(t.key.0) {
        w.store(l.ticket(slot, word), key, Relaxed);
    }
    w.store(
        l.ticket(slot, ticket_word::ROWS),
        u64::from(t.rows),
        Relaxed,
    );
    w.store(l.hint(slot), 0, Relaxed);
    for row in 0..l.shape().rows {
        let word = if row < t.rows {
            RowWord::open(t.sequence)
        } else {
            RowWord::void(t.sequence)
        };
        // SYNC: pairs with the compare-and-swap in `worker_side::claim`. A worker that claims the
        // row sees the words of the ticket.
        w.store(l.row(slot, row), word.pack(), Release);
    }
    // SYNC: pairs with the Acquire load in `worker_side::claim`.
    w.store(
        l.ticket(slot, ticket_word::SEQUENCE),
        u64::from(t.sequence),
        Release,
    );
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
}

/// Whether every row of the ticket is final. Reads the row words, not a counter.
pub(crate) fn is_ready<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) -> bool {
    (0..t.rows).all(|row| is_final(w, l, slot, row, t))
}

/// Whether a row of a ticket is final.
pub(crate) fn is_final<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    row: u32,
    t: Ticket,
) -> bool {
    // SYNC: Acquire pairs with the compare-and-swap in `worker_side::commit`. A process that sees
    // the row final also sees its bytes.
    RowWord::unpack(w.load(l.row(slot, row), Acquire)).is_final(t.sequence)
}

/// Damage that a faulty decoder did to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotDamage {
    /// The words of the ticket.
    Ticket,
    /// The words of a row.
    Row(u32),
}

/// Finds words of a posted ticket that the protocol does not write. Such a slot would never become
/// ready, or would deliver another batch.
pub(crate) fn damage<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    t: Ticket,
) -> Option<SlotDamage> {
    if !ticket::is_intact(w, l, slot, &t) {
        return Some(SlotDamage::Ticket);
    }
    let damaged = |row: &u32| {
        let found = w.load(l.row(slot, *row), Acquire);
        let word = RowWord::unpack(found);
        let attempt = w.load(attempt::word(l, slot, *row), Acquire);
        word.sequence != t.sequence
            || word.state == RowState::Void
            || RowWord::is_unknown(found)
            || attempt::is_damaged(attempt, t.sequence)
    };
    (0..t.rows).find(damaged).map(SlotDamage::Row)
}

/// Like [`damage`], for a cancelled ticket, whose open rows are void. Such a slot would never
/// become free, or too early.
pub(crate) fn damage_of_cancelled<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    t: Ticket,
) -> Option<SlotDamage> {
    if !ticket::is_intact(w, l, slot, &t) {
        return Some(SlotDamage::Ticket);
    }
    let damaged = |row: &u32| {
        let word = w.load(l.row(slot, *row), Acquire);
        RowWord::unpack(word).sequence != t.sequence || RowWord::is_unknown(word)
    };
    (0..t.rows).find(damaged).map(SlotDamage::Row)
}

/// The attempt that filled a final row, at most `tries`; inner `None` if all failed. Returns `None`
/// if the receipt does not confirm it: no worker filled the row, or it has another sample.
pub(crate) fn final_attempt<W: RingWords>(
    w: &W,
    l: &RingLayout,
    (slot, row): (u32, u32),
    t: &Ticket,
    tries: u32,
) -> Option<Option<u32>> {
    let attempt = w.load(attempt::word(l, slot, row), Acquire);
    if attempt::is_damaged(attempt, t.sequence) {
        return None;
    }
    let end =
        (!row_failed(w, l, slot, row)).then(|| attempt::unpack(attempt, t.sequence).min(tries));
    receipt::confirms(w, l, (slot, row), t, end).then_some(end)
}

/// Result of a wait for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotWait {
    Ready,
    /// The coordinator reports that the pool failed.
    Fatal,
    /// The limit passed, or something changed: check again.
    Again,
}

/// Waits once for a slot: reads the word, checks the condition again, sleeps on that value.
pub(crate) fn wait_ready<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    t: Ticket,
    limit: Duration,
) -> SlotWait {
    let done = w.load(l.done(), Acquire);
    if is_ready(w, l, slot, t) {
        return SlotWait::Ready;
    }
    if w.load(l.fatal(), Acquire) != 0 {
        return SlotWait::Fatal;
    }
    w.wait(l.done(), done, limit);
    SlotWait::Again
}

/// Whether a final row failed.
pub(crate) fn row_failed<W: RingWords>(w: &W, l: &RingLayout, slot: u32, row: u32) -> bool {
    RowWord::unpack(w.load(l.row(slot, row), Acquire)).state == RowState::Failed
}

/// Voids the unclaimed rows of a ticket. Returns whether the slot is free, that is, no worker fills
/// a row of it. Call it until it returns true: the row of a dead worker becomes open again.
pub(crate) fn drain<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) -> bool {
    for row in 0..t.rows {
        // A row that is not open does not change.
        let open = RowWord::open(t.sequence).pack();
        let _ = w.compare_exchange(l.row(slot, row), open, RowWord::void(t.sequence).pack());
    }
    // Check for claimed rows only after voiding the open ones. A worker wakes us if its commit
    // leaves neither open nor claimed rows. If we checked its row first, it could still see other
    // rows open, wake no process, and leave us asleep. The fence pairs with the one in `commit`:
    // either the worker sees the rows void, or we see its row final. An open row here was reopened
    // by the coordinator meanwhile, which wakes us. A word with another sequence tells nothing
    // about the row; `damage_of_cancelled` finds it.
    w.full_fence();
    (0..t.rows).all(|row| {
        let word = w.load(l.row(slot, row), Acquire);
        let RowWord {
            state, sequence, ..
        } = RowWord::unpack(word);
        sequence == t.sequence
            && !RowWord::is_unknown(word)
            && !matches!(state, RowState::Open | RowState::Claimed)
    })
}

/// Removes the ticket from a slot whose rows are final. From then on no worker claims a row of it,
/// even if a row word is overwritten.
pub(crate) fn retire<W: RingWords>(w: &W, l: &RingLayout, slot: u32) {
    w.store(l.ticket(slot, ticket_word::SEQUENCE), 0, Release);
}

/// Tells every worker to end after its current row.
pub(crate) fn stop<W: RingWords>(w: &W, l: &RingLayout) {
    w.store(l.stop(), 1, Release);
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
}
