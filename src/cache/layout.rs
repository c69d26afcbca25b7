//! The names of the files of a cache, and the keys of samples in a shard.
//!
//! Runs in the consumer. `shard::manifest` has the names of manifest and index, because other parts
//! of the program recognise a cache by them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) use crate::data::shard::manifest::{CACHE_INDEX as INDEX, shard_name};
use crate::error::{Error, Result};
use crate::sys::atomic_file::own_name;

/// The lock file of a cache's folder. It is empty.
pub(crate) const LOCK: &str = own_name!("lock");

/// The most bytes of a source file's stem in a sample's key.
const STEM: usize = 60;

/// The three files of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardFile {
    Tar,
    Idx,
    /// Written last: its presence makes the shard complete.
    Manifest,
}

impl ShardFile {
    pub(crate) const ALL: [Self; 3] = [Self::Tar, Self::Idx, Self::Manifest];

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Idx => "idx",
            Self::Manifest => "json",
        }
    }

    pub(crate) fn name(self, shard: u64) -> String {
        format!("{}.{}", shard_name(shard), self.extension())
    }

    /// The path of this file in the cache `folder`.
    pub(crate) fn path(self, folder: &Path, shard: u64) -> PathBuf {
        folder.join(self.name(shard))
    }
}

/// Number of the shard and kind of file for a file name; `None` for any other name.
pub(crate) fn shard_file(name: &str) -> Option<(u64, ShardFile)> {
    let (stem, extension) = name.split_once('.')?;
    let file = ShardFile::ALL
        .into_iter()
        .find(|f| f.extension() == extension)?;
    let number = stem.strip_prefix("shard-")?.parse().ok()?;
    // `shard-+00001` and `shard-0000001` parse, but are not ours.
    (shard_name(number) == stem).then_some((number, file))
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io_at("remove", path, e)),
        _ => Ok(()),
    }
}

/// Length of a file in bytes; 0 if it cannot be examined. Reading it reports the error.
pub(super) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

/// The key of a sample: its id in the cache, and the stem of its file in the source. It has only
/// characters that every file system and every reader of tars accepts.
pub(crate) fn sample_key(id: u64, source: &Path) -> String {
    let stem = source.file_stem().map(|s| s.as_encoded_bytes());
    let kept = stem.unwrap_or_default().iter().take(STEM);
    let stem: String = kept
        .map(|&b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(b),
            _ => '_',
        })
        .collect();
    format!("{id:08}_{stem}")
}

/// The error text for a path where no `kind` exists.
pub(super) fn no_such_path(kind: &str, path: &Path) -> String {
    match path.as_os_str().as_bytes().windows(3).any(|w| w == b"://") {
        true => format!("is an address, but a {kind} of this machine is needed: copy the cache"),
        false => format!("no such {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shards_are_told_from_others() {
        for shard in [0, 7, 999_999, 1_000_000, u64::MAX] {
            for file in ShardFile::ALL {
                let path = file.path(Path::new("/c"), shard);
                let name = path.file_name().unwrap().to_str().unwrap();
                assert_eq!(shard_file(name), Some((shard, file)), "{name}");
            }
        }
        for other in [
            "shard-0.tar",
            "shard-0000001.tar",
            "shard-+00001.tar",
            "shard-000001",
            "shard-000001.tar.gz",
            "shard-000001.TAR",
            "xshard-000001.tar",
            "manifest.json",
            "",
        ] {
            assert_eq!(shard_file(other), None, "{other}");
        }
    }

    #[test]
    fn keys_have_no_dots_and_are_not_long() {
        assert_eq!(sample_key(3, Path::new("a/b.c d.jpg")), "00000003_b_c_d");
        assert_eq!(sample_key(0, Path::new("é.png")), "00000000___");
        assert_eq!(sample_key(0, Path::new("")), "00000000_");
        let long = "x".repeat(300);
        assert_eq!(sample_key(123_456_789, Path::new(&long)).len(), 10 + STEM);
    }
}
