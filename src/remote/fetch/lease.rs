//! A shard that must not be removed for now, and a folder that is in use.
//!
//! In the consumer, which holds one for each shard of the batches that workers may be at; and in
//! the fetcher that leads, which removes what nobody holds. A lease is a shared lock on the file:
//! of a process that dies the system takes it away.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};

/// The mark of a folder that was made here. Runs that use the folder hold a lease on it.
pub(super) const MARK: &str = ".featherload-fetched";

/// Added to the name of a shard's file while it comes.
pub(super) const PART_END: &str = ".part";

/// How long another process may look through the folder.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// Marks the folder as used by this process: what is there was compared, and stays.
///
/// # Errors
/// A folder that is gone; another process that does not let it go.
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

/// A shard that is there and stays.
#[derive(Debug)]
pub(super) struct Lease {
    file: File,
    owner: Pid,
}

impl Drop for Lease {
    /// A fork of this process has a copy of the file, which would hold the lock on. Of the copy
    /// nothing is undone: the lease is its parent's.
    fn drop(&mut self) {
        if getpid() == self.owner {
            // Closing is all that is left where it fails.
            let _ = self.file.unlock();
        }
    }
}

impl Lease {
    /// Of the shard at `path`, and its bytes; none where there is none, or it is just being removed.
    ///
    /// # Errors
    /// A system that refuses, as one that has no descriptor left.
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
        // Removed between our two calls.
        let now = file.metadata()?;
        let lease = Self {
            file,
            owner: getpid(),
        };
        Ok((now.nlink() > 0).then_some((lease, now.len())))
    }
}

/// Removes a shard unless somebody has a lease; whether it is gone.
///
/// # Errors
/// A system that refuses.
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    // To be written: on NFS a lock of one's own needs that.
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

    /// Who removes holds the file alone for a moment.
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
