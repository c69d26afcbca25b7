//! The attempt at which a row stands: 0 = its own sample, n = the n-th that may
//! take its place.
//!
//! Used by every process. One word of the row's record: 32 bits of the ticket's
//! sequence, then 8 bits of attempt, then 24 bits that follow from both: a word without
//! them was written by none of these functions. A word of another sequence means attempt
//! 0, so nothing is reset when a slot is posted again. It outlives a worker: who
//! takes the row next goes on with the same attempt. It is written by the row's
//! owner, or by the coordinator once the owner is dead, so nobody else writes
//! it at that time.

use std::sync::atomic::Ordering::{Acquire, Release};

use crate::pool::ring::layout::{RingLayout, record_word};
use crate::pool::ring::receipt::mixed;
use crate::pool::ring::words::{RingWords, WordIndex};

/// The word of attempt `attempt` for the ticket `sequence`.
pub(crate) fn pack(sequence: u32, attempt: u32) -> u64 {
    let both = u64::from(attempt & 0xff) << 32 | u64::from(sequence);
    mixed(both) << 40 | both
}

/// Whether a word of the ticket `sequence` is none that [`pack`] gives.
pub(crate) fn is_damaged(word: u64, sequence: u32) -> bool {
    word as u32 == sequence && word != pack(sequence, (word >> 32) as u32 & 0xff)
}

/// The attempt that a word says, for the ticket `sequence`.
pub(crate) fn unpack(word: u64, sequence: u32) -> u32 {
    if word as u32 == sequence && !is_damaged(word, sequence) {
        (word >> 32) as u32 & 0xff
    } else {
        0
    }
}

pub(crate) fn word(l: &RingLayout, slot: u32, row: u32) -> WordIndex {
    l.record(slot, row) + record_word::ATTEMPT
}

/// The attempt at which a row of ticket `sequence` stands. Bound it before use:
/// workers run decoders on untrusted bytes.
pub(crate) fn load<W: RingWords>(w: &W, l: &RingLayout, slot: u32, row: u32, sequence: u32) -> u32 {
    unpack(w.load(word(l, slot, row), Acquire), sequence)
}

pub(crate) fn store<W: RingWords>(
    w: &W,
    l: &RingLayout,
    slot: u32,
    row: u32,
    sequence: u32,
    attempt: u32,
) {
    w.store(word(l, slot, row), pack(sequence, attempt), Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_ticket_is_attempt_0() {
        for sequence in [1, 2, u32::MAX] {
            for attempt in [0, 1, 8, 255] {
                let word = pack(sequence, attempt);
                assert!(!is_damaged(word, sequence));
                for bit in 32..64 {
                    let scribbled = word ^ 1 << bit;
                    assert!(is_damaged(scribbled, sequence), "{bit}");
                    assert_eq!(unpack(scribbled, sequence), 0);
                }
                assert_eq!(unpack(word, sequence), attempt);
                assert_eq!(unpack(word, sequence - 1), 0);
            }
            assert_eq!(unpack(0, sequence), 0, "a fresh ring");
        }
    }
}
