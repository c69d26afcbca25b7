//! What shards take of a disk, the least room that a run needs, and the room that a folder has.
//!
//! In consumer and fetcher.

use nix::sys::resource::{Resource, getrlimit};

/// What a file takes of a disk at least: whole blocks.
pub(super) const BLOCK: u64 = 4096;

/// What a file of so many bytes takes of the disk.
pub(super) fn on_disk(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// The least room for ranks whose batches use `most` bytes at a time: the shard that comes
/// beside them, and a quarter for what ranks hold ahead.
pub(super) fn least_room(most: u64, largest: u64) -> u64 {
    let sum = most.saturating_add(largest);
    sum.saturating_add(sum.div_ceil(3))
}

/// A sum of bytes.
pub(super) fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// What part of a limit is at most left free for an index of tars that is to be made.
#[cfg(feature = "stores")]
pub(super) const INDEX_OF_LIMIT: u64 = 4;

/// The room of a folder, and what its shards take of it.
#[derive(Debug)]
pub(crate) struct ShardSpace {
    /// Bytes of shards that may be there at a time.
    pub(crate) room: u64,
    /// Of each shard, as the disk counts them.
    pub(super) bytes: Vec<u64>,
}

impl ShardSpace {
    /// Bytes of these shards.
    pub(crate) fn bytes_of(&self, shards: &[u64]) -> u64 {
        let bytes = shards.iter().filter_map(|n| self.bytes.get(*n as usize));
        total(bytes.copied())
    }

    /// Whether there is no room for all shards: those that are read are held then, each by a
    /// descriptor.
    fn is_for_some(&self) -> bool {
        self.room < total(self.bytes.iter().copied())
    }

    /// Whether this process may not hold so many shards at a time; how many it may.
    pub(crate) fn holds_too_many(&self, shards: &[u64]) -> Option<u64> {
        // Others are needed, too: by workers' pipes, and whatever else this process does.
        let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        let most = soft / 2;
        (self.is_for_some() && shards.len() as u64 > most).then_some(most)
    }

    /// Bytes that the room lacks for these shards at a time; 0 where they fit.
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
