//! Disk space of shards: what they take, the least that a run needs, and what a folder has.
//!
//! Used in consumer and fetcher.

use nix::sys::resource::{Resource, getrlimit};

/// Block size: the least space of a file.
pub(super) const BLOCK: u64 = 4096;

/// Disk space of a file with this number of bytes.
pub(super) fn on_disk(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Least space for ranks whose batches use `most` bytes at a time: these, the shard that is
/// downloaded, and a quarter for what ranks lease ahead.
pub(super) fn least_room(most: u64, largest: u64) -> u64 {
    let sum = most.saturating_add(largest);
    sum.saturating_add(sum.div_ceil(3))
}

/// A sum of bytes.
pub(super) fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Largest fraction of a limit to reserve for an index of tars.
#[cfg(feature = "stores")]
pub(super) const INDEX_OF_LIMIT: u64 = 4;

/// The space of a folder, and the sizes of its shards.
#[derive(Debug)]
pub(crate) struct ShardSpace {
    /// Bytes of shards that may be here at a time.
    pub(crate) room: u64,
    /// Size of each shard on disk.
    pub(super) bytes: Vec<u64>,
}

impl ShardSpace {
    /// Bytes of these shards.
    pub(crate) fn bytes_of(&self, shards: &[u64]) -> u64 {
        let bytes = shards.iter().filter_map(|n| self.bytes.get(*n as usize));
        total(bytes.copied())
    }

    /// Whether not all shards fit. Then those that are read are leased, with one descriptor each.
    fn is_for_some(&self) -> bool {
        self.room < total(self.bytes.iter().copied())
    }

    /// The most shards that this process may lease at a time, if these are too many.
    pub(crate) fn holds_too_many(&self, shards: &[u64]) -> Option<u64> {
        // Others are needed too: for workers' pipes, and for the rest of the process.
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        let most = soft / 2;
        (self.is_for_some() && shards.len() as u64 > most).then_some(most)
    }

    /// Bytes of space that are missing for these shards together; 0 if they fit.
    pub(crate) fn missing_bytes(&self, shards: &[u64]) -> u64 {
        if !self.is_for_some() {
            return 0;
        }
        let largest = self.bytes.iter().copied().max().unwrap_or(0);
        least_room(self.bytes_of(shards), largest).saturating_sub(self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_for_what_is_read_and_one_more_and_a_third_of_that() {
        let of = |room| ShardSpace {
            room,
            bytes: vec![10, 20, 30, 40],
        };
        assert_eq!(of(100).missing_bytes(&[0, 1, 2, 3]), 0);
        assert_eq!(of(100).holds_too_many(&[0; 1 << 20]), None);
        // 10 + 20 and the largest, 70, and 24.
        assert_eq!(of(94).missing_bytes(&[0, 1]), 0);
        assert_eq!(of(93).missing_bytes(&[0, 1]), 1);
        assert_eq!(of(93).missing_bytes(&[]), 0);
        assert_eq!(of(93).bytes_of(&[3, 0]), 50);
        let numbers: Vec<u64> = (0..1 << 20).collect();
        assert!(of(93).holds_too_many(&numbers).is_some());
        assert_eq!(of(93).holds_too_many(&[0]), None);
        let huge = ShardSpace {
            room: u64::MAX - 1,
            bytes: vec![u64::MAX, u64::MAX],
        };
        assert_eq!(huge.missing_bytes(&[0]), 1);
    }
}
