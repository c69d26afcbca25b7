//! Bytes in a sealed memfd: written once, then immutable for every process that maps them.
//!
//! Created in the consumer, mapped read-only by coordinator and workers. Memory that is written
//! later belongs to the ring.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use memmap2::{Advice, Mmap};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, Result};

const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_WRITE)
    .union(SealFlag::F_SEAL_SEAL);

/// Immutable bytes. They take memory once, however many processes map them.
#[derive(Debug)]
pub(crate) struct SealedBytes {
    file: File,
    map: Mmap,
}

impl SealedBytes {
    /// Copies `parts`, concatenated, into a new sealed memfd. Its name in `/proc/PID/maps` is
    /// `memfd:NAME`.
    pub(crate) fn new(name: &'static str, parts: &[&[u8]]) -> Result<Self> {
        let mut writer = SealedBytesWriter::new(name)?;
        for part in parts {
            writer.write(part)?;
        }
        writer.seal()
    }

    /// Maps a descriptor from another process. Rejects unsealed memory, which could change while it
    /// is used.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        let file = File::from(fd);
        let seals =
            fcntl(&file, FcntlArg::F_GET_SEALS).map_err(|e| Error::io("read the seals", e))?;
        if SealFlag::from_bits_truncate(seals) & SEALS != SEALS {
            return Err(Error::protocol(
                "the received memory is not sealed, so it is not mapped",
            ));
        }
        Self::map(file)
    }

    fn map(file: File) -> Result<Self> {
        // SAFETY: both callers have sealed the file (or checked its seals)
        // against writing, shrinking and growing, so the mapped bytes can
        // neither change nor vanish for as long as the map lives.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io("map sealed memory", e))?;
        // Like shared memory, it is not part of core files.
        let _ = map.advise(Advice::DontDump);
        Ok(Self { file, map })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// A memfd that is written in pieces and then sealed.
#[derive(Debug)]
pub(crate) struct SealedBytesWriter {
    name: &'static str,
    file: File,
}

impl SealedBytesWriter {
    /// An empty memfd. Its name in `/proc/PID/maps` is `memfd:NAME`.
    pub(crate) fn new(name: &'static str) -> Result<Self> {
        let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
            .map_err(|e| Error::io("memfd_create", e))?;
        let file = File::from(fd);
        Ok(Self { name, file })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, part: &[u8]) -> Result<()> {
        let name = self.name;
        (self.file.write_all(part)).map_err(|e| Error::io(format!("write to memfd:{name}"), e))
    }

    /// Ends the writing.
    pub(crate) fn seal(self) -> Result<SealedBytes> {
        fcntl(&self.file, FcntlArg::F_ADD_SEALS(SEALS))
            .map_err(|e| Error::io(format!("seal memfd:{}", self.name), e))?;
        SealedBytes::map(self.file)
    }
}

impl AsFd for SealedBytes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_cannot_be_written_or_resized() {
        let s = SealedBytes::new("featherload-test", &[b"ab", b"", b"cd"]).unwrap();
        assert_eq!(s.bytes(), b"abcd");
        let mut other = s.file.try_clone().unwrap();
        assert!(other.write_all(b"x").is_err());
        assert!(other.set_len(1).is_err());
        assert!(other.set_len(100).is_err());
        let again = SealedBytes::from_fd(s.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(again.bytes(), b"abcd");
    }

    #[test]
    fn an_unsealed_descriptor_is_refused() {
        let fd = memfd_create("featherload-test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
        assert!(SealedBytes::from_fd(fd).is_err());
    }

    #[test]
    fn empty_is_fine() {
        let s = SealedBytes::new("featherload-test", &[]).unwrap();
        assert_eq!(s.bytes(), b"");
    }
}
