//! A full disk: detected before a build begins, and explained if the disk fills up during the
//! build.
//!
//! Runs in the consumer.

use std::io;

use crate::cache::cache_folder::CacheFolder;
use crate::cache::disk_estimate::DiskNeed;
use crate::error::{self, Error, Result};

/// Whether the disk was full, or the user's quota was used up.
pub(super) fn is_full(e: &Error) -> bool {
    let Error::Io { source, .. } = e else {
        return false;
    };
    // Compares kinds, because an error of a temporary file has no errno.
    matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The work that was left when the disk was full. The default: only index and manifest.
#[derive(Default)]
pub(super) struct RemainingWork {
    /// Samples in complete shards, and left-out ones.
    pub(super) done: u64,
    /// Samples of the source.
    pub(super) samples: u64,
    /// Bytes that this call wrote.
    pub(super) written: u64,
    /// Number of samples that this call handled.
    pub(super) encoded: u64,
    /// Bytes that this call was expected to write.
    pub(super) needed: u64,
    /// Bytes of the shards that this call removed to make room.
    pub(super) freed: u64,
}

/// Checks the disk space before a build.
///
/// # Errors
/// When less is available than needed.
pub(super) fn check_room(folder: &CacheFolder, need: DiskNeed, available: u64) -> Result<()> {
    if need.bytes <= available {
        return Ok(());
    }
    let about = if need.exact { "" } else { "about " };
    Err(full(
        folder,
        format!(
            "the cache needs {about}{} and {} are available: free some, name a folder \
             elsewhere, or use a resize, jpeg or a lower quality",
            error::size_rounded_up(need.bytes),
            error::size_rounded_down(available)
        ),
    ))
}

impl RemainingWork {
    /// Adds the missing space and advice to an error of a full disk. Returns any other error as it
    /// is.
    pub(super) fn explain(&self, folder: &CacheFolder, e: Error) -> Error {
        if !is_full(&e) {
            return e;
        }
        let left = self.samples.saturating_sub(self.done);
        let (rest, by) = match (self.written, self.encoded) {
            (0, _) | (_, 0) => (self.needed, ""),
            (bytes, samples) => {
                let rest = u128::from(bytes) * u128::from(left) / u128::from(samples);
                let rest = u64::try_from(rest).unwrap_or(u64::MAX);
                (rest, ", by the rate so far")
            }
        };
        let available = match folder.available() {
            Ok((bytes, _)) => error::size_rounded_down(bytes),
            Err(_) => "an unknown number of bytes".into(),
        };
        let missing = match left {
            0 => "an index or a manifest is still to be written".to_owned(),
            left => format!(
                "the other {left} of {} samples need about {}{by}",
                self.samples,
                error::size_rounded_up(rest)
            ),
        };
        let held = match self.freed {
            0 => String::new(),
            freed => format!(
                ". Removed shards hold {} until no run reads them: end trainings on this cache",
                error::size(freed)
            ),
        };
        full(
            folder,
            format!(
                "no space is left ({e}): {missing}, and {available} are available{held}. Complete shards \
                 stay, and the same command continues after them"
            ),
        )
    }
}

fn full(folder: &CacheFolder, what: String) -> Error {
    Error::io_at(
        "write to",
        folder.path(),
        io::Error::new(io::ErrorKind::StorageFull, what),
    )
}
