//! A lease keeps a shard from being deleted, or marks a folder as used.
//!
//! The consumer holds one for each shard of the batches in flight. The leader deletes shards
//! without a lease. A lease is a shared lock on the file, which the system releases when a process
//! dies.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};

/// Mark of a folder that featherload made. Runs that use the folder hold a lease on it.
pub(super) const MARK: &str = ".featherload-fetched";

/// Extension of an incomplete shard.
pub(super) const PART_END: &str = ".part";

/// How long another process may check the folder.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// Marks the folder as used by this process. Its shards were verified, and stay.
///
/// # Errors
/// The folder is gone; another process keeps it locked.
pub(super) fn use_folder(folder: &Path) -> Result<Lease> {
    let path = folder.join(MARK);
    let began = Instant::now();
    loop {
        let lease = Lease::take(&path).map_err(|e| Error::io_at("lock", &path, e))?;
        if let Some((lease, _)) = lease {
            return Ok(lease);
        }
        if began.elapsed() >= LOOK_LIMIT || !path.exists() {
            let what = "is gone, or locked by another process: end that process, or name another \
                        `fetch_dir`";
            return Err(Error::dataset(&path, what));
        }
        thread::sleep(LOOK);
    }
}

/// Whether no process uses the folder.
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) fn is_unused(folder: &Path) -> bool {
    // Opened to write: on NFS an exclusive lock needs that.
    let file = File::options()
        .read(true)
        .write(true)
        .open(folder.join(MARK));
    file.is_ok_and(|file| file.try_lock().is_ok())
}

/// A leased shard.
#[derive(Debug)]
pub(super) struct Lease {
    file: File,
    owner: Pid,
}

impl Drop for Lease {
    /// A fork of this process has a copy of the file, which would keep the lock, so it is unlocked
    /// here. A forked copy unlocks nothing: the lease belongs to its parent.
    fn drop(&mut self) {
        if getpid() == self.owner {
            // If this fails, closing the file must do.
            let _ = self.file.unlock();
        }
    }
}

impl Lease {
    /// Leases the shard at `path`; returns its size too. `None` if it does not exist, or is being
    /// deleted.
    ///
    /// # Errors
    /// A system call that fails, for example for lack of descriptors.
    pub(super) fn take(path: &Path) -> io::Result<Option<(Self, u64)>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // It may have been deleted between the two calls.
        let now = file.metadata()?;
        let lease = Self {
            file,
            owner: getpid(),
        };
        Ok((now.nlink() > 0).then_some((lease, now.len())))
    }
}

/// Deletes a shard, unless it is leased. Returns whether it is gone.
///
/// # Errors
/// A system call that fails.
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    // Opened to write: on NFS an exclusive lock needs that.
    let file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => fs::remove_file(path).map(|()| true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard-000000.tar");
        assert!(Lease::take(&path).unwrap().is_none());
        fs::write(&path, "bytes").unwrap();
        let (one, two) = (Lease::take(&path).unwrap(), Lease::take(&path).unwrap());
        assert!(one.is_some() && two.is_some());
        assert!(!remove(&path).unwrap());
        drop(one);
        assert!(!remove(&path).unwrap() && path.exists());
        drop(two);
        assert!(remove(&path).unwrap() && !path.exists());
        assert!(remove(&path).unwrap());
    }

    /// The process that deletes locks the file exclusively for a moment.
    #[test]
    fn what_is_being_removed_is_not_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        fs::write(&path, "bytes").unwrap();
        let removing = File::open(&path).unwrap();
        removing.try_lock().unwrap();
        assert!(Lease::take(&path).unwrap().is_none());
    }
}
