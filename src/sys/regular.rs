//! Files of a data set: opened without blocking and only when they are regular,
//! so a FIFO or a device among them hangs nobody.
//!
//! Used in workers, and in the consumer where it reads headers, indexes and
//! manifests or has zero workers. Reads and maps nothing.

use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fs, io};

use nix::fcntl::{self, OFlag};
use nix::sys::stat::{Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};

use crate::error::{FaultKind, SampleFault};

/// By what one file is told from another that took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// Of the last change of its content, ns since 1970; `touch` and `cp -p` set it
    /// at will.
    pub(crate) modified: i64,
    pub(crate) inode: u64,
}

impl Stamp {
    /// Of the file at `path`, links followed.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::of_metadata(&found))
    }

    pub(crate) fn of_metadata(found: &Metadata) -> Self {
        Self {
            bytes: found.len(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            inode: found.ino(),
        }
    }
}

/// A time of the file system, ns since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Opens the regular file at `path` to be read, and says how many bytes it has. For
/// files that are no samples; a FIFO that takes the place of one is not waited for.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidInput`] when something else is there.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}

/// Opens the regular file at `path` to be read, and says how many bytes it has.
///
/// # Errors
/// When there is none, or something else: a folder, a FIFO, a device.
pub(crate) fn open_regular(path: &CStr) -> Result<(OwnedFd, usize), SampleFault> {
    let (fd, stamp) = open_stamped(path)?;
    Ok((fd, usize::try_from(stamp.bytes).unwrap_or(usize::MAX)))
}

/// As [`open_regular`], and says what the file is like.
pub(crate) fn open_stamped(path: &CStr) -> Result<(OwnedFd, Stamp), SampleFault> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let fd = fcntl::open(path, flags, Mode::empty()).map_err(|e| {
        SampleFault::new(
            FaultKind::Unreadable,
            format!("cannot be opened: {}", e.desc()),
        )
    })?;
    let stat = fstat(&fd).map_err(|e| {
        SampleFault::new(
            FaultKind::Unreadable,
            format!("cannot be examined: {}", e.desc()),
        )
    })?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        let what = match kind {
            SFlag::S_IFDIR => "a folder",
            SFlag::S_IFIFO => "a FIFO",
            SFlag::S_IFCHR | SFlag::S_IFBLK => "a device",
            SFlag::S_IFSOCK => "a socket",
            _ => "no regular file",
        };
        return Err(SampleFault::new(
            FaultKind::NotRegular,
            format!("is {what}, not a regular file"),
        ));
    }
    let stamp = Stamp {
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        inode: stat.st_ino,
    };
    Ok((fd, stamp))
}
