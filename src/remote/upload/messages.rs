//! What consumer and sender say to each other, on a pair of packet sockets without a name.
//!
//! In both. As JSON. Every request may be made again, of another sender: what is done is found.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::shard::manifest::HexHash128;
use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::TransferCounts;

/// Most names of shards in one request, so that it fits into a packet.
pub(crate) const MOST_NAMES: usize = 1000;

/// To the sender. Names of shards are without extension.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum UploadRequest {
    /// Answered by [`Reply::Done`].
    Open { address: StoreAddress },
    /// The object `name` into the file `to`. Answered by [`Reply::Found`].
    Get { name: String, to: PathBuf },
    /// Whether there is an object `name`. Answered by [`Reply::Found`].
    Has { name: String },
    /// Which of these shards are in the store; the manifest of each that is comes into `folder`.
    /// Answered by [`Reply::There`].
    Look {
        folder: PathBuf,
        shards: Vec<String>,
    },
    /// The file `from` becomes the cache's manifest, where there is none, or one of the hash
    /// `over`. Answered by [`Reply::Begun`].
    Begin {
        from: PathBuf,
        over: Option<HexHash128>,
    },
    /// A shard of `folder`, which is whole there. Answered by [`Reply::Up`].
    Send {
        folder: PathBuf,
        shard: String,
        /// Whether objects that are there are replaced.
        replace: bool,
    },
    /// The file `from`, of these bytes, becomes the object `name`, whatever is there. Answered by
    /// [`Reply::EarlyEnd`].
    Put {
        name: String,
        from: PathBuf,
        bytes: u64,
        hash: HexHash128,
    },
    /// These shards go. Answered by [`Reply::Done`].
    Remove { shards: Vec<String> },
    /// Index and manifest of `folder`; the manifest takes the place of one of the hash `over`.
    /// Answered by [`Reply::EarlyEnd`].
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
    /// Bytes of the tar of each shard that was asked for; none of one that is not whole there.
    There(Vec<Option<u64>>),
    /// Whether the manifest was written; else another one is there.
    Begun(bool),
    Up {
        shard: String,
        counts: TransferCounts,
    },
    Ended(TransferCounts),
}
