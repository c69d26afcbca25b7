//! Files of a data set: opened without blocking and only when they are regular,
//! so a FIFO or a device among them hangs nobody.
//!
//! Used in workers, and in the consumer where it reads headers or has zero
//! workers. Reads and maps nothing.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};

use crate::error::{FaultKind, SampleFault};

/// Opens the regular file at `path` to be read, and says how many bytes it has.
///
/// # Errors
/// When there is none, or something else: a folder, a FIFO, a device.
pub(crate) fn open_regular(path: &CStr) -> Result<(OwnedFd, usize), SampleFault> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let fd = open(path, flags, Mode::empty()).map_err(|e| {
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
    Ok((fd, usize::try_from(stat.st_size).unwrap_or(usize::MAX)))
}
