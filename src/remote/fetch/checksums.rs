//! Checksums of downloaded shards, in the folder's file `checksums`.
//!
//! Runs in the fetcher. The leader writes it. A wrong or missing entry costs a request or a
//! download, and never causes a wrong row.
//!
//! ```text
//! for each shard: xxh3-128 as u128, little-endian; 0 = none
//! ```

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result};

const NAME: &str = "checksums";
const ENTRY: usize = size_of::<u128>();

/// Size of the file in bytes.
pub(super) fn length(shards: usize) -> u64 {
    (shards * ENTRY) as u64
}

/// Checksums of downloaded shards.
#[derive(Debug)]
pub(super) struct ShardChecksums {
    path: PathBuf,
    hashes: Vec<Option<HexHash128>>,
    /// A write failed, and the user was warned.
    has_warned: bool,
}

impl ShardChecksums {
    /// Reads the checksums of a folder. Unreadable entries are empty.
    pub(super) fn read(folder: &Path, shards: usize) -> Self {
        let path = folder.join(NAME);
        let mut bytes = Vec::new();
        // The file may have been changed, so at most its proper length is read.
        let read =
            File::open(&path).and_then(|file| file.take(length(shards)).read_to_end(&mut bytes));
        let entries = match read {
            Ok(_) => bytes.as_chunks::<ENTRY>().0,
            Err(_) => &[],
        };
        let entries = entries.iter();
        let mut hashes: Vec<_> = entries
            .map(|entry| Some(u128::from_le_bytes(*entry)).filter(|hash| *hash != 0))
            .map(|hash| hash.map(HexHash128))
            .collect();
        hashes.resize(shards, None);
        Self {
            path,
            hashes,
            has_warned: false,
        }
    }

    pub(super) fn get(&self, shard: usize) -> Option<HexHash128> {
        self.hashes.get(shard).copied().flatten()
    }

    /// Stores a checksum. Returns the first error as a warning, because the run does not need it.
    pub(super) fn keep(&mut self, shard: usize, hash: HexHash128) -> Option<String> {
        let e = self.write(shard, hash).err()?;
        if self.has_warned {
            return None;
        }
        self.has_warned = true;
        Some(format!(
            "{e}: so this file lacks the checksums of some shards. The next run asks the store for \
             them, or downloads these shards again"
        ))
    }

    /// # Errors
    /// A system call that fails.
    pub(super) fn write(&mut self, shard: usize, hash: HexHash128) -> Result<()> {
        if self.get(shard) == Some(hash) {
            return Ok(());
        }
        let failed = |e| Error::io_at("write", &self.path, e);
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false);
        let file = file.open(&self.path).map_err(failed)?;
        let written = file.write_all_at(&hash.0.to_le_bytes(), length(shard));
        written.map_err(failed)?;
        if let Some(entry) = self.hashes.get_mut(shard) {
            *entry = Some(hash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn of_checksums_that_cannot_be_written_the_user_is_warned_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(NAME)).unwrap();
        let mut book = ShardChecksums::read(dir.path(), 2);
        let warning = book.keep(0, HexHash128(7)).unwrap();
        assert!(
            warning.contains("checksums") && warning.contains("next run"),
            "{warning}"
        );
        assert_eq!(book.keep(1, HexHash128(8)), None);
        assert_eq!((book.get(0), book.get(1)), (None, None));
    }

    #[test]
    fn checksums_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        let hashes = [None, Some(HexHash128(7)), None, Some(HexHash128(u128::MAX))];
        let mut book = ShardChecksums::read(folder, 4);
        for (n, hash) in hashes.iter().enumerate() {
            assert_eq!(book.get(n), None);
            if let Some(hash) = hash {
                book.write(n, *hash).unwrap();
            }
        }
        // If it is cut, or has another number of shards, the complete entries are used.
        for shards in [4, 2, 9] {
            let book = ShardChecksums::read(folder, shards);
            for n in 0..10 {
                let want = hashes.get(n).copied().flatten().filter(|_| n < shards);
                assert_eq!(book.get(n), want, "{n} of {shards}");
            }
        }
        fs::write(folder.join(NAME), [1; ENTRY + 3]).unwrap();
        let book = ShardChecksums::read(folder, 4);
        assert!(book.get(0).is_some() && book.get(1).is_none());
    }
}
