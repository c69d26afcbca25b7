//! Paths and names in JSON, whose text is UTF-8: bytes that are none have a
//! replacement in it.
//!
//! Used in the consumer, by reports.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// A path or a name, as JSON has it.
pub(crate) struct LossyPath<'a>(pub(crate) &'a OsStr);

impl Serialize for LossyPath<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0.display())
    }
}

/// For a path that is a field of what is derived.
pub(crate) fn lossy<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
    LossyPath(path.as_os_str()).serialize(s)
}

/// The same of a path that may be missing.
pub(crate) fn lossy_option<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| LossyPath(path.as_os_str()))
        .serialize(s)
}
