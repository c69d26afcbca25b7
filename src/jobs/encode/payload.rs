//! The layout of a payload in its row, and the order of samples in a cache.
//!
//! Used in the consumer and in workers. Only sizes and numbers: no pixel, no file.
//!
//! ```text
//! row    head: length u64, .. (64 bytes) | payload | unused
//! ```

use crate::order::KeyedPermutation;

/// Bytes before the payload in a row.
pub(crate) const HEAD: usize = 64;

/// Writes the length of a payload to the head of its row.
pub(crate) fn write_length(length: u64, head: &mut [u8]) {
    if let Some(to) = head.first_chunk_mut() {
        *to = length.to_le_bytes();
    }
}

/// The payload of a row. None if its length exceeds the row.
pub(crate) fn payload_of(row: &[u8]) -> Option<&[u8]> {
    let (head, payload) = row.split_at_checked(HEAD)?;
    let length = u64::from_le_bytes(*head.first_chunk()?);
    payload.get(..usize::try_from(length).ok()?)
}

/// The order of samples in a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheOrder {
    samples: u64,
    shuffled: Option<KeyedPermutation>,
}

impl CacheOrder {
    /// The source's order, or a shuffled one with this seed.
    pub(crate) fn new(samples: u64, shuffle: Option<u64>) -> Self {
        Self {
            samples,
            shuffled: shuffle.map(|seed| KeyedPermutation::new(samples, seed, 0)),
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// The source's id of the sample at `position`. None after the last.
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
        let mut row = vec![9; 70];
        write_length(5, &mut row);
        assert_eq!(payload_of(&row), Some(&[9; 5][..]));
        for bytes in [7, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            write_length(bytes, &mut row);
            assert_eq!(payload_of(&row), None, "{bytes}");
        }
        assert_eq!(payload_of(&row[..63]), None);
    }

    #[test]
    fn an_order_has_every_sample_once() {
        for shuffle in [None, Some(0), Some(9)] {
            let order = CacheOrder::new(100, shuffle);
            let mut ids: Vec<_> = (0..100).map(|p| order.sample(p).unwrap()).collect();
            assert_eq!(ids.is_sorted(), shuffle.is_none());
            ids.sort_unstable();
            assert_eq!(ids, (0..100).collect::<Vec<_>>());
            assert_eq!(order.sample(100), None);
        }
        assert_eq!(CacheOrder::new(0, Some(1)).sample(0), None);
    }
}
