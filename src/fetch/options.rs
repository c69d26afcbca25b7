//! How shards of an object store come to this machine, as a user says it.
//!
//! In every process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where shards of an object store come to on this machine, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The folder; each cache has one of its own in it, which ranks of a machine share. Default:
    /// `$XDG_CACHE_HOME/featherload/fetched`, or `~/.cache/featherload/fetched`.
    pub dir: Option<PathBuf>,
    /// Most bytes that the folder of one cache may hold. Default: all of the cache, where that
    /// is at most half of what is free there; else it must be given.
    pub limit: Option<u64>,
}
