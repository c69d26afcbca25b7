//! How the payload of a sample lies in its row, and which sample stands at which
//! place of a cache.
//!
//! Used in the consumer and in workers. Sizes and numbers alone: no pixel, no
//! file.
//!
//! ```text
//! row    head: bytes u64, height u32, width u32, 0.. (64 bytes) | payload | unused
//! ```

use crate::plan::Permutation;

/// What stands in front of a payload in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadHead {
    pub(crate) bytes: u64,
    /// Of the picture in the payload, upright.
    pub(crate) height: u32,
    pub(crate) width: u32,
}

impl PayloadHead {
    pub(crate) const BYTES: usize = 64;

    /// Writes it to the beginning of a row of at least [`PayloadHead::BYTES`].
    pub(crate) fn write(self, row: &mut [u8]) {
        for (to, word) in row.chunks_exact_mut(4).zip([
            self.bytes as u32,
            (self.bytes >> 32) as u32,
            self.height,
            self.width,
        ]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The head of a row and its payload; none when there is no room for what the
    /// head says.
    pub(crate) fn split(row: &[u8]) -> Option<(Self, &[u8])> {
        let (head, payload) = row.split_at_checked(Self::BYTES)?;
        let word = |at: usize| {
            let bytes = head.get(4 * at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let head = Self {
            bytes: u64::from(word(0)?) | u64::from(word(1)?) << 32,
            height: word(2)?,
            width: word(3)?,
        };
        let bytes = usize::try_from(head.bytes).ok()?;
        Some((head, payload.get(..bytes)?))
    }
}

/// Which sample stands at which place of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    samples: u64,
    shuffled: Option<Permutation>,
}

impl Order {
    /// The source's order, or that of a seed.
    pub(crate) fn new(samples: u64, shuffle: Option<u64>) -> Self {
        Self {
            samples,
            shuffled: shuffle.map(|seed| Permutation::new(samples, seed, 0)),
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// The id in the source of what stands at `position`; none behind the last.
    pub(crate) fn sample(&self, position: u64) -> Option<u64> {
        if position >= self.samples {
            return None;
        }
        Some(self.shuffled.map_or(position, |p| p.at(position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_no_more_than_there_is() {
        let head = PayloadHead {
            bytes: 5,
            height: 7,
            width: u32::MAX,
        };
        let mut row = vec![9; 70];
        head.write(&mut row);
        assert_eq!(PayloadHead::split(&row), Some((head, &[9; 5][..])));
        for bytes in [7, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            PayloadHead { bytes, ..head }.write(&mut row);
            assert_eq!(PayloadHead::split(&row), None, "{bytes}");
        }
        assert_eq!(PayloadHead::split(&row[..63]), None);
    }

    #[test]
    fn an_order_has_every_sample_once() {
        for shuffle in [None, Some(0), Some(9)] {
            let order = Order::new(100, shuffle);
            let mut ids: Vec<_> = (0..100).map(|p| order.sample(p).unwrap()).collect();
            assert_eq!(ids.is_sorted(), shuffle.is_none());
            ids.sort_unstable();
            assert_eq!(ids, (0..100).collect::<Vec<_>>());
            assert_eq!(order.sample(100), None);
        }
        assert_eq!(Order::new(0, Some(1)).sample(0), None);
    }
}
