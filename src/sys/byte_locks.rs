//! Locks on single bytes of a file, for mutual exclusion between processes.
//!
//! Used in workers, and in the consumer with zero workers. A lock belongs to an open file
//! description of this process only. So the kernel releases it when the process ends in any way,
//! and no cleanup is needed.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};

/// Locks on the bytes of one file. Every call must pass the same file. The bytes need not exist.
#[derive(Debug, Default)]
pub(crate) struct ByteLocks {
    /// The file as this process opened it. A forked copy would share its locks.
    own: Option<(Pid, File)>,
}

impl ByteLocks {
    /// Locks byte `at`; `None` if another process has locked it. Never waits, because that process
    /// may be stopped.
    ///
    /// # Errors
    /// A system call that fails: no /proc, no locks on this file.
    pub(crate) fn take(&mut self, file: BorrowedFd<'_>, at: u64) -> Result<Option<ByteLock<'_>>> {
        let file = self.own_file(file)?;
        let range = of_byte(libc::F_WRLCK, at)?;
        match fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
            Ok(_) => Ok(Some(ByteLock { file, at })),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(e) => Err(Error::io("lock a byte of shared memory", e)),
        }
    }

    /// Opens the file in this process, which cannot open it later.
    ///
    /// # Errors
    /// A system call that fails: no /proc.
    pub(crate) fn open_file(&mut self, file: BorrowedFd<'_>) -> Result<()> {
        self.own_file(file).map(drop)
    }

    /// Descriptor of the opened file.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.own.as_ref().map(|(_, file)| file.as_raw_fd())
    }

    fn own_file(&mut self, file: BorrowedFd<'_>) -> Result<&File> {
        let now = getpid();
        let own = self.own.take().filter(|(owner, _)| *owner == now);
        let own = match own {
            Some(own) => own,
            None => {
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let opened = File::options().read(true).write(true).open(&path);
                (now, opened.map_err(|e| Error::io_at("open", &path, e))?)
            }
        };
        Ok(&self.own.insert(own).1)
    }
}

/// A locked byte. It is unlocked when dropped.
#[derive(Debug)]
pub(crate) struct ByteLock<'a> {
    file: &'a File,
    at: u64,
}

impl Drop for ByteLock<'_> {
    fn drop(&mut self) {
        let unlocked = of_byte(libc::F_UNLCK, self.at)
            .map(|range| fcntl(self.file, FcntlArg::F_OFD_SETLK(&range)));
        if let Ok(Err(e)) = unlocked {
            tracing::warn!("unlock a byte of shared memory: {e}");
        }
    }
}

/// Locks byte `at` until the last descriptor of this open file is closed. It works across PID
/// namespaces.
///
/// # Errors
/// Another process has locked it; a system call that fails.
pub(crate) fn hold_byte(file: &File, at: u64) -> Result<()> {
    let range = of_byte(libc::F_WRLCK, at)?;
    let locked = fcntl(file, FcntlArg::F_OFD_SETLK(&range));
    locked
        .map(drop)
        .map_err(|e| Error::io("lock a byte of a file", e))
}

/// Whether a process holds byte `at`.
///
/// # Errors
/// A system call that fails.
pub(crate) fn is_byte_held(file: &File, at: u64) -> Result<bool> {
    let mut range = of_byte(libc::F_WRLCK, at)?;
    let read = fcntl(file, FcntlArg::F_OFD_GETLK(&mut range));
    read.map_err(|e| Error::io("read the locks of a file", e))?;
    Ok(i32::from(range.l_type) != libc::F_UNLCK)
}

fn of_byte(kind: libc::c_int, at: u64) -> Result<libc::flock> {
    let at = libc::off_t::try_from(at)
        .map_err(|_| Error::protocol(format!("byte {at} is beyond the largest file size")))?;
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at,
        l_len: 1,
        l_pid: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn file() -> File {
        tempfile::tempfile().unwrap()
    }

    #[test]
    fn a_byte_is_one_holders_and_its_neighbour_anothers() {
        let (file, mut a, mut b) = (file(), ByteLocks::default(), ByteLocks::default());
        let held = a.take(file.as_fd(), 3).unwrap();
        assert!(held.is_some() && b.take(file.as_fd(), 3).unwrap().is_none());
        assert!(b.take(file.as_fd(), 4).unwrap().is_some());
        drop(held);
        assert!(b.take(file.as_fd(), 3).unwrap().is_some());
    }

    #[test]
    fn a_holder_that_goes_lets_go() {
        let (file, mut a, mut b) = (file(), ByteLocks::default(), ByteLocks::default());
        std::mem::forget(a.take(file.as_fd(), 7).unwrap());
        assert!(b.take(file.as_fd(), 7).unwrap().is_none());
        drop(a);
        assert!(b.take(file.as_fd(), 7).unwrap().is_some());
    }

    #[test]
    fn a_kept_byte_is_free_when_its_last_descriptor_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = File::open(file.path()).unwrap();
        let kept = file.as_file().try_clone().unwrap();
        hold_byte(&kept, 5).unwrap();
        assert!(is_byte_held(&other, 5).unwrap() && !is_byte_held(&other, 6).unwrap());
        assert!(hold_byte(&file.reopen().unwrap(), 5).is_err());
        drop(kept);
        assert!(is_byte_held(&other, 5).unwrap());
        drop(file.into_file());
        assert!(!is_byte_held(&other, 5).unwrap());
    }

    #[test]
    fn bytes_behind_every_end_are_refused() {
        assert!(ByteLocks::default().take(file().as_fd(), u64::MAX).is_err());
    }
}
