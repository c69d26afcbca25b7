//! Messages between consumer and fetcher, on an unnamed pair of packet sockets.
//!
//! Used in both.

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
    /// Downloads manifest and index into the folder. For a list of addresses its index comes, too.
    /// Answered by [`FetchReply::Opened`].
    Open {
        address: StoreAddress,
        options: Box<FetchOptions>,
        /// Bytes of shards that the folder may have, and the folder, if an earlier fetcher of this
        /// run found them.
        earlier: Option<(u64, PathBuf)>,
        /// For tar shards that are no cache: name of their index file.
        index: String,
    },
    /// The order of this rank. Comes with the index, and the sampler's table if there is one.
    /// Answered by [`FetchReply::Planned`].
    Plan {
        options: Box<OrderOptions>,
        at: EpochMark,
        epochs: Option<u64>,
    },
    /// The run has advanced to this position.
    At(EpochMark),
    /// The run has jumped to this position.
    Jump(EpochMark),
    /// Answered by [`FetchReply::Report`].
    Report,
    /// Checks that the fetcher responds. Answered by [`FetchReply::GoesOn`].
    Look,
}

/// To the consumer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FetchReply {
    Opened(DatasetInfo),
    Planned,
    Report(TransferCounts),
    GoesOn {
        /// Number of ranks on this machine that use the folder.
        ranks: u32,
    },
}

/// Information about a data set before its first shard is downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatasetInfo {
    /// Folder of manifest or list, index and shards.
    pub(super) folder: PathBuf,
    /// Bytes of all shards.
    pub(super) bytes: u64,
    /// Bytes of shards that may be in the folder at a time.
    pub(super) room: u64,
    /// `None` for a cache.
    pub(super) tars: Option<TarSetInfo>,
}

/// Information about tar shards that are no cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarSetInfo {
    /// Whether there is an index. Then the shards have checksums.
    pub(super) is_indexed: bool,
    /// Most bytes that an index may take, if there is a limit.
    pub(super) most_of_index: Option<u64>,
    /// Why a shared index is not used.
    pub(super) unused: Option<UnusedIndex>,
}

/// Why a shared index in the store is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum UnusedIndex {
    /// Its size in bytes exceeds the space that the limit leaves.
    TooLarge(u64),
    /// Damaged, of another version, or of other shards.
    NotWhole,
}

impl DatasetInfo {
    /// Whether shards are deleted during the run.
    pub(super) fn evicts(&self) -> bool {
        self.room < self.bytes
    }

    /// Size of each shard in bytes, from manifest or list.
    ///
    /// # Errors
    /// Manifest or list cannot be read any more.
    pub(super) fn shard_bytes(&self) -> Result<Vec<u64>> {
        if self.tars.is_some() {
            let shards = TarList::read(&self.folder)?.shards;
            return Ok(shards.iter().map(|shard| shard.bytes).collect());
        }
        let (manifest, _) = CacheManifest::read(&self.folder.join(CACHE_MANIFEST))?;
        Ok(manifest.shards.iter().map(|shard| shard.bytes).collect())
    }
}
