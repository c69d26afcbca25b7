//! Images of a scene that are missing or cannot be read.
//!
//! In the consumer. Counts all, names a few.

use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::lossy;

/// How many are named.
pub(super) const NAMED: usize = 10;

#[derive(Debug, Clone, Default)]
pub(super) struct Unread {
    pub(super) count: u64,
    /// The first of them.
    pub(super) named: Vec<UnreadImage>,
    /// Depths that are named by the files and are not there.
    pub(super) depths: u64,
}

/// An image that is missing or cannot be read. Its frame is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadImage {
    /// As the scene's file names it.
    pub name: String,
    /// Where it was looked for. As JSON with a replacement for bytes that are no UTF-8.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
}
