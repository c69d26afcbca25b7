//! The bytes of one file, for as long as one sample needs them.
//!
//! Runs in workers (mapped, at most one live map) and in the consumer with zero
//! workers (read into a reused buffer: the library installs no SIGBUS handler
//! there). Opened without blocking and only when it is a regular file, so a
//! FIFO or a device in a data set cannot hang a worker.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;

use memmap2::{Mmap, MmapOptions};

use super::sample::KEEP;
use super::sigbus;
use crate::error::{FaultKind, SampleFault};
use crate::sys::regular::open_regular;

/// How files are brought into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputMode {
    Map,
    Read,
}

/// Opens files one after the other.
#[derive(Debug)]
pub(crate) struct Input {
    mode: InputMode,
    /// Largest file that is taken, bytes.
    max_bytes: u64,
    buffer: Vec<u8>,
}

/// The bytes of the file that is open now; unmapped when dropped.
pub(crate) enum Bytes<'a> {
    Mapped(LiveMap),
    Read(&'a [u8]),
}

/// A live input map, announced to the SIGBUS handler.
pub(crate) struct LiveMap(Mmap);

impl Drop for LiveMap {
    fn drop(&mut self) {
        sigbus::clear_live_map();
    }
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => &map.0,
            Self::Read(bytes) => bytes,
        }
    }
}

impl Input {
    pub(crate) fn new(mode: InputMode, max_bytes: u64) -> Self {
        Self {
            mode,
            max_bytes,
            buffer: Vec::new(),
        }
    }

    /// Opens the file at `path`.
    pub(crate) fn open(&mut self, path: &CStr) -> Result<Bytes<'_>, SampleFault> {
        let (fd, len) = open_regular(path)?;
        if len == 0 {
            return Err(SampleFault::new(FaultKind::Truncated, "the file is empty"));
        }
        if len as u64 > self.max_bytes {
            return Err(SampleFault::new(
                FaultKind::TooLarge,
                format!(
                    "the file has {len} bytes, over max_scratch of {}",
                    self.max_bytes
                ),
            ));
        }
        let file = File::from(fd);
        let unreadable = |e: std::io::Error| {
            SampleFault::new(FaultKind::Unreadable, format!("cannot be read: {e}"))
        };
        match self.mode {
            InputMode::Map => {
                // SAFETY: the file may be changed by others while it is mapped.
                // Changed bytes reach only the decoders, which take untrusted
                // bytes; a shrunken file raises SIGBUS, which `sigbus` turns
                // into a failed sample. No reference outlives the sample.
                let map = unsafe { MmapOptions::new().len(len).map(&file) }.map_err(unreadable)?;
                sigbus::set_live_map(&map);
                Ok(Bytes::Mapped(LiveMap(map)))
            }
            InputMode::Read => {
                if self.buffer.capacity() > KEEP {
                    self.buffer = Vec::new();
                }
                self.buffer.clear();
                // As long as it was when it was opened: it may be growing.
                file.take(len as u64)
                    .read_to_end(&mut self.buffer)
                    .map_err(unreadable)?;
                Ok(Bytes::Read(&self.buffer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    fn c(path: &std::path::Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    #[test]
    fn both_modes_give_the_same_bytes_and_the_same_faults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, b"hello").unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, b"").unwrap();
        let large = dir.path().join("large");
        std::fs::write(&large, b"6 byte").unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for mode in [InputMode::Map, InputMode::Read] {
            let mut input = Input::new(mode, 5);
            assert_eq!(&*input.open(&c(&file)).unwrap(), b"hello");
            for (path, kind) in [
                (&empty, FaultKind::Truncated),
                (&large, FaultKind::TooLarge),
                (&fifo, FaultKind::NotRegular),
                (&dir.path().to_owned(), FaultKind::NotRegular),
                (&dir.path().join("absent"), FaultKind::Unreadable),
            ] {
                let fault = input.open(&c(path)).err().unwrap();
                assert_eq!(fault.kind, kind, "{mode:?} {}", fault.reason);
            }
        }
    }
}
