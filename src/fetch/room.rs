//! How many bytes of shards a folder may have, and limits that cannot work.
//!
//! In the fetcher.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::error::{needed, room, size};
use crate::fetch::board::Needs;
use crate::fetch::folder::Folder;
use crate::fetch::messages::Trouble;

/// Bytes of shards that may be in the folder at a time.
pub(super) fn room_for_shards(
    folder: &Folder,
    limit: Option<u64>,
    fixed: u64,
    bytes: &[u64],
    all: u64,
) -> Result<u64, Trouble> {
    let trouble = |what: String| {
        Trouble::new(folder.path().display().to_string(), what).of_option("fetch_limit")
    };
    let largest = bytes.iter().copied().max().unwrap_or(0);
    let Some(limit) = limit else {
        let (free, there) = (free_bytes(folder.path()), bytes_there(folder.path()));
        return match free.saturating_add(there) / 2 >= all.saturating_add(fixed) {
            true => Ok(all),
            false => Err(trouble(format!(
                "the cache has {}, and {} are free at {}: give `fetch_limit`, the most bytes \
                 that its shards may take there",
                needed(all),
                room(free),
                folder.path().display()
            ))),
        };
    };
    let left = limit.saturating_sub(fixed).min(all);
    let least = least_room(0, largest).min(all);
    if left < least {
        return Err(trouble(format!(
            "`fetch_limit` leaves {} for shards behind manifest and index, and the largest shard \
             has {}: give at least {}",
            room(left),
            needed(largest),
            needed(fixed.saturating_add(least))
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
    lengths.fold(0, |sum, meta| sum.saturating_add(meta.len()))
}

/// What to say of a limit under which a run cannot go on.
pub(super) fn too_little(folder: &Folder, needs: &[Needs], room: u64, bytes: &[u64]) -> Trouble {
    let most = needs.iter().fold(0u64, |sum, n| sum.saturating_add(n.most));
    let largest = bytes.iter().copied().max().unwrap_or(0);
    let least = least_room(most, largest);
    let ranks = match needs.len() {
        1 => String::new(),
        n => format!(" of {n} ranks"),
    };
    let about = folder.path().display().to_string();
    if least <= room {
        let what = "a shard is needed, and all that are in the folder are held by processes that \
                    use them: raise `fetch_limit`, or end what else uses this folder";
        return Trouble::new(about, what).of_option("fetch_limit");
    }
    Trouble::new(
        about,
        format!(
            "`fetch_limit` leaves {} for shards, and the batches{ranks} under way use up to {} at \
             a time: give at least {} more, or an order that goes through shards \
             (shard_shuffle), or make smaller shards",
            size(room),
            size(most),
            size(least.saturating_sub(room)),
        ),
    )
    .of_option("fetch_limit")
}

/// The least room for ranks whose batches use `most` bytes at a time: the shard that comes
/// beside them, and a quarter for what ranks hold ahead.
pub(super) fn least_room(most: u64, largest: u64) -> u64 {
    let sum = most.saturating_add(largest);
    sum.saturating_add(sum.div_ceil(3))
}
