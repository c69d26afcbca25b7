//! What files take of a disk, and the least room that a run needs.
//!
//! In consumer and fetcher. Numbers alone.

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
