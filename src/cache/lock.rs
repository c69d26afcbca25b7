//! The lock of a cache's folder. Either one process builds there, or any number of processes make
//! shares of independent shards.
//!
//! Runs in the consumer. The lock is an `flock` on a file of its own in the folder. When a builder
//! is killed, the file stays, but the kernel releases the lock.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::cache::layout::LOCK;
use crate::error::{Error, Result};

/// How often the lock file is opened again after its holder has removed it.
const TRIES: usize = 1000;
/// How long to wait for a lock that another process holds. The last holder of a shared lock takes
/// it exclusively for a moment, to remove the file. That is not a build.
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
    /// Removes the file while the lock is held. A process that opened it in between notices that it
    /// is gone. A file that cannot be removed does no harm.
    ///
    /// The file of a shared lock stays while other processes hold it, so that the next process
    /// meets their lock.
    fn drop(&mut self) {
        if !self.shared || self.file.try_lock().is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl FolderLock {
    /// Locks the folder for this process alone. Waits up to 2 seconds.
    ///
    /// # Errors
    /// When another process holds the lock, or a system call fails.
    pub(super) fn lock_exclusive(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, false, PATIENCE)
    }

    /// Like [`FolderLock::lock_exclusive`], without waiting.
    ///
    /// # Errors
    /// Like [`FolderLock::lock_exclusive`].
    pub(super) fn try_lock_exclusive(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, false, Duration::ZERO)
    }

    /// Locks the folder together with other holders of a shared lock. Waits up to 2 seconds.
    ///
    /// # Errors
    /// When another process holds the lock alone, or a system call fails.
    pub(super) fn lock_shared(folder: &Path) -> Result<Self> {
        Self::lock_with(folder, true, PATIENCE)
    }

    fn lock_with(folder: &Path, shared: bool, patience: Duration) -> Result<Self> {
        let path = folder.join(LOCK);
        let until = Instant::now() + patience;
        let mut replaced = 0;
        while replaced < TRIES {
            // Does not follow a link: the links of two folders may have the same target.
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
                        "is a link, but the lock must be a file in the folder: remove the link",
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
            // The last holder may have removed the file after it was opened here.
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
                "was replaced {TRIES} times during locking: stop the process that replaces \
                 it, or name another folder"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The last holder has the exclusive lock while it removes the file.
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
