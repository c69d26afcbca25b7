//! Tries the system calls that a pool needs, because a container may reject what its kernel
//! supports.
//!
//! Runs in the calling process. Changes nothing.

use std::io;
use std::os::fd::AsFd;

use super::process::{PidFd, probe_close_range};
use super::shared_memory::SharedMemory;
use crate::error::{Error, Result};

const PAGE: usize = 4096;

pub(crate) fn pidfd_open() -> Result<()> {
    PidFd::current().map(drop)
}

pub(crate) fn pidfd_send_signal() -> Result<()> {
    // Signal 0 only checks for permission.
    PidFd::current()?
        .send(0)
        .map_err(|e| Error::io("pidfd_send_signal", e))
}

pub(crate) fn close_range() -> Result<()> {
    probe_close_range().map_err(|e| Error::io("close_range", e))
}

/// Seals, allocates, duplicates and maps a memfd.
pub(crate) fn sealed_memory() -> Result<()> {
    let memory = SharedMemory::create("featherload-probe", PAGE)?;
    memory.allocate(0..PAGE, "a trial")?;
    let fd = memory.as_fd().try_clone_to_owned();
    let fd = fd.map_err(|e: io::Error| Error::io("duplicate a memfd", e))?;
    SharedMemory::open(fd, PAGE).map(drop)
}

pub(crate) fn populate() -> Result<()> {
    SharedMemory::create("featherload-probe", PAGE)?
        .populate(0, PAGE)
        .map_err(|e| Error::io("madvise MADV_POPULATE_WRITE", e))
}
