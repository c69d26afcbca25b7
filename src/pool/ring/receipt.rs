//! The receipt of a final row: a fingerprint of its ticket, its attempt and how it ended. It is one
//! word of the row's record, written just before the row becomes final, by the same process.
//!
//! Used by every process. It protects against accidents. A faulty decoder may change a ticket while
//! a worker uses it, or mark an unfilled row as final. The consumer compares the receipt with its
//! ticket, so such a row is an error, never another sample in its place. It does not protect
//! against forgery: a process that forges a row can forge its bytes and its receipt too.

use std::sync::atomic::Ordering::Relaxed;

use crate::pool::ring::layout::{RingLayout, record_word};
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::{RingWords, WordIndex};

/// Fingerprint of a row's end: the attempt that filled it, or failure.
fn word(t: &Ticket, row: u32, filled: Option<u32>) -> u64 {
    let end = filled.map_or(0, |attempt| 1 + u64::from(attempt));
    let parts = [
        u64::from(t.sequence) << 32 | u64::from(t.rows),
        t.key.0[0],
        t.key.0[1],
        u64::from(row) << 32 | end,
    ];
    parts.iter().fold(0, |word, part| mix_bits(word ^ part))
}

/// Finalizer of SplitMix64: each input bit changes half of the output bits.
pub(super) fn mix_bits(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn receipt_word(l: &RingLayout, slot: u32, row: u32) -> WordIndex {
    l.record(slot, row) + record_word::RECEIPT
}

/// Call this before the row becomes final. The Release of that store covers this word.
pub(crate) fn write<W: RingWords>(
    w: &W,
    l: &RingLayout,
    (slot, row): (u32, u32),
    t: &Ticket,
    filled: Option<u32>,
) {
    w.store(receipt_word(l, slot, row), word(t, row, filled), Relaxed);
}

/// Whether the receipt confirms this end of the row.
pub(crate) fn confirms<W: RingWords>(
    w: &W,
    l: &RingLayout,
    (slot, row): (u32, u32),
    t: &Ticket,
    filled: Option<u32>,
) -> bool {
    w.load(receipt_word(l, slot, row), Relaxed) == word(t, row, filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::ring::ticket::BatchKey;

    #[test]
    fn every_part_counts() {
        let ticket = Ticket {
            sequence: 7,
            key: BatchKey([1, 2]),
            rows: 3,
        };
        let of_key = |key| Ticket {
            key: BatchKey(key),
            ..ticket
        };
        let others = [
            (
                Ticket {
                    sequence: 8,
                    ..ticket
                },
                1,
                Some(0),
            ),
            (of_key([2, 2]), 1, Some(0)),
            (of_key([2, 1]), 1, Some(0)),
            (of_key([1, 3]), 1, Some(0)),
            (Ticket { rows: 2, ..ticket }, 1, Some(0)),
            (ticket, 2, Some(0)),
            (ticket, 1, Some(1)),
            (ticket, 1, None),
        ];
        let mut seen = vec![word(&ticket, 1, Some(0))];
        for (t, row, filled) in others {
            let word = word(&t, row, filled);
            assert!(!seen.contains(&word) && word != 0);
            seen.push(word);
        }
    }
}
