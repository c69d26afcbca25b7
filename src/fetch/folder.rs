//! The folder of one data set on this machine: its names, and who may change it.
//!
//! In the fetcher. Only files of these names are ever removed, and only in a folder
//! that was made here.
//!
//! ```text
//! DIR/cache-HASH/              HASH: of the manifest, so a changed cache has another folder
//!   .featherload-fetched       the mark of a folder that was made here
//!   manifest.json, index.fli   as in the store
//! DIR/tars-HASH/               of tar shards that are no cache; HASH: of the list
//!   list.json                  the objects, their sizes and states
//!   index-HASH.fli             the index, with checksums of all shards; HASH: of how they are read
//! and in both
//!   shard-000000.tar           whole, by its checksum; or as the object is called
//!   shard-000001.tar.part      under way
//!   rank-RANDOM-NUMBER.board   what a rank needs, locked while its fetcher lives
//!   leader.lock                locked by the fetcher that leads; its process, and a number that
//!                              changes while it goes on
//!   boot                       since which start of the machine shards are there
//!   trouble.json               why the leader gave up, for the other ranks
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fetch::beat::Right;
use crate::fetch::download::Shard;
use crate::sys::replace::unique_name;

const MARK: &str = ".featherload-fetched";
/// What stands in the mark, for people.
const MARK_TEXT: &str = "Shards of an object store, fetched by featherload. May be removed while \
                         no run uses it.\n";
const LEADER: &str = "leader.lock";
const BOOT: &str = "boot";
/// Of this start of the machine.
const THIS_BOOT: &str = "/proc/sys/kernel/random/boot_id";
pub(super) const TROUBLE: &str = "trouble.json";
pub(super) const BOARD_BEGIN: &str = "rank-";
pub(super) const BOARD_END: &str = ".board";
const PART_END: &str = ".part";

/// The folder of one data set.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// One that was made.
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Makes it, `name` in `dir`, unless it is there.
    ///
    /// # Errors
    /// One of that name that was not made here; a system that refuses.
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
        // Another rank may have made the folder a moment ago.
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

    /// Where a shard is that is whole. `name` is without extension.
    pub(super) fn shard(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.tar"))
    }

    /// Where it is while it comes.
    pub(super) fn part(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.tar{PART_END}"))
    }

    /// What who leads has locked.
    pub(super) fn leader(&self) -> PathBuf {
        self.path.join(LEADER)
    }

    /// The right to change the folder; none while another process has it.
    ///
    /// # Errors
    /// A system that refuses.
    pub(super) fn lead(&self) -> Result<Option<Right>> {
        let path = self.leader();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io_at("open", &path, e))?;
        match file.try_lock() {
            Ok(()) => Right::begin(file, path).map(Some),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(Error::io_at("lock", &path, e)),
        }
    }

    /// After a start of the machine: what is there is no longer believed. Files are renamed
    /// without waiting for storage, so a crash may have cut them. Shards of these names become
    /// parts, whose checksum is looked at when they are needed; those without one are removed.
    /// Whether that is done; it is not while another process has the right to do it.
    ///
    /// # Errors
    /// A system that refuses.
    pub(super) fn doubt_after_a_start(&self, shards: &[Shard]) -> Result<bool> {
        let now = fs::read(THIS_BOOT).unwrap_or_default();
        let is_done = || fs::read(self.file(BOOT)).is_ok_and(|then| then == now);
        if is_done() {
            return Ok(true);
        }
        let Some(_right) = self.lead()? else {
            return Ok(false);
        };
        for shard in shards {
            let (whole, part) = (self.shard(&shard.name), self.part(&shard.name));
            let done = match shard.has_checksum() {
                true => fs::rename(&whole, &part),
                false => gone(fs::remove_file(&whole)).and_then(|()| fs::remove_file(&part)),
            };
            gone(done).map_err(|e| Error::io_at("rename or remove", &whole, e))?;
        }
        self.put(BOOT, &now)?;
        Ok(true)
    }

    /// Writes a small file whole.
    ///
    /// # Errors
    /// A system that refuses.
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

/// What is not there is as good.
fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
