//! A worker's operations on the ring: claim the next open row, record the next attempt, commit,
//! sleep.
//!
//! Runs in workers only. A worker never posts, frees or reopens anything.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::RingWords;

/// A row that this worker owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowClaim {
    pub(crate) slot: u32,
    pub(crate) row: u32,
    pub(crate) ticket: Ticket,
    /// First attempt to make. Earlier ones may have failed in other workers.
    pub(crate) attempt: u32,
}

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowOutcome {
    Done,
    Failed,
}

/// What the worker must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerStep {
    Fill(RowClaim),
    /// Woken, or the limit passed: call again.
    Again,
    Stop,
}

/// Whether a worker prefers this row to others of the same ticket, because its input is in memory.
/// `None` = no preferences.
pub(crate) type RowPreference<'a> = Option<&'a mut dyn FnMut(&Ticket, u32) -> bool>;

/// Most open rows of a ticket to check for a preference.
const ASKED: usize = 8;

/// What to do next. Sleeps at most `limit` if there is nothing to do.
pub(crate) fn next<W: RingWords>(
    w: &W,
    l: &RingLayout,
    serial: u32,
    limit: Duration,
    prefers: RowPreference<'_>,
) -> WorkerStep {
    let work = w.load(l.work(), Acquire);
    if w.load(l.stop(), Acquire) != 0 {
        return WorkerStep::Stop;
    }
    if let Some(claim) = claim(w, l, serial, prefers) {
        return WorkerStep::Fill(claim);
    }
    w.wait(l.work(), work, limit);
    WorkerStep::Again
}

/// Claims an open row of the ticket with the lowest sequence. A preference never delays an older
/// ticket.
fn claim<W: RingWords>(
    w: &W,
    l: &RingLayout,
    serial: u32,
    mut prefers: RowPreference<'_>,
) -> Option<RowClaim> {
    let mut tried = 0;
    loop {
        // The lowest sequence not tried yet. There are few slots, and each needs one load, so no
        // order is stored.
        let (slot, sequence) = (0..l.shape().slots)
            .filter_map(|slot| {
                // SYNC: pairs with the Release store in `consumer_side::post`.
                let s = w.load(l.ticket(slot, ticket_word::SEQUENCE), Acquire) as u32;
                (s > tried).then_some((slot, s))
            })
            .min_by_key(|&(_, s)| s)?;
        let preferred = prefers
            .as_mut()
            .and_then(|prefers| claim_preferred(w, l, slot, sequence, serial, prefers));
        if let Some(row) = preferred.or_else(|| claim_in(w, l, slot, sequence, serial)) {
            // The claim keeps the slot: the consumer cannot post into it now, so these words are of
            // our ticket.
            return Some(RowClaim {
                slot,
                row,
                ticket: ticket::read(w, l, slot, sequence),
                attempt: attempt::load(w, l, slot, row, sequence),
            });
        }
        tried = sequence;
    }
}

/// The rows of a slot, starting at the hint. A stale hint costs time only.
fn rows<W: RingWords>(w: &W, l: &RingLayout, slot: u32) -> impl Iterator<Item = u32> {
    let rows = l.shape().rows;
    let start = (w.load(l.hint(slot), Relaxed) % u64::from(rows)) as u32;
    (0..rows).map(move |i| (start + i) % rows)
}

/// Claims a row if it is open.
fn claim_row<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    row: u32,
    sequence: u32,
    serial: u32,
) -> bool {
    let open = RowWord::open(sequence).pack();
    let claimed = RowWord::claimed(serial, sequence).pack();
    let won = w.compare_exchange(l.row(slot, row), open, claimed).is_ok();
    if won {
        w.store(l.hint(slot), u64::from(row) + 1, Relaxed);
    }
    won
}

/// Claims a preferred row, if there is one among the first open rows. The slot may already have
/// another ticket. Then no row of `sequence` is open, and no claim succeeds.
fn claim_preferred<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    sequence: u32,
    serial: u32,
    prefers: &mut dyn FnMut(&Ticket, u32) -> bool,
) -> Option<u32> {
    let open = RowWord::open(sequence).pack();
    let ticket = ticket::read(w, l, slot, sequence);
    rows(w, l, slot)
        .filter(|&row| w.load(l.row(slot, row), Relaxed) == open)
        .take(ASKED)
        .find(|&row| prefers(&ticket, row) && claim_row(w, l, slot, row, sequence, serial))
}

/// Claims the first open row of a slot.
fn claim_in<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    sequence: u32,
    serial: u32,
) -> Option<u32> {
    let open = RowWord::open(sequence).pack();
    // A load before the compare-and-swap keeps the cache line shared during the search. The swap
    // decides.
    rows(w, l, slot).find(|&row| {
        w.load(l.row(slot, row), Relaxed) == open && claim_row(w, l, slot, row, sequence, serial)
    })
}

/// Records the next attempt before it begins. If this worker dies in it, the next owner starts with
/// the same attempt.
pub(crate) fn record_attempt<W: RingWords>(w: &W, l: &RingLayout, c: &RowClaim, attempt: u32) {
    attempt::store(w, l, c.slot, c.row, c.ticket.sequence, attempt);
}

/// Makes a row final, and wakes the consumer if it was the slot's last.
///
/// # Errors
/// The row is not owned by this worker any more: the protocol is broken, and the worker must end.
pub(crate) fn commit<W: RingWords>(
    w: &W,
    l: &RingLayout,
    serial: u32,
    c: RowClaim,
    outcome: RowOutcome,
) -> Result<()> {
    let state = match outcome {
        RowOutcome::Done => RowState::Done,
        RowOutcome::Failed => RowState::Failed,
    };
    let mine = RowWord::claimed(serial, c.ticket.sequence).pack();
    let last = RowWord::new(state, serial, c.ticket.sequence).pack();
    // SYNC: the swap is a Release for the row's bytes. It pairs with the Acquire load in
    // `consumer_side::is_final`.
    w.compare_exchange(l.row(c.slot, c.row), mine, last)
        .map_err(|found| {
            Error::protocol(format!(
                "worker {serial} committed row {} of slot {}, whose word is {found:#018x}",
                c.row, c.slot
            ))
        })?;
    // Two workers may commit the last two rows of a slot at once. With the fence at least one of
    // them sees both, so the consumer is woken. Void rows of a cancelled ticket count, because the
    // consumer waits for the slot.
    w.full_fence();
    let settled = (0..c.ticket.rows).all(|row| {
        let word = RowWord::unpack(w.load(l.row(c.slot, row), Acquire));
        !matches!(word.state, RowState::Open | RowState::Claimed)
    });
    if settled {
        w.fetch_add(l.done(), 1);
        w.wake_all(l.done());
    }
    Ok(())
}
