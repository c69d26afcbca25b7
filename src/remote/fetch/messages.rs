//! What consumer and fetcher say to each other, on a pair of packet sockets without a name; and
//! how that, and what a sender is told, stands in a packet.
//!
//! In both. As JSON: options of a plan leave fields out.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::{Mark, PlanOptions};
use crate::remote::address::Address;
use crate::remote::fetch::options::FetchOptions;

/// Most bytes of a message.
pub(crate) const LONGEST: usize = 60 << 10;

/// Most bytes of a text in one.
#[cfg(feature = "stores")]
const LONGEST_TEXT: usize = 4 << 10;

/// To the fetcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Manifest and index into the folder. Answered by [`Reply::Opened`].
    Open {
        address: Address,
        options: Box<FetchOptions>,
        /// Bytes of shards that the folder may have, as a fetcher before this one found.
        room: Option<u64>,
        /// Of tar shards that are no cache: the file that their index is kept in.
        index: String,
    },
    /// What this rank needs from now on; with it come the index and, where the sampler has one,
    /// its table. Answered by [`Reply::Planned`].
    Plan {
        options: Box<PlanOptions>,
        at: Place,
        epochs: Option<u64>,
    },
    /// The run stands there, as it went on.
    At(Place),
    /// The run stands there, by a jump.
    Jump(Place),
    /// Answered by [`Reply::Report`].
    Report,
    /// Whether it goes on. Answered by [`Reply::GoesOn`].
    Look,
}

impl Request {
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "Open",
            Self::Plan { .. } => "Plan",
            Self::At(_) => "At",
            Self::Jump(_) => "Jump",
            Self::Report => "Report",
            Self::Look => "Look",
        }
    }
}

/// Of an epoch, in front of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    epoch: u64,
    samples: u64,
}

impl From<Mark> for Place {
    fn from(at: Mark) -> Self {
        Self {
            epoch: at.epoch,
            samples: at.samples,
        }
    }
}

impl From<Place> for Mark {
    fn from(at: Place) -> Self {
        Self::new(at.epoch, at.samples)
    }
}

/// A message of a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said<T> {
    Reply(T),
    /// For the user, whatever was asked: that the store keeps it waiting, say.
    Warning(String),
}

/// To the consumer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Opened(Opened),
    Planned,
    Report(Counts),
    GoesOn {
        /// Of this machine, that use the folder.
        ranks: u32,
    },
    /// Nothing more will come, for this reason.
    Trouble(Trouble),
}

/// What is known of a data set before a shard of it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Where manifest or list, and index, lie, and shards will.
    pub(crate) folder: PathBuf,
    /// Bytes of all shards.
    pub(crate) bytes: u64,
    /// Bytes of shards that may be in the folder at a time.
    pub(crate) room: u64,
    /// None where it is a cache.
    pub(crate) tars: Option<Tars>,
}

/// What is known of tar shards that are no cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tars {
    /// Whether their index is kept. The shards have checksums then.
    pub(crate) is_indexed: bool,
    /// Most bytes that one may take, under a limit.
    pub(crate) most_of_index: Option<u64>,
    /// Why one that is shared is not used.
    pub(crate) unused: Option<Unused>,
}

/// Why an index that is shared in the store is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unused {
    /// It has so many bytes, for which the limit leaves no room.
    TooLarge(u64),
    /// It is damaged, of another version, or of other shards.
    NotWhole,
}

impl Opened {
    /// Whether shards are removed again while the run goes on.
    pub(crate) fn evicts(&self) -> bool {
        self.room < self.bytes
    }
}

/// What a fetcher did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) shards: u64,
    pub(crate) bytes: u64,
    pub(crate) removed: u64,
    pub(crate) retries: u64,
}

impl Counts {
    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            shards: self.shards + more.shards,
            bytes: self.bytes + more.bytes,
            removed: self.removed + more.removed,
            retries: self.retries + more.retries,
        }
    }
}

/// Why nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    /// The option that would have to be another one; else the data set is at fault.
    pub(crate) option: Option<String>,
    /// What it is about: an address, a folder.
    pub(crate) about: String,
    pub(crate) what: String,
}

impl Trouble {
    #[cfg(feature = "stores")]
    pub(crate) fn new(about: impl Into<String>, what: impl Into<String>) -> Self {
        let cut = |mut text: String| {
            let mut end = text.len().min(LONGEST_TEXT);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text
        };
        Self {
            option: None,
            about: cut(about.into()),
            what: cut(what.into()),
        }
    }

    /// The same, which another value of that option would mend.
    #[cfg(feature = "stores")]
    pub(crate) fn of_option(self, option: &str) -> Self {
        Self {
            option: Some(option.to_owned()),
            ..self
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self.option.as_deref() {
            Some("fetch_limit") => Error::option("fetch_limit", self.what),
            Some("fetch_dir") => Error::option("fetch_dir", self.what),
            _ => Error::dataset(self.about, self.what),
        }
    }
}

pub(crate) fn to_bytes(message: &impl Serialize) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(message)
        .map_err(|e| Error::protocol(format!("write a message to a helper: {e}")))?;
    if bytes.len() > LONGEST {
        return Err(Error::config(format!(
            "the options of the order take {} bytes, and with an object store they may take {LONGEST}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::protocol(format!("read a message of a helper: {e}")))
}
