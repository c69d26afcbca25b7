//! What consumer and fetcher say to each other, on a pair of packet sockets without a name.
//!
//! In both.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::shard::manifest::{CACHE_MANIFEST, CacheManifest, Manifest};
use crate::error::Result;
use crate::order::{EpochMark, OrderOptions};
use crate::remote::address::StoreAddress;
use crate::remote::fetch::options::FetchOptions;
use crate::remote::fetch::tar_list::TarList;
use crate::remote::helper::messages::TransferCounts;

/// To the fetcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FetchRequest {
    /// Manifest and index into the folder. Answered by [`Reply::DatasetInfo`].
    Open {
        address: StoreAddress,
        options: Box<FetchOptions>,
        /// Bytes of shards that the folder may have, as a fetcher before this one found.
        room: Option<u64>,
        /// Of tar shards that are no cache: the file that their index is kept in.
        index: String,
    },
    /// What this rank needs from now on; with it come the index and, where the sampler has one,
    /// its table. Answered by [`Reply::PlannedOrder`].
    Plan {
        options: Box<OrderOptions>,
        at: EpochMark,
        epochs: Option<u64>,
    },
    /// The run stands there, as it went on.
    At(EpochMark),
    /// The run stands there, by a jump.
    Jump(EpochMark),
    /// Answered by [`Reply::Report`].
    Report,
    /// Whether it goes on. Answered by [`Reply::GoesOn`].
    Look,
}

/// To the consumer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FetchReply {
    Opened(DatasetInfo),
    Planned,
    Report(TransferCounts),
    GoesOn {
        /// Of this machine, that use the folder.
        ranks: u32,
    },
}

/// What is known of a data set before a shard of it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatasetInfo {
    /// Where manifest or list, and index, lie, and shards will.
    pub(super) folder: PathBuf,
    /// Bytes of all shards.
    pub(super) bytes: u64,
    /// Bytes of shards that may be in the folder at a time.
    pub(super) room: u64,
    /// None where it is a cache.
    pub(super) tars: Option<TarSetInfo>,
}

/// What is known of tar shards that are no cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarSetInfo {
    /// Whether their index is kept. The shards have checksums then.
    pub(super) is_indexed: bool,
    /// Most bytes that one may take, under a limit.
    pub(super) most_of_index: Option<u64>,
    /// Why one that is shared is not used.
    pub(super) unused: Option<UnusedIndex>,
}

/// Why an index that is shared in the store is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum UnusedIndex {
    /// It has so many bytes, for which the limit leaves no room.
    TooLarge(u64),
    /// It is damaged, of another version, or of other shards.
    NotWhole,
}

impl DatasetInfo {
    /// Whether shards are removed again while the run goes on.
    pub(super) fn evicts(&self) -> bool {
        self.room < self.bytes
    }

    /// Bytes of each shard, by manifest or list.
    ///
    /// # Errors
    /// One that cannot be read any more.
    pub(super) fn shard_bytes(&self) -> Result<Vec<u64>> {
        if self.tars.is_some() {
            let shards = TarList::read(&self.folder)?.shards;
            return Ok(shards.iter().map(|shard| shard.bytes).collect());
        }
        let (manifest, _) = CacheManifest::read(&self.folder.join(CACHE_MANIFEST))?;
        Ok(manifest.shards.iter().map(|shard| shard.bytes).collect())
    }
}
