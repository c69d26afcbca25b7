//! The current attempt at a row: 0 = its own sample, n = its n-th substitute.
//!
//! Used by every process. It is one word of the row's record: 32 bits of the ticket's sequence, 8
//! bits of attempt, and a 24-bit check value of both. A wrong check value means that another
//! function wrote the word. The sequence of another ticket means attempt 0, so nothing is reset
//! when a slot is posted again. The word outlives a worker, so the next owner of the row continues
//! with the same attempt. Only the row's owner writes it, or the coordinator after the owner's
//! death.

use std::sync::atomic::Ordering::{Acquire, Release};

use crate::pool::ring::layout::{RingLayout, record_word};
use crate::pool::ring::receipt::mix_bits;
use crate::pool::ring::words::{RingWords, WordIndex};

/// Packs attempt and sequence into a word.
pub(crate) fn pack(sequence: u32, attempt: u32) -> u64 {
    let both = u64::from(attempt & 0xff) << 32 | u64::from(sequence);
    mix_bits(both) << 40 | both
}

/// Whether the word has this sequence but a wrong check value.
pub(crate) fn is_damaged(word: u64, sequence: u32) -> bool {
    word as u32 == sequence && word != pack(sequence, (word >> 32) as u32 & 0xff)
}

/// The attempt in a word; 0 for another sequence or a damaged word.
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

/// The current attempt at a row. The caller must bound it, because a faulty decoder may overwrite
/// it.
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
