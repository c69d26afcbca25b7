//! Demand of a rank, for the leader: a file in the folder. The rank's own fetcher writes it, and
//! locks it while it lives.
//!
//! Runs in the fetcher. Written in place, so a reader may see half of it; then its checksum is
//! wrong.
//!
//! ```text
//!  0  magic, 8 bytes
//!  8  xxh3-128 of the rest
//! 24  most bytes that one batch uses u64, limit of the folder in bytes u64,
//!     then for each shard the batches to its next use u64
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use twox_hash::XxHash3_128;

use crate::error::{Error, Result};
use crate::remote::fetch::folder::{BOARD_BEGIN, BOARD_END, FetchFolder};
use crate::sys::atomic_file::unique_name;

const MAGIC: &[u8; 8] = b"\x89FLBRD1\n";
const HEAD: usize = 24;

/// Size of the file in bytes.
pub(super) fn length(shards: usize) -> u64 {
    (HEAD + 16 + shards * 8) as u64
}

/// Demand of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RankDemand {
    /// Most bytes of shards that one of its batches uses; 0 = not known yet.
    pub(super) most: u64,
    /// Bytes of shards that it allows in the folder.
    pub(super) room: u64,
    /// Batches to the next use of each shard.
    pub(super) distances: Vec<u64>,
}

impl RankDemand {
    fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.most, self.room];
        let numbers = numbers.iter().chain(&self.distances);
        let content: Vec<u8> = numbers.flat_map(|n| n.to_le_bytes()).collect();
        let hash = XxHash3_128::oneshot(&content).to_le_bytes();
        [MAGIC.as_slice(), &hash, &content].concat()
    }

    fn from_bytes(bytes: &[u8], shards: usize) -> Option<Self> {
        let content = bytes.strip_prefix(MAGIC)?;
        let (hash, content) = content.split_first_chunk::<16>()?;
        if XxHash3_128::oneshot(content).to_le_bytes() != *hash {
            return None;
        }
        let mut numbers = content
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes));
        let needs = Self {
            most: numbers.next()?,
            room: numbers.next()?,
            distances: numbers.collect(),
        };
        (needs.distances.len() == shards).then_some(needs)
    }
}

/// The demand file of this rank. Dropping removes it.
#[derive(Debug)]
pub(super) struct DemandFile {
    file: File,
    path: PathBuf,
    written: Vec<u8>,
}

impl DemandFile {
    /// # Errors
    /// A system call that fails.
    pub(super) fn create_file(folder: &FetchFolder, number: u32) -> Result<Self> {
        let name = format!("{}-{number}", unique_name());
        let path = folder.file(&format!("{BOARD_BEGIN}{name}{BOARD_END}"));
        let new = folder.file(&format!(".new-{name}"));
        let failed = |e: io::Error| Error::io_at("write", &path, e);
        let file = File::create(&new).map_err(failed)?;
        // It gets its name after it is locked, because an unlocked file means a dead rank.
        file.lock().map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)?;
        Ok(Self {
            file,
            path,
            written: Vec::new(),
        })
    }

    /// # Errors
    /// A system call that fails.
    pub(super) fn write(&mut self, needs: &RankDemand) -> Result<()> {
        let bytes = needs.to_bytes();
        if bytes == self.written {
            return Ok(());
        }
        let write = self.file.write_all_at(&bytes, 0);
        write.map_err(|e| Error::io_at("write", &self.path, e))?;
        self.written = bytes;
        Ok(())
    }
}

impl Drop for DemandFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Demand of all live ranks of a folder, as far as it is written. Removes files of dead ranks if
/// `removes_dead`.
///
/// # Errors
/// A system call that fails.
pub(super) fn read_all(
    folder: &FetchFolder,
    shards: usize,
    removes_dead: bool,
) -> Result<Vec<RankDemand>> {
    let mut all = Vec::new();
    for file in live_files(folder, removes_dead)? {
        let mut bytes = vec![0; length(shards) as usize];
        if file.read_exact_at(&mut bytes, 0).is_ok() {
            all.extend(RankDemand::from_bytes(&bytes, shards));
        }
    }
    Ok(all)
}

/// Number of live ranks that use a folder.
///
/// # Errors
/// A system call that fails.
pub(super) fn count(folder: &FetchFolder) -> Result<u32> {
    let live = live_files(folder, false)?;
    Ok(u32::try_from(live.len()).unwrap_or(u32::MAX))
}

/// Demand files of live ranks. Removes files of dead ranks if `removes_dead`.
fn live_files(folder: &FetchFolder, removes_dead: bool) -> Result<Vec<File>> {
    let failed = |e: io::Error| Error::io_at("read the folder", folder.path(), e);
    let mut all = Vec::new();
    for entry in fs::read_dir(folder.path()).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        if !(name.starts_with(BOARD_BEGIN) && name.ends_with(BOARD_END)) {
            continue;
        }
        let path = folder.file(name);
        // It may be removed at any time.
        let Ok(file) = File::open(&path) else {
            continue;
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => all.push(file),
            Ok(()) if removes_dead => {
                let _ = fs::remove_file(&path);
            }
            _ => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, FetchFolder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = FetchFolder::at(dir.path().to_owned());
        (dir, folder)
    }

    #[test]
    fn needs_of_live_ranks_are_read_and_those_of_dead_ones_removed() {
        let (dir, folder) = folder();
        let needs = |n: u64| RankDemand {
            most: n,
            room: 100,
            distances: vec![n, u64::MAX, 0],
        };
        let (mut one, mut two) = (
            DemandFile::create_file(&folder, 0).unwrap(),
            DemandFile::create_file(&folder, 1).unwrap(),
        );
        assert!(read_all(&folder, 3, true).unwrap().is_empty());
        one.write(&needs(1)).unwrap();
        two.write(&needs(2)).unwrap();
        let mut read = read_all(&folder, 3, true).unwrap();
        read.sort_by_key(|n| n.most);
        assert_eq!(read, [needs(1), needs(2)]);
        // Another number of shards: of another cache.
        assert!(read_all(&folder, 4, true).unwrap().is_empty());
        drop(two);
        assert_eq!(read_all(&folder, 3, true).unwrap(), [needs(1)]);
        // Dead: the file exists and is not locked.
        fs::write(dir.path().join("rank-1-1.board"), needs(9).to_bytes()).unwrap();
        assert_eq!(count(&folder).unwrap(), 1);
        assert_eq!(read_all(&folder, 3, true).unwrap(), [needs(1)]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn half_of_a_demand_file_is_none() {
        let needs = RankDemand {
            most: 7,
            room: 9,
            distances: vec![3; 5],
        };
        let mut bytes = needs.to_bytes();
        assert_eq!(RankDemand::from_bytes(&bytes, 5), Some(needs));
        bytes[40] ^= 1;
        assert_eq!(RankDemand::from_bytes(&bytes, 5), None);
        assert_eq!(RankDemand::from_bytes(&bytes[..20], 5), None);
    }
}
