//! How shards of an object store come to this machine, as a user says it.
//!
//! In every process.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::index::ShardOptions;

/// Where shards of an object store come to on this machine, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The folder; each data set has one of its own in it, which ranks of a machine share. Default:
    /// `$XDG_CACHE_HOME/featherload/fetched`, or `~/.cache/featherload/fetched`.
    pub dir: Option<PathBuf>,
    /// Most bytes that the folder of one data set may hold. Default: all of it, where that
    /// is at most half of what is free there; else it must be given.
    pub limit: Option<u64>,
    /// Whether a server may redirect to other hosts. It sees no credentials there, and no redirect
    /// reaches an address of this machine or of a private network. Default: within one host alone.
    pub allow_redirects: bool,
    /// Of tar shards that are no cache: how they are read. `keep` has no effect: their index is
    /// kept in the folder.
    #[serde(skip)]
    pub shards: ShardOptions,
    /// How long a fetcher that leads may stand still: other than usual in tests of that.
    pub(super) leader_limit: Option<Duration>,
}

#[cfg(feature = "internals")]
impl FetchOptions {
    /// Has a fetcher that leads and stands still so long noticed: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn leader_limit(mut self, limit: Duration) -> Self {
        self.leader_limit = Some(limit);
        self
    }
}
