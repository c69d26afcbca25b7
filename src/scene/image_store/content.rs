//! The bytes of an image store: in memory that all processes map, or in a file that the system may
//! drop from memory.
//!
//! Created in the consumer, opened in workers. `store` decides which process writes which bytes.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::statfs;
use serde::{Deserialize, Serialize};

use crate::error::{self, Error, FaultKind, Result, SampleFault};
use crate::sys::shared_memory::SharedMemory;
use crate::sys::storage::{self, StorageKind};

/// Name of the memfd, which identifies the image store among a process's mappings.
pub(crate) const MEMFD_NAME: &str = "featherload-store";

/// What holds the bytes of an image store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoreBacking {
    /// A memfd. Its memory grows as images are decoded.
    Memory,
    /// A file without a name. Data that was read stays in the page cache while memory allows.
    File,
}

/// Bytes that several processes read and write.
#[derive(Debug)]
pub(super) enum StoreContent {
    Memory(SharedMemory),
    File(File),
}

/// Bytes of the write buffer that are kept between images.
const KEEP: usize = 64 << 20;

impl StoreContent {
    /// Reserves `bytes` without allocating any yet.
    ///
    /// # Errors
    /// A system call that fails; a folder that is not writable.
    pub(super) fn create(holding: StoreBacking, bytes: u64, folder: &Path) -> Result<Self> {
        match holding {
            StoreBacking::Memory => {
                let len = mapped_bytes(bytes)?;
                SharedMemory::create(MEMFD_NAME, len).map(Self::Memory)
            }
            StoreBacking::File => {
                let failed = |e: std::io::Error| Error::io_at("make a file in", folder, e);
                let file = tempfile::tempfile_in(folder).map_err(failed)?;
                check_folder(folder, bytes)?;
                if storage::storage_kind(folder).map_err(failed)? == StorageKind::Unknown {
                    tracing::warn!(
                        "{} is on FUSE, which may keep files in memory that memory_limit does not \
                         count: to avoid this, use a store_folder on a disk",
                        folder.display()
                    );
                }
                file.set_len(bytes).map_err(failed)?;
                Ok(Self::File(file))
            }
        }
    }

    /// Opens the `bytes` bytes that another process created.
    ///
    /// # Errors
    /// Another length.
    pub(super) fn open(holding: StoreBacking, fd: OwnedFd, bytes: u64) -> Result<Self> {
        match holding {
            StoreBacking::Memory => SharedMemory::open(fd, mapped_bytes(bytes)?).map(Self::Memory),
            StoreBacking::File => {
                let file = File::from(fd);
                let found = file.metadata();
                let found = found.map_err(|e| Error::io("check the store file", e))?;
                if !found.is_file() || found.len() != bytes {
                    return Err(Error::protocol(format!(
                        "the store file has {} bytes, but its images need {bytes}",
                        found.len()
                    )));
                }
                Ok(Self::File(file))
            }
        }
    }

    pub(super) fn backing(&self) -> StoreBacking {
        match self {
            Self::Memory(_) => StoreBacking::Memory,
            Self::File(_) => StoreBacking::File,
        }
    }

    /// Calls `make` to write the bytes of `range`.
    ///
    /// The caller holds the image's turn, or the process that holds it is stopped. `buffer` is
    /// reused memory.
    pub(super) fn write(
        &self,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
        make: impl FnOnce(&mut [u8]) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        let len = (range.end - range.start) as usize;
        match self {
            Self::Memory(memory) => {
                let at = range.start as usize;
                memory
                    .allocate(at..at + len, "an image")
                    .map_err(out_of_memory)?;
                let bytes = memory.bytes_at(at, len);
                // SAFETY: in bounds by `bytes_at`, and allocated above, so that no access faults.
                // The only caller is `store::ImageStore::ensure_image`, and nothing else in this
                // process refers to these bytes: reads use atomic words. The caller holds the
                // kernel's lock on the image, so no other process writes it. The exception is a
                // process that was stopped with the lock and continues later: it writes the same
                // bytes. Another process can only write bytes, and any byte is a valid pixel.
                let bytes = unsafe { std::slice::from_raw_parts_mut(bytes, len) };
                make(bytes)
            }
            Self::File(file) => {
                resize(buffer, len)?;
                make(&mut buffer[..len])?;
                let written = file.write_all_at(&buffer[..len], range.start);
                if buffer.capacity() > KEEP {
                    *buffer = Vec::new();
                }
                written.map_err(disk_error)
            }
        }
    }

    /// Maps the memory again; `None` if the store is a file.
    pub(super) fn map_copy(&self, bytes: u64) -> Result<Option<SharedMemory>> {
        match self {
            Self::Memory(memory) => {
                let fd = memory.as_fd().try_clone_to_owned();
                let fd =
                    fd.map_err(|e| Error::io("duplicate the descriptor of the image store", e))?;
                SharedMemory::open(fd, mapped_bytes(bytes)?).map(Some)
            }
            Self::File(_) => Ok(None),
        }
    }

    /// Reads two, three or four bytes from each place on. The caller has checked the places.
    ///
    /// A loop without calls or closures, so that it has all registers and the next loads start
    /// while one is in progress. The compiler may place a closure in another codegen unit.
    #[inline(never)]
    pub(super) fn gather<const N: usize>(
        &self,
        at: &[u64],
        out: &mut [[u8; N]],
    ) -> std::io::Result<()> {
        const { assert!(N <= 8) };
        match self {
            Self::Memory(memory) => {
                use std::sync::atomic::Ordering::Relaxed;
                let last = 64 - 8 * N as u64;
                for (at, few) in at.iter().zip(out) {
                    let (word, bit) = ((at / 8) as usize, (at % 8) * 8);
                    let low = memory.word(word).load(Relaxed) >> bit;
                    let all = match bit <= last {
                        true => low,
                        false => low | memory.word(word + 1).load(Relaxed) << (64 - bit),
                    };
                    few.copy_from_slice(&all.to_le_bytes()[..N]);
                }
            }
            Self::File(file) => {
                for (at, few) in at.iter().zip(out) {
                    file.read_exact_at(few, *at)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the bytes of `range` to `out`, which has the same length.
    pub(super) fn read(&self, range: Range<u64>, out: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Memory(memory) => {
                use std::sync::atomic::Ordering::Relaxed;
                let word = |at: u64| memory.word((at / 8) as usize).load(Relaxed).to_le_bytes();
                let skipped = (range.start % 8) as usize;
                let mut at = range.start - skipped as u64;
                let mut out = out;
                if skipped > 0 {
                    let n = (8 - skipped).min(out.len());
                    let (to, behind) = std::mem::take(&mut out).split_at_mut(n);
                    to.copy_from_slice(&word(at)[skipped..skipped + n]);
                    (out, at) = (behind, at + 8);
                }
                let (eights, rest) = out.as_chunks_mut::<8>();
                for eight in eights {
                    *eight = word(at);
                    at += 8;
                }
                if !rest.is_empty() {
                    rest.copy_from_slice(&word(at)[..rest.len()]);
                }
                Ok(())
            }
            Self::File(file) => file.read_exact_at(out, range.start),
        }
    }
}

impl AsFd for StoreContent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Memory(memory) => memory.as_fd(),
            Self::File(file) => file.as_fd(),
        }
    }
}

/// A mapping has whole words, and one more after the last image, because word reads may reach it.
fn mapped_bytes(bytes: u64) -> Result<usize> {
    bytes
        .checked_next_multiple_of(8)
        .and_then(|b| usize::try_from(b.checked_add(8)?).ok())
        .ok_or_else(|| {
            Error::config(format!(
                "{} of images are too many to map",
                error::size(bytes)
            ))
        })
}

fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<(), SampleFault> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| {
            SampleFault::new(
                FaultKind::NoMemory,
                format!("no memory for {}", error::size(len as u64)),
            )
        })?;
        buffer.resize(len, 0);
    }
    Ok(())
}

/// Checks that a folder is on storage, with space for a file of `bytes` bytes.
///
/// # Errors
/// It is not; or the folder does not exist.
pub(crate) fn check_folder(folder: &Path, bytes: u64) -> Result<()> {
    let wrong = |what: String| {
        Error::option(
            "store_folder",
            format!(
                "{} {what}: use another folder as store_folder",
                folder.display()
            ),
        )
    };
    let failed = |e: std::io::Error| Error::io_at("check the disk of", folder, e);
    let kind = statfs(folder).map_err(|e| failed(e.into()))?;
    if storage::storage_kind(folder).map_err(failed)? == StorageKind::InMemory {
        return Err(wrong("is in memory, where the images do not fit".into()));
    }
    let free = kind.blocks_available() * kind.block_size().max(0) as u64;
    if free < bytes {
        return Err(wrong(format!(
            "has {} free, but the images need {}",
            error::size_rounded_down(free),
            error::size_rounded_up(bytes)
        )));
    }
    Ok(())
}

#[cold]
fn out_of_memory(e: Error) -> SampleFault {
    SampleFault::new(
        FaultKind::NoMemory,
        format!(
            "no memory for its pixels: {e}. Set a memory_limit, so that they are kept in a \
                 file"
        ),
    )
}

#[cold]
fn disk_error(e: std::io::Error) -> SampleFault {
    SampleFault::new(
        FaultKind::NoMemory,
        format!(
            "no space for its pixels in the store file: {e}. Use a store_folder with more space"
        ),
    )
}

/// Default folder of store files: the folder for temporary files, unless it is in memory.
pub(crate) fn default_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    match storage::storage_kind(&folder) {
        Ok(StorageKind::InMemory) => PathBuf::from("/var/tmp"),
        _ => folder,
    }
}
