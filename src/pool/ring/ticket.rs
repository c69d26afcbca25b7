//! The order to fill one slot, as numbers. It does not describe the rows' contents.
//!
//! Used by every process: the consumer posts it, workers and the coordinator read it from the
//! slot's words.

use std::sync::atomic::Ordering::Relaxed;

use crate::pool::ring::layout::{RingLayout, ticket_word};
use crate::pool::ring::words::RingWords;

/// Identifies a batch within its job: two numbers that only the job interprets. Each job has its
/// own type for them, and one place that converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchKey(pub [u64; 2]);

/// The order to fill one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Unique within a pool; 0 means "no ticket".
    pub sequence: u32,
    pub key: BatchKey,
    /// Number of rows to fill, from row 0. At most the slot's rows.
    pub rows: u32,
}

/// Whether the slot's ticket still has the posted words. Only the consumer may write them, while no
/// worker uses the slot.
pub(crate) fn is_intact<W: RingWords>(w: &W, l: &RingLayout, slot: u32, t: &Ticket) -> bool {
    let word = |word| w.load(l.ticket(slot, word), Relaxed);
    word(ticket_word::SEQUENCE) == u64::from(t.sequence)
        && ticket_word::KEY.map(word) == t.key.0
        && word(ticket_word::ROWS) == u64::from(t.rows)
}

/// Reads the words of a slot's ticket. They may belong to a later ticket, unless the caller holds a
/// claim. The number of rows is bounded, because a faulty decoder may overwrite it.
pub(crate) fn read<W: RingWords>(w: &W, l: &RingLayout, slot: u32, sequence: u32) -> Ticket {
    let word = |word| w.load(l.ticket(slot, word), Relaxed);
    Ticket {
        sequence,
        key: BatchKey(ticket_word::KEY.map(word)),
        rows: word(ticket_word::ROWS).min(u64::from(l.shape().rows)) as u32,
    }
}
