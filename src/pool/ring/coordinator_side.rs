//! The coordinator's operations on the ring: resolve the rows of a dead worker, wake all processes,
//! report that the pool failed.
//!
//! Runs in the coordinator only. It resolves a row after waitpid has reported the owner's end, so
//! no other process writes it meanwhile.

use std::sync::atomic::Ordering::{Acquire, Release};

use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket;
use crate::pool::ring::words::RingWords;

/// A row that is claimed by a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClaimedRow {
    pub(crate) slot: u32,
    pub(crate) row: u32,
    pub(crate) owner: u32,
    pub(crate) sequence: u32,
    /// The current attempt at the row.
    pub(crate) attempt: u32,
}

/// Decision about a dead worker's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowVerdict {
    /// Another worker repeats the same attempt, with the same result.
    Retry,
    /// Another worker continues with the next attempt.
    NextAttempt,
    /// The row has failed. Its record holds the fault.
    Fail,
}

/// Every row claimed by `owner`.
pub(crate) fn rows_claimed_by<W: RingWords>(
    w: &W,
    l: &RingLayout,
    owner: u32,
) -> impl Iterator<Item = ClaimedRow> {
    rows_claimed_where(w, l, move |o| o == owner)
}

/// Every claimed row.
pub(crate) fn claimed_rows<W: RingWords>(
    w: &W,
    l: &RingLayout,
) -> impl Iterator<Item = ClaimedRow> {
    rows_claimed_where(w, l, |_| true)
}

/// Whether a claim is of a posted row and a valid attempt. Only the consumer can write the tickets.
/// `tries` is the number of substitutes.
pub(crate) fn is_posted<W: RingWords>(
    w: &W,
    l: &RingLayout,
    claim: &ClaimedRow,
    tries: u32,
) -> bool {
    let sequence = w.load(l.ticket(claim.slot, ticket_word::SEQUENCE), Acquire);
    let rows = ticket::read(w, l, claim.slot, claim.sequence).rows;
    sequence == u64::from(claim.sequence) && claim.row < rows && claim.attempt <= tries
}

/// Progress of the ticket in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TicketProgress {
    pub(crate) slot: u32,
    pub(crate) sequence: u32,
    /// Rows that are neither open nor claimed.
    pub(crate) ended: u32,
    /// Failed attempts over all rows.
    pub(crate) attempts: u32,
    /// Whether a row is open or claimed.
    pub(crate) unfinished: bool,
}

/// Progress of every posted ticket. Workers can overwrite the progress, but not which tickets are
/// posted.
pub(crate) fn ticket_progress<W: RingWords>(
    w: &W,
    l: &RingLayout,
    tries: u32,
) -> impl Iterator<Item = TicketProgress> {
    (0..l.shape().slots).filter_map(move |slot| {
        let sequence = w.load(l.ticket(slot, ticket_word::SEQUENCE), Acquire) as u32;
        let rows = ticket::read(w, l, slot, sequence).rows;
        let mut standing = TicketProgress {
            slot,
            sequence,
            ended: 0,
            attempts: 0,
            unfinished: false,
        };
        for row in 0..rows {
            let word = RowWord::unpack(w.load(l.row(slot, row), Acquire));
            match word.state {
                RowState::Open | RowState::Claimed => standing.unfinished = true,
                RowState::Void | RowState::Done | RowState::Failed => standing.ended += 1,
            }
            standing.attempts += attempt::load(w, l, slot, row, sequence).min(tries);
        }
        (sequence != 0).then_some(standing)
    })
}

/// Whether the row is still claimed by this owner.
pub(crate) fn is_still_claimed<W: RingWords>(w: &W, l: &RingLayout, claim: &ClaimedRow) -> bool {
    let word = RowWord::claimed(claim.owner, claim.sequence).pack();
    w.load(l.row(claim.slot, claim.row), Acquire) == word
}

/// The attempt is read after the row word. If the owner is alive, it may be newer.
fn rows_claimed_where<W: RingWords>(
    w: &W,
    l: &RingLayout,
    wanted: impl Fn(u32) -> bool,
) -> impl Iterator<Item = ClaimedRow> {
    let shape = l.shape();
    (0..shape.slots)
        .flat_map(move |slot| (0..shape.rows).map(move |row| (slot, row)))
        .filter_map(move |(slot, row)| {
            let word = RowWord::unpack(w.load(l.row(slot, row), Acquire));
            (word.state == RowState::Claimed && wanted(word.owner)).then(|| ClaimedRow {
                slot,
                row,
                owner: word.owner,
                sequence: word.sequence,
                attempt: attempt::load(w, l, slot, row, word.sequence),
            })
        })
}

/// Resolves one row of a dead worker, if owner and sequence still match. False if they do not.
pub(crate) fn resolve_row<W: RingWords>(
    w: &W,
    l: &RingLayout,
    claim: ClaimedRow,
    verdict: RowVerdict,
) -> bool {
    let from = RowWord::claimed(claim.owner, claim.sequence).pack();
    if verdict == RowVerdict::NextAttempt {
        // Before the row is open: its next owner starts with this attempt.
        let (slot, row) = (claim.slot, claim.row);
        attempt::store(w, l, slot, row, claim.sequence, claim.attempt + 1);
    }
    let to = match verdict {
        RowVerdict::Retry | RowVerdict::NextAttempt => RowWord::open(claim.sequence),
        RowVerdict::Fail => RowWord::new(RowState::Failed, claim.owner, claim.sequence),
    };
    w.compare_exchange(l.row(claim.slot, claim.row), from, to.pack())
        .is_ok()
}

/// First two steps after a death: resolves the dead worker's rows by `verdict`, then wakes all
/// workers and the consumer. The caller forks the replacement afterwards.
pub(crate) fn resolve_rows_of<W: RingWords>(
    w: &W,
    l: &RingLayout,
    owner: u32,
    mut verdict: impl FnMut(ClaimedRow) -> RowVerdict,
) -> u32 {
    let mut settled = 0;
    for claim in rows_claimed_by(w, l, owner) {
        let v = verdict(claim);
        settled += u32::from(resolve_row(w, l, claim, v));
    }
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
    wake_consumer(w, l);
    settled
}

/// Makes the consumer check again. A worker may have died between its last commit and its wake.
pub(crate) fn wake_consumer<W: RingWords>(w: &W, l: &RingLayout) {
    w.fetch_add(l.done(), 1);
    w.wake_all(l.done());
}

/// Increments the heartbeat.
pub(crate) fn count_heartbeat<W: RingWords>(w: &W, l: &RingLayout) {
    w.fetch_add(l.heartbeat(), 1);
}

/// Reports that no more rows will be filled.
pub(crate) fn give_up<W: RingWords>(w: &W, l: &RingLayout) {
    w.store(l.fatal(), 1, Release);
    wake_consumer(w, l);
}
