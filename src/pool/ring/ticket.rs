//! The order to fill one slot: numbers, and nothing that says what rows are made of.
//!
//! Used by every process: the consumer posts it, workers and the coordinator read it
//! out of the slot's words.

use std::sync::atomic::Ordering::Relaxed;

use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::words::RingWords;

/// Which batch of its job: two numbers that the job alone reads. It has a named type for them, and
/// one place that turns that into a key and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchKey(pub [u64; 2]);

/// The order to fill one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Global and never reused; 0 is "no ticket".
    pub sequence: u32,
    pub key: BatchKey,
    /// Rows to fill, from row 0; at most the slot's rows.
    pub rows: u32,
}

/// Whether the words of a slot's ticket are still those that were posted. Nobody but the
/// consumer writes them, and it while no worker is at the slot.
pub(crate) fn is_intact<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: &Ticket) -> bool {
    let word = |word| w.load(l.ticket(slot, word), Relaxed);
    word(ticket_word::SEQUENCE) == u64::from(t.sequence)
        && ticket_word::KEY.map(word) == t.key.0
        && word(ticket_word::ROWS) == u64::from(t.rows)
}

/// The words of a slot's ticket. Only a claim keeps them from being another
/// one's; the count is bounded all the same: another worker's decoder may have
/// scribbled on it.
pub(crate) fn read<W: RingWords>(w: &W, l: &RingLayout, slot: u32, sequence: u32) -> Ticket {
    let word = |word| w.load(l.ticket(slot, word), Relaxed);
    Ticket {
        sequence,
        key: BatchKey(ticket_word::KEY.map(word)),
        rows: word(ticket_word::ROWS).min(u64::from(l.shape().rows)) as u32,
    }
}
