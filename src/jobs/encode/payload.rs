//! The layout of a payload in its row, and the order of samples in a cache.
//!
//! Used in the consumer and in workers. Only sizes and numbers: no pixel, no file.
//!
//! ```text
//! row    head: length u64, lengths of rasters u64, .. (64 bytes) | image | rasters | unused
//! ```

use crate::data::shard::manifest::MOST_RASTERS;
use crate::order::KeyedPermutation;

/// The lengths of an image and of its rasters.
pub(crate) type PayloadLengths = [u64; MOST_RASTERS + 1];

/// Bytes before the payload in a row.
pub(crate) const HEAD: usize = size_of::<PayloadLengths>();

/// Writes the lengths of an image and of its rasters to the head of its row.
pub(crate) fn write_lengths(lengths: &PayloadLengths, head: &mut [u8]) {
    for (to, length) in head.as_chunks_mut().0.iter_mut().zip(lengths) {
        *to = length.to_le_bytes();
    }
}

/// The bytes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SamplePayload<'a> {
    pub(crate) image: &'a [u8],
    /// By number. Those after the last are empty.
    pub(crate) rasters: [&'a [u8]; MOST_RASTERS],
}

/// The payload of a row. None if its lengths exceed the row.
pub(crate) fn payload_of(row: &[u8]) -> Option<SamplePayload<'_>> {
    let (head, payload) = row.split_at_checked(HEAD)?;
    let (image, lengths) = head.as_chunks().0.split_first()?;
    let length = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let (image, mut rest) = payload.split_at_checked(length(image)?)?;
    let mut rasters = [&[][..]; MOST_RASTERS];
    for (raster, bytes) in rasters.iter_mut().zip(lengths) {
        (*raster, rest) = rest.split_at_checked(length(bytes)?)?;
    }
    Some(SamplePayload { image, rasters })
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
        let lengths = |image, first, last| [image, first, 0, 0, 0, 0, 0, last];
        write_lengths(&lengths(3, 2, 1), &mut row);
        let mut rasters = [&[][..]; MOST_RASTERS];
        (rasters[0], rasters[6]) = (&[9; 2], &[9; 1]);
        let whole = SamplePayload {
            image: &[9; 3],
            rasters,
        };
        assert_eq!(payload_of(&row), Some(whole));
        for bytes in [7, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            for (image, first, last) in [(bytes, 0, 0), (0, bytes, 0), (0, 0, bytes)] {
                write_lengths(&lengths(image, first, last), &mut row);
                assert_eq!(payload_of(&row), None, "{bytes}");
            }
        }
        write_lengths(&lengths(4, 2, 1), &mut row);
        assert_eq!(payload_of(&row), None);
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
