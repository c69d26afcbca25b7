//! Messages between consumer and uploader, on an unnamed pair of packet sockets.
//!
//! Used in both. Written as JSON. Every request may be repeated with another uploader, which
//! detects what was done already.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::shard::manifest::HexHash128;
use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::TransferCounts;

/// Most names of shards in one request, so that it fits into a packet.
pub(crate) const MOST_NAMES: usize = 1000;

/// To the uploader. Names of shards have no extension.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UploadRequest {
    /// Answered by [`UploadReply::Done`].
    Open { address: StoreAddress },
    /// Downloads the object `name` into the file `to`. Answered by [`UploadReply::Found`].
    Get { name: String, to: PathBuf },
    /// Whether the object `name` exists. Answered by [`UploadReply::Found`].
    Has { name: String },
    /// Which of these shards are in the store. Downloads their manifests into `folder`. Answered by
    /// [`UploadReply::There`].
    Look {
        folder: PathBuf,
        shards: Vec<String>,
    },
    /// Uploads the file `from` as the cache's manifest, if there is none, or one with the hash
    /// `over`. Answered by [`UploadReply::Begun`].
    Begin {
        from: PathBuf,
        over: Option<HexHash128>,
    },
    /// Uploads a complete shard of `folder`. Answered by [`UploadReply::Up`].
    Send {
        folder: PathBuf,
        shard: String,
        /// Whether existing objects are replaced.
        replace: bool,
    },
    /// Uploads the file `from`, of these bytes, as the object `name`, replacing any. Answered by
    /// [`UploadReply::Ended`].
    Put {
        name: String,
        from: PathBuf,
        bytes: u64,
        hash: HexHash128,
    },
    /// Deletes these shards. Answered by [`UploadReply::Done`].
    Remove { shards: Vec<String> },
    /// Uploads index and manifest of `folder`. The manifest replaces the one with the hash `over`.
    /// Answered by [`UploadReply::Ended`].
    End {
        folder: PathBuf,
        over: HexHash128,
        replace: bool,
    },
}

/// To the consumer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum UploadReply {
    Done,
    Found(bool),
    /// Size of each requested shard's tar in bytes; `None` if it is not complete.
    There(Vec<Option<u64>>),
    /// Whether the manifest was written. If not, there is another one.
    Begun(bool),
    Up {
        shard: String,
        counts: TransferCounts,
    },
    Ended(TransferCounts),
}
