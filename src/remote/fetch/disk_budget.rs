//! Disk space for shards in a folder, and limits that cannot work.
//!
//! Runs in the fetcher.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::error::{size, size_rounded_down, size_rounded_up};
use crate::order::Sampler;
use crate::remote::fetch::checksums;
use crate::remote::fetch::demand_file;
use crate::remote::fetch::demand_file::RankDemand;
use crate::remote::fetch::remote_dataset::DatasetFiles;
use crate::remote::fetch::shard_space::{BLOCK, INDEX_OF_LIMIT, least_room, on_disk, total};
use crate::remote::helper::messages::HelperError;

/// Small files of a folder, one block each: `leader.lock`, the mark of a folder of featherload, and
/// the leader's error.
const SMALL_FILES: u64 = 3;

/// Bytes that the folder takes besides its shards, with one rank.
pub(super) fn other_bytes(manifest: u64, index: u64, shards: usize) -> u64 {
    let files = [
        manifest,
        index,
        demand_file::length(shards),
        checksums::length(shards),
    ];
    let bytes = files.map(on_disk).into_iter();
    bytes.fold(SMALL_FILES * BLOCK, u64::saturating_add)
}

/// Space for shards, without the demand files of other ranks. If all shards fit, it is the whole
/// space, because none is ever deleted. `None` without ranks.
pub(super) fn room_of_ranks(needs: &[RankDemand], bytes: &[u64]) -> Option<u64> {
    let room = needs.iter().map(|needs| needs.room).min()?;
    let others = needs.len() as u64 - 1;
    let demand_files = on_disk(demand_file::length(bytes.len())).saturating_mul(others);
    Some(match room < total(bytes.iter().copied()) {
        true => room.saturating_sub(demand_files),
        false => room,
    })
}

/// Bytes of shards that may be in the folder at a time, out of `all`. `fixed`: what it takes
/// besides them. `index`: space reserved for an index.
pub(super) fn room_for_shards(
    DatasetFiles { folder, bytes, .. }: &DatasetFiles,
    limit: Option<u64>,
    (fixed, index): (u64, u64),
    all: u64,
) -> Result<u64, HelperError> {
    let error = |what: String| HelperError::of_path(folder.path(), what).of_option("fetch_limit");
    let largest = bytes.iter().copied().max().unwrap_or(0);
    let Some(limit) = limit else {
        let (free, there) = (free_bytes(folder.path()), bytes_there(folder.path()));
        return match free.saturating_add(there) / 2
            >= all.saturating_add(fixed).saturating_add(index)
        {
            true => Ok(all),
            false => Err(error(format!(
                "the shards have {}, and {} are free at {}: give `fetch_limit`, the most bytes \
                 that its shards may take there",
                size_rounded_up(all),
                size_rounded_down(free),
                folder.path().display()
            ))),
        };
    };
    let left = limit.saturating_sub(fixed).saturating_sub(index).min(all);
    // An index is made from one shard at a time.
    let most = match index {
        0 => 0,
        _ => largest,
    };
    let least = least_room(most, largest).min(all);
    if left < least {
        let enough = fixed.saturating_add(least);
        // The reserve grows with the limit.
        let enough = match index {
            0 => enough,
            _ => enough
                .div_ceil(INDEX_OF_LIMIT - 1)
                .saturating_mul(INDEX_OF_LIMIT),
        };
        return Err(error(format!(
            "`fetch_limit` leaves {} for shards after manifest and index, but the largest shard \
             has {}: give at least {}",
            size_rounded_down(left),
            size_rounded_up(largest),
            size_rounded_up(enough)
        )));
    }
    Ok(left)
}

fn free_bytes(path: &Path) -> u64 {
    statvfs(path).map_or(0, |s| {
        s.blocks_available().saturating_mul(s.fragment_size())
    })
}

fn bytes_there(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let lengths = entries.filter_map(|entry| entry.metadata().ok());
    // In units of 512 bytes, for any disk.
    total(lengths.map(|meta| meta.blocks().saturating_mul(512)))
}

/// How to reduce the space that a run with this order needs.
pub(super) fn advice(sampler: &Sampler) -> String {
    match sampler {
        Sampler::ShardShuffle { window, .. } => {
            format!("lower `shuffle_window` ({window} samples now) or `batch_size`")
        }
        Sampler::Sequential => "lower `batch_size`".to_owned(),
        _ => "an order that goes through shards (`sampler: shard-shuffle`)".to_owned(),
    }
}

/// Most bytes that the batches of all ranks use at a time.
pub(super) fn most_bytes(needs: &[RankDemand]) -> u64 {
    total(needs.iter().map(|needs| needs.most))
}

/// Error text for a limit that leaves too little space.
pub(super) fn limit_error(files: &DatasetFiles, needs: &[RankDemand], room: u64) -> HelperError {
    let error =
        |what: String| HelperError::of_path(files.folder.path(), what).of_option("fetch_limit");
    let most = most_bytes(needs);
    let largest = files.bytes.iter().copied().max().unwrap_or(0);
    let least = least_room(most, largest);
    let ranks = match needs.len() {
        1 => String::new(),
        n => format!(" of {n} ranks"),
    };
    if least <= room {
        let what = "a shard is needed, but all shards in the folder are in use by other processes: \
                    raise `fetch_limit`, or end what else uses this folder";
        return error(what.to_owned());
    }
    error(format!(
        "`fetch_limit` leaves {} for shards, and the batches{ranks} under way use up to {} at a \
         time: give at least {} more, or {}, or make smaller shards",
        size(room),
        size(most),
        size(least.saturating_sub(room)),
        files.advice
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_in_whole_blocks() {
        let counted = [0, 1, 4096, 4097, u64::MAX].map(on_disk);
        assert_eq!(counted[..4], [0, 4096, 4096, 8192]);
        // 600 shards: a demand file of two blocks, and checksums of three.
        assert_eq!(other_bytes(1, 5000, 600), 4096 * (1 + 2 + 2 + 3 + 3));
    }

    #[test]
    fn an_order_through_shards_is_not_advised_where_there_is_one() {
        let window = Sampler::ShardShuffle {
            shard: None,
            window: 4096,
        };
        assert_eq!(
            advice(&window),
            "lower `shuffle_window` (4096 samples now) or `batch_size`"
        );
        assert_eq!(advice(&Sampler::Sequential), "lower `batch_size`");
        assert!(advice(&Sampler::Shuffle).contains("`sampler: shard-shuffle`"));
        let weighted = Sampler::RepeatedAugmentation { repeats: 3 };
        assert!(advice(&weighted).contains("goes through shards"));
    }

    #[test]
    fn each_further_demand_file_takes_of_the_room() {
        let needs = |room| RankDemand {
            most: 0,
            room,
            distances: vec![0; 3],
        };
        assert_eq!(room_of_ranks(&[], &[9000; 3]), None);
        assert_eq!(room_of_ranks(&[needs(20_000)], &[9000; 3]), Some(20_000));
        let three = [needs(20_000), needs(20_000), needs(20_000)];
        assert_eq!(room_of_ranks(&three, &[9000; 3]), Some(20_000 - 2 * 4096));
        // None is removed: no room is missed.
        let both = [needs(27_000), needs(27_000)];
        assert_eq!(room_of_ranks(&both, &[9000; 3]), Some(27_000));
    }
}
