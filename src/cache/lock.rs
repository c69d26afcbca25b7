//! The lock of a cache's folder: one process builds there, or any number make shards that
//! stand alone.
//!
//! In the consumer. A file of the folder's own, held by `flock`: of a builder that is
//! killed the file stays, and the lock does not.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::cache::layout::LOCK;
use crate::error::{Error, Result};

/// How often a lock file that its holder has just removed is made again.
const TRIES: usize = 1000;

/// The lock file, locked.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    shared: bool,
}

impl Drop for Lock {
    /// Removed while it is held: who opened it in between sees that it is gone.
    /// One that cannot be removed is in nobody's way.
    ///
    /// A shared one stays while others hold it: who comes next must meet them.
    fn drop(&mut self) {
        if !self.shared || self.file.try_lock().is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Lock {
    /// # Errors
    /// When another process holds it, or the system refuses.
    pub(super) fn hold(folder: &Path) -> Result<Self> {
        Self::take(folder, false)
    }

    /// Beside others that share it, and nobody who holds it.
    ///
    /// # Errors
    /// When another process holds it alone, or the system refuses.
    pub(super) fn share(folder: &Path) -> Result<Self> {
        Self::take(folder, true)
    }

    fn take(folder: &Path, shared: bool) -> Result<Self> {
        let path = folder.join(LOCK);
        for _ in 0..TRIES {
            // Not that of a link's target: two folders may have links to it.
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(OFlag::O_NOFOLLOW.bits())
                .open(&path)
                .map_err(|e| match e.raw_os_error() {
                    Some(libc::ELOOP) => Error::dataset(
                        &path,
                        "is a link, and the lock must be a file of the folder: remove it",
                    ),
                    _ => Error::io_at("open", &path, e),
                })?;
            let locked = match shared {
                true => file.try_lock_shared(),
                false => file.try_lock(),
            };
            locked.map_err(|e| match e {
                TryLockError::WouldBlock => Error::dataset(
                    folder,
                    "another process is building this cache: wait for it, or name another folder",
                ),
                TryLockError::Error(e) => Error::io_at("lock", &path, e),
            })?;
            // Who held it may have removed it between our two calls.
            let held = file
                .metadata()
                .map_err(|e| Error::io_at("look at", &path, e))?;
            let there = path.symlink_metadata();
            if there.is_ok_and(|t| (t.dev(), t.ino()) == (held.dev(), held.ino())) {
                return Ok(Self { path, file, shared });
            }
        }
        Err(Error::dataset(
            &path,
            format!(
                "was replaced {TRIES} times while it was locked: stop the process that replaces \
                 it, or name another folder"
            ),
        ))
    }
}
