//! Paths and names in JSON text, which is UTF-8. Bytes that are not UTF-8 are replaced.
//!
//! Used in the consumer, by reports.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Serializes a path or a name.
pub(crate) struct LossyPath<'a>(pub(crate) &'a OsStr);

impl Serialize for LossyPath<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0.display())
    }
}

/// For `serialize_with` on a path.
pub(crate) fn lossy<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    LossyPath(path.as_os_str()).serialize(s)
}

/// Like [`lossy`], for an optional path.
pub(crate) fn lossy_option<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| LossyPath(path.as_os_str()))
        .serialize(s)
}
