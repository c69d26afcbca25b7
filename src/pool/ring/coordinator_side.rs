//! What the coordinator does to the ring: give back the rows of a worker that
//! is dead for certain, wake everybody, say that the pool ended.
//!
//! Runs in the coordinator only, after waitpid has said that the owner ended,
//! so nobody but us can touch the row between the look and the swap.

use std::sync::atomic::Ordering::{Acquire, Release};

use crate::pool::ring::attempt;
use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::row_word::{RowState, RowWord};
use crate::pool::ring::ticket;
use crate::pool::ring::words::RingWords;

/// A row found in the hands of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClaimedRow {
    pub(crate) slot: u32,
    pub(crate) row: u32,
    pub(crate) owner: u32,
    pub(crate) sequence: u32,
    /// Which of the samples that may stand in the row is under way.
    pub(crate) attempt: u32,
}

/// What becomes of a dead worker's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowVerdict {
    /// Another worker redoes it, at the same attempt, with the same bytes.
    Retry,
    /// Another worker goes on with the next attempt.
    NextAttempt,
    /// It is final without pixels; why was written into its record.
    Fail,
}

/// Every row in the hands of `owner`.
pub(crate) fn rows_claimed_by<W: RingWords>(
    w: &W,
    l: &RingLayout,
    owner: u32,
) -> impl Iterator<Item = ClaimedRow> {
    claimed_if(w, l, move |o| o == owner)
}

/// Every row in the hands of anybody.
pub(crate) fn claimed_rows<W: RingWords>(
    w: &W,
    l: &RingLayout,
) -> impl Iterator<Item = ClaimedRow> {
    claimed_if(w, l, |_| true)
}

/// Whether a claim is of a row and an attempt that somebody asked for. Which tickets are out
/// only the consumer writes; `tries` are the attempts behind the first.
pub(crate) fn is_posted<W: RingWords>(
    w: &W,
    l: &RingLayout,
    held: &ClaimedRow,
    tries: u32,
) -> bool {
    let sequence = w.load(l.ticket(held.slot, ticket_word::SEQUENCE), Acquire);
    let rows = ticket::read(w, l, held.slot, held.sequence).rows;
    sequence == u64::from(held.sequence) && held.row < rows && held.attempt <= tries
}

/// How far the ticket of a slot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TicketProgress {
    pub(crate) slot: u32,
    pub(crate) sequence: u32,
    /// Rows that are neither open nor in somebody's hands.
    pub(crate) ended: u32,
    /// Attempts that were given up, of all its rows.
    pub(crate) attempts: u32,
    /// Whether a row is left to be ended.
    pub(crate) unfinished: bool,
}

/// The tickets that are out, each with its progress. Workers cannot write which ones those
/// are, but they do write the progress.
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

/// Whether a row is in these hands now.
pub(crate) fn is_still_claimed<W: RingWords>(w: &W, l: &RingLayout, held: &ClaimedRow) -> bool {
    let word = RowWord::claimed(held.owner, held.sequence).pack();
    w.load(l.row(held.slot, held.row), Acquire) == word
}

/// The attempt is read after the row word: of a row in living hands it may be
/// that of a moment later.
fn claimed_if<W: RingWords>(
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

/// Settles one row of a dead worker, on its exact owner and sequence. False
/// when the row was not that owner's any more.
pub(crate) fn resolve_row<W: RingWords>(
    w: &W,
    l: &RingLayout,
    held: ClaimedRow,
    verdict: RowVerdict,
) -> bool {
    let from = RowWord::claimed(held.owner, held.sequence).pack();
    if verdict == RowVerdict::NextAttempt {
        // Before the row is open: who claims it begins with this attempt.
        let (slot, row) = (held.slot, held.row);
        attempt::store(w, l, slot, row, held.sequence, held.attempt + 1);
    }
    let to = match verdict {
        RowVerdict::Retry | RowVerdict::NextAttempt => RowWord::open(held.sequence),
        RowVerdict::Fail => RowWord::new(RowState::Failed, held.owner, held.sequence),
    };
    w.compare_exchange(l.row(held.slot, held.row), from, to.pack())
        .is_ok()
}

/// Step one and two after a death: settle the dead worker's rows by `verdict`,
/// then wake all workers and the consumer. The replacement is forked after it,
/// by the caller.
pub(crate) fn resolve_rows_of<W: RingWords>(
    w: &W,
    l: &RingLayout,
    owner: u32,
    mut verdict: impl FnMut(ClaimedRow) -> RowVerdict,
) -> u32 {
    let mut settled = 0;
    for held in rows_claimed_by(w, l, owner) {
        let v = verdict(held);
        settled += u32::from(resolve_row(w, l, held, v));
    }
    w.fetch_add(l.work(), 1);
    w.wake_all(l.work());
    wake_consumer(w, l);
    settled
}

/// Makes the consumer look again: a worker may have died between its last
/// commit and its wake.
pub(crate) fn wake_consumer<W: RingWords>(w: &W, l: &RingLayout) {
    w.fetch_add(l.done(), 1);
    w.wake_all(l.done());
}

/// Says that the coordinator looks after the rows.
pub(crate) fn count_heartbeat<W: RingWords>(w: &W, l: &RingLayout) {
    w.fetch_add(l.heartbeat(), 1);
}

/// Says that no more rows will come.
pub(crate) fn give_up<W: RingWords>(w: &W, l: &RingLayout) {
    w.store(l.fatal(), 1, Release);
    wake_consumer(w, l);
}
