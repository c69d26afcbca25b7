//! A user's options for downloads of shards.
//!
//! Used in every process.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::index::ShardOptions;

/// Folder and limits of downloaded shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The folder. Each data set has its own subfolder, which ranks of a machine share. Default:
    /// `$XDG_CACHE_HOME/featherload/fetched`, or `~/.cache/featherload/fetched`.
    pub dir: Option<PathBuf>,
    /// Most bytes in the folder of one data set. Default: the whole data set, if that is at most
    /// half of the free space; otherwise the limit is required.
    pub limit: Option<u64>,
    /// Whether a server may redirect to other hosts. They get no credentials, and no redirect
    /// reaches this machine or a private network. Default: only within one host.
    pub allow_redirects: bool,
    /// How tar shards that are no cache are read. `keep` has no effect: their index is in the
    /// folder.
    #[serde(skip)]
    pub shards: ShardOptions,
    /// Whether addresses of a list that have no object become samples that fail. Otherwise they end
    /// the run. Set by the command or the loader.
    #[serde(default)]
    pub(crate) leaves_out: bool,
    /// How long a leader may not respond; changed by tests only.
    pub(super) leader_limit: Option<Duration>,
}

#[cfg(feature = "internals")]
impl FetchOptions {
    /// Sets how long a leader may not respond, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn leader_limit(mut self, limit: Duration) -> Self {
        self.leader_limit = Some(limit);
        self
    }
}
