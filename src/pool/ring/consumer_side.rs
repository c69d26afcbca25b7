//! What the consumer does to the ring: post tickets, see that a slot is ready,
//! cancel, drain, stop.
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

/// Posts a ticket into a slot that no worker holds a row of.
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
        // SYNC: pairs with the compare-and-swap in `worker_side::claim`; who
        // claims the row sees the ticket's words.
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

/// True when every row of the ticket is final. The row words decide, not a counter.
pub(crate) fn is_ready<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) -> bool {
    (0..t.rows).all(|row| is_final(w, l, slot, row, t))
}

/// True when a row of a ticket is final.
pub(crate) fn is_final<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    row: u32,
    t: Ticket,
) -> bool {
    // SYNC: Acquire pairs with the compare-and-swap in `worker_side::commit`:
    // whoever sees the row final sees its bytes.
    RowWord::unpack(w.load(l.row(slot, row), Acquire)).is_final(t.sequence)
}

/// What a worker's decoder has destroyed in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotDamage {
    /// The words of the ticket.
    Ticket,
    /// What is known of a row.
    Row(u32),
}

/// What of a posted ticket is not as the protocol writes it: it would never become ready, or
/// be another batch.
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

/// The same of a ticket that was cancelled, whose open rows are void: its slot would never
/// become free, or while somebody is at it.
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

/// How a final row ended: filled at an attempt of `tries` at most, or failed. None when it does
/// not say of itself that it ended so: nobody has filled it, or with another sample.
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
    receipt::holds(w, l, (slot, row), t, end).then_some(end)
}

/// What a wait for a slot found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotWait {
    Ready,
    /// The coordinator gave up.
    Fatal,
    /// `limit` passed, or something changed: look around and wait again.
    Again,
}

/// One wait for a slot: read the word, re-check the condition, sleep on that value.
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

/// Whether a final row carries pixels.
pub(crate) fn row_failed<W: RingWords>(w: &W, l: &RingLayout, slot: u32, row: u32) -> bool {
    RowWord::unpack(w.load(l.row(slot, row), Acquire)).state == RowState::Failed
}

/// Takes back what nobody has claimed of a ticket and says whether the slot may
/// be used again, that is, whether no row of it is being filled. Call again
/// until it is true: a dead worker's row comes back open.
pub(crate) fn drain<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: Ticket) -> bool {
    for row in 0..t.rows {
        // A row that is not open stays what it is.
        let open = RowWord::open(t.sequence).pack();
        let _ = w.compare_exchange(l.row(slot, row), open, RowWord::void(t.sequence).pack());
    }
    // Only now look for rows that live on. A worker wakes us when its commit
    // leaves neither open nor claimed rows; if we saw its row claimed before we
    // had voided the others, it could still see them open and wake nobody, and
    // we would sleep on. With the fence, the one in `commit` and every row
    // voided before the look, it sees them void or we see its row final. An
    // open row here was given back by the coordinator meanwhile: it wakes us.
    // A word that is none of this ticket's says nothing of who is at the row:
    // `damage_of_cancelled` finds it.
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

/// Takes the ticket out of a slot whose rows are final: who looks for work from here on claims
/// none of them, whatever is written to their words.
pub(crate) fn retire<W: RingWords>(w: &W, l: &RingLayout, slot: u32) {
    w.store(l.ticket(slot, ticket_word::SEQUENCE), 0, Release);
}

/// Tells every worker to end after its present row.
pub(crate) fn stop<W: RingWords>(w: &W, l: &RingLayout) {
    w.store(l.stop(), 1, Release);
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
}
