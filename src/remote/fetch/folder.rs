//! The folder of one data set on this machine: names of its files, and locks.
//!
//! Runs in the fetcher. Only files of these names are ever deleted, and only in a folder that
//! featherload made.
//!
//! ```text
//! DIR/cache-HASH/              HASH: of the manifest, so a changed cache has another folder
//!   .featherload-fetched       mark of a folder that featherload made, locked while it is used
//!   manifest.json, index.fli   as in the store
//! DIR/tars-HASH/               for tar shards that are no cache; HASH: of the list
//!   list.json                  the objects, their sizes and fingerprints
//!   index-HASH.fli             index, with checksums of all shards; HASH: of the reading options
//! and in both
//!   shard-000000.tar           complete, by its checksum; or with the object's name
//!   shard-000001.tar.part      incomplete, or left by an earlier run and not verified yet
//!   shard-000002.tar.former    left by a run that left out objects, while its pack is made again
//!   rank-RANDOM-NUMBER.board   demand of a rank, locked while its fetcher lives
//!   leader.lock                locked by the leader; holds its process, and a number that changes
//!                              while it runs
//!   checksums                  checksum of each shard at its download
//!   trouble.json               error of the leader, for the other ranks
//! ```

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::remote::fetch::checksums::ShardChecksums;
use crate::remote::fetch::download::RemoteShard;
use crate::remote::fetch::heartbeat::LeaderLock;
use crate::remote::fetch::lease::{MARK, PART_END};
use crate::sys::atomic_file::unique_name;

/// Text of the mark, for people.
const MARK_TEXT: &str = "Shards of an object store, fetched by featherload. May be removed while \
                         no run uses it.\n";
const LEADER: &str = "leader.lock";
pub(super) const TROUBLE: &str = "trouble.json";
pub(super) const BOARD_BEGIN: &str = "rank-";
pub(super) const BOARD_END: &str = ".board";

/// The folder of one data set.
#[derive(Debug, Clone)]
pub(super) struct FetchFolder {
    path: PathBuf,
}

impl FetchFolder {
    /// An existing folder.
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Creates the folder `name` in `dir`, unless it exists.
    ///
    /// # Errors
    /// A folder of that name that featherload did not make; a system call that fails.
    pub(super) fn make(dir: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|e| Error::io_at("make the folder", dir, e))?;
        let dir = fs::canonicalize(dir).map_err(|e| Error::io_at("look at", dir, e))?;
        let path = dir.join(name);
        let is_new = match fs::create_dir(&path) {
            Ok(()) => true,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => false,
            Err(e) => return Err(Error::io_at("make the folder", &path, e)),
        };
        let mark = path.join(MARK);
        // Another rank may have just created the folder.
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut all| all.next().is_none());
        if is_new || (!mark.exists() && is_empty()) {
            fs::write(&mark, MARK_TEXT).map_err(|e| Error::io_at("write", &mark, e))?;
        }
        if !mark.exists() {
            return Err(Error::option(
                "fetch_dir",
                format!(
                    "{} was not made by featherload, which removes shards in such a folder: name \
                     another `fetch_dir`, or move it",
                    path.display()
                ),
            ));
        }
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Names of the existing files.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn names(&self) -> io::Result<HashSet<OsString>> {
        let entries = fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Path of a complete shard. `name` has no extension.
    pub(super) fn shard(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.tar"))
    }

    /// Path of an incomplete shard.
    pub(super) fn part(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.tar{PART_END}"))
    }

    /// Path of the leader's lock.
    pub(super) fn leader(&self) -> PathBuf {
        self.path.join(LEADER)
    }

    /// Takes the lead; `None` if another process has it.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn try_lead(&self) -> Result<Option<LeaderLock>> {
        let path = self.leader();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io_at("open", &path, e))?;
        match file.try_lock() {
            Ok(()) => LeaderLock::begin(file, path).map(Some),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(Error::io_at("lock", &path, e)),
        }
    }

    /// Marks shards of earlier runs as unverified, before the first use: they may have changed.
    /// They become parts, whose checksum is verified when they are needed. Those without a checksum
    /// are deleted. Does nothing if another run uses the folder, as its fetcher has verified them.
    ///
    /// Returns false while another fetcher does this, or may change the folder; call it again then.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn mark_unverified(&self, shards: &[RemoteShard]) -> Result<bool> {
        let mark = self.file(MARK);
        let file = File::options().read(true).write(true).open(&mark);
        let file = file.map_err(|e| Error::io_at("open", &mark, e))?;
        match file.try_lock() {
            Ok(()) => {}
            // Used by other runs, or another fetcher marks them now.
            Err(fs::TryLockError::WouldBlock) => return Ok(file.try_lock_shared().is_ok()),
            Err(fs::TryLockError::Error(e)) => return Err(Error::io_at("lock", &mark, e)),
        }
        let Some(_right) = self.try_lead()? else {
            return Ok(false);
        };
        let names = self.names();
        let names = names.map_err(|e| Error::io_at("read the folder", &self.path, e))?;
        let is_there = |path: &Path| path.file_name().is_some_and(|name| names.contains(name));
        let checksums = ShardChecksums::read(&self.path, shards.len());
        for (number, shard) in shards.iter().enumerate() {
            let (whole, part) = (self.shard(&shard.name), self.part(&shard.name));
            // One that nobody has needed since its download is still whole.
            let is_recorded = checksums.get(number).is_some()
                && fs::symlink_metadata(&part).is_ok_and(|meta| meta.len() == shard.bytes);
            if is_there(&part) && !shard.has_checksum() && !is_recorded {
                missing_is_ok(fs::remove_file(&part))
                    .map_err(|e| Error::io_at("remove", &part, e))?;
            }
            if !is_there(&whole) {
                continue;
            }
            // A link leads out of the folder, which the sandbox of workers forbids.
            let has_length = fs::symlink_metadata(&whole)
                .is_ok_and(|meta| meta.is_file() && meta.len() == shard.bytes);
            let is_known = shard.has_checksum() || checksums.get(number).is_some();
            let done = match has_length && is_known {
                true => fs::rename(&whole, &part),
                false => fs::remove_file(&whole),
            };
            missing_is_ok(done).map_err(|e| Error::io_at("rename or remove", &whole, e))?;
        }
        Ok(true)
    }

    /// Writes a small file atomically.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let temporary = self.path.join(format!(".{name}.{}", unique_name()));
        let put = || {
            File::create(&temporary)?.write_all(bytes)?;
            fs::rename(&temporary, &path)
        };
        put().map_err(|e| {
            let _ = fs::remove_file(&temporary);
            Error::io_at("write", &path, e)
        })
    }
}

/// A missing file counts as success.
fn missing_is_ok(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path as ObjectPath;

    use super::*;
    use crate::data::shard::manifest::HexHash128;
    use crate::remote::fetch::download::ShardCheck;
    use crate::remote::fetch::lease::use_folder;

    fn shard(name: &str, hash: Option<HexHash128>) -> RemoteShard {
        RemoteShard {
            name: name.to_owned(),
            object: ObjectPath::from(name),
            below: format!("{name}.tar"),
            bytes: 4,
            check: ShardCheck::Tar {
                state: String::new(),
                hash,
            },
        }
    }

    fn names(folder: &FetchFolder) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.contains(".tar")).collect();
        names.sort();
        names
    }

    /// Shards of an earlier run are verified before use; those without a checksum are deleted.
    #[test]
    fn shards_of_earlier_runs_are_doubted_unless_the_folder_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let folder = FetchFolder::make(dir.path(), "cache-1").unwrap();
        let hash = Some(HexHash128(7));
        let shards = [
            shard("known", hash),
            shard("recorded", None),
            shard("unknown", None),
            shard("short", hash),
            shard("part", hash),
            shard("unknown-part", None),
            shard("recorded-part", None),
        ];
        for (name, bytes) in [
            ("known.tar", "abcd"),
            ("recorded.tar", "abcd"),
            ("unknown.tar", "abcd"),
            ("short.tar", "abc"),
            ("part.tar.part", "ab"),
            ("unknown-part.tar.part", "ab"),
            ("recorded-part.tar.part", "abcd"),
        ] {
            fs::write(folder.file(name), bytes).unwrap();
        }
        let mut checksums = ShardChecksums::read(folder.path(), shards.len());
        checksums.write(1, HexHash128(9)).unwrap();
        checksums.write(6, HexHash128(9)).unwrap();
        let before = names(&folder);
        // Another run uses what is there.
        let lease = use_folder(folder.path()).unwrap();
        assert!(folder.mark_unverified(&shards).unwrap());
        assert_eq!(names(&folder), before);
        drop(lease);
        // Another fetcher marks the shards, or still has the lead.
        let other = File::open(folder.file(MARK)).unwrap();
        other.lock().unwrap();
        assert!(!folder.mark_unverified(&shards).unwrap());
        other.unlock().unwrap();
        let right = folder.try_lead().unwrap();
        assert!(!folder.mark_unverified(&shards).unwrap());
        assert_eq!(names(&folder), before);
        drop(right);
        assert!(folder.mark_unverified(&shards).unwrap());
        let left = [
            "known.tar.part",
            "part.tar.part",
            "recorded-part.tar.part",
            "recorded.tar.part",
        ];
        assert_eq!(names(&folder), left);
    }
}
