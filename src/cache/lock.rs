//! The lock of a cache's folder: one process builds there, or any number make shards that
//! stand alone.
//!
//! In the consumer. A file of the folder's own, held by `flock`: of a builder that is
//! killed the file stays, and the lock does not.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::cache::layout::LOCK;
use crate::error::{Error, Result};

/// How often a lock file that its holder has just removed is made again.
const TRIES: usize = 1000;
/// How long a lock that is held is asked for. The last who shares one holds it alone for the
/// moment in which it removes the file, which is not a build.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// The lock file, locked.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    file: File,
    shared: bool,
}

impl Drop for FolderLock {
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

impl FolderLock {
    /// # Errors
    /// When another process holds it, or the system refuses.
    pub(super) fn lock_exclusive(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, false, PATIENCE)
    }

    /// The same of one that nobody holds at this moment.
    ///
    /// # Errors
    /// As [`FolderLock::lock_exclusive`], at once.
    pub(super) fn try_lock_exclusive(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, false, Duration::ZERO)
    }

    /// Beside others that share it, and nobody who holds it.
    ///
    /// # Errors
    /// When another process holds it alone, or the system refuses.
    pub(super) fn lock_shared(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, true, PATIENCE)
    }

    fn lock_with(folder: &Path, shared: bool, patience: Duration) -> Result<Self> {
        let path = folder.join(LOCK);
        let until = Instant::now() + patience;
        let mut replaced = 0;
        while replaced < TRIES {
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
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::dataset(
                        folder,
                        "another process is building this cache: wait for it, or name another \
                         folder",
                    ));
                }
                Err(TryLockError::Error(e)) => return Err(Error::io_at("lock", &path, e)),
            }
            // Who held it may have removed it between our two calls.
            let held = file
                .metadata()
                .map_err(|e| Error::io_at("look at", &path, e))?;
            let there = path.symlink_metadata();
            if there.is_ok_and(|t| (t.dev(), t.ino()) == (held.dev(), held.ino())) {
                return Ok(Self { path, file, shared });
            }
            replaced += 1;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The last to leave holds the file alone while it removes it.
    #[test]
    fn who_comes_while_the_last_leaves_gets_in() {
        let folder = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        drop(FolderLock::lock_shared(folder.path()).unwrap());
                    }
                });
            }
        });
        assert!(!folder.path().join(LOCK).exists());
    }

    #[test]
    fn who_builds_is_waited_for_a_moment_and_then_told() {
        let folder = tempfile::tempdir().unwrap();
        let held = FolderLock::lock_exclusive(folder.path()).unwrap();
        for take in [FolderLock::lock_exclusive, FolderLock::lock_shared] {
            let e = take(folder.path()).unwrap_err().to_string();
            assert!(e.contains("another process is building"), "{e}");
        }
        let gone = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                gone.store(true, Ordering::SeqCst);
                drop(held);
            });
            drop(FolderLock::lock_shared(folder.path()).unwrap());
            assert!(gone.load(Ordering::SeqCst));
        });
    }
}
