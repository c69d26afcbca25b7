//! Detects whether the files of a folder stay in memory, or are on storage so that the kernel can
//! drop their pages.
//!
//! Runs in the consumer, before it creates a file that no memory limit counts.

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::{major, minor};
use nix::sys::statfs::statfs;

/// File systems in memory: tmpfs, ramfs, hugetlbfs.
const IN_MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// File systems on top of another one that they do not name: overlayfs, aufs, eCryptfs.
const STACKED: [u32; 3] = [0x794c_7630, 0x6175_6673, 0xf15f];

/// A program in another process, which may keep files in its memory.
const FUSE: u32 = 0x6573_5546;

/// Attempts to drop a page, and the wait between two. A page that is being written stays.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_millis(10);

const PAGE: usize = 4096;

/// Where the content of files is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageKind {
    InStorage,
    InMemory,
    /// In a FUSE program.
    Unknown,
}

/// Results for stacked file systems, which need a test write.
static TRIED: Mutex<Vec<(PathBuf, StorageKind)>> = Mutex::new(Vec::new());

/// Where the content of files in `folder` is.
///
/// # Errors
/// The folder is missing; on a stacked file system, it is not writable.
pub(crate) fn storage_kind(folder: &Path) -> io::Result<StorageKind> {
    // The field's width differs among C libraries; the constants have 32 bits.
    let kind = statfs(folder)?.filesystem_type().0 as u32;
    if IN_MEMORY.contains(&kind) {
        return Ok(StorageKind::InMemory);
    }
    if kind == FUSE {
        return Ok(StorageKind::Unknown);
    }
    if !STACKED.contains(&kind) {
        return Ok(match is_device_in_memory(folder) {
            true => StorageKind::InMemory,
            false => StorageKind::InStorage,
        });
    }
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = tried.iter().find(|(path, _)| path == folder) {
        return Ok(*found);
    }
    let found = match is_dropped(folder)? {
        true => StorageKind::InStorage,
        false => StorageKind::InMemory,
    };
    tried.push((folder.to_owned(), found));
    Ok(found)
}

/// Whether the folder's block device is in memory: a RAM disk (zram, brd), or a loop device on a
/// file in memory.
fn is_device_in_memory(folder: &Path) -> bool {
    let device = fs::metadata(folder).map_or(0, |found| found.dev());
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A file system without a device has no such link.
    let Ok(device) = fs::canonicalize(link) else {
        return false;
    };
    let name = device.file_name().and_then(|name| name.to_str());
    if name.is_some_and(|name| name.starts_with("zram") || name.starts_with("ram")) {
        return true;
    }
    let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
    let folder = Path::new(file.trim_end()).parent();
    folder.is_some_and(|folder| {
        storage_kind(folder).is_ok_and(|bytes| bytes == StorageKind::InMemory)
    })
}

/// Whether the kernel drops a written, synced and unused page. It cannot for a file in memory.
fn is_dropped(folder: &Path) -> io::Result<bool> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[1; PAGE])?;
    file.sync_data()?;
    for _ in 0..TRIES {
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        if !is_in_memory(&file)? {
            return Ok(true);
        }
        std::thread::sleep(WAIT);
    }
    Ok(false)
}

/// Whether the first page of a file is in memory.
fn is_in_memory(file: &File) -> io::Result<bool> {
    let page = NonZeroUsize::new(PAGE).unwrap_or(NonZeroUsize::MIN);
    // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours.
    let at = unsafe {
        mmap(
            None,
            page,
            ProtFlags::PROT_READ,
            MapFlags::MAP_SHARED,
            file,
            0,
        )
    }?;
    let mut resident = [0u8; 1];
    // SAFETY: the mapping above, whose first page has one byte in `resident`.
    let read = unsafe { libc::mincore(at.as_ptr(), 1, resident.as_mut_ptr()) };
    let read = Errno::result(read);
    // SAFETY: the mapping above, to which nothing refers.
    unsafe { munmap(at, PAGE) }?;
    read?;
    Ok(resident[0] & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_file_in_memory_stay_and_those_of_storage_are_dropped() {
        let memory = Path::new("/dev/shm");
        match statfs(memory).map(|found| found.filesystem_type().0 as u32) {
            Ok(kind) if IN_MEMORY.contains(&kind) => {
                assert_eq!(storage_kind(memory).unwrap(), StorageKind::InMemory);
                assert!(!is_dropped(memory).unwrap());
            }
            other => println!("NOT CHECKED: /dev/shm is no tmpfs here: {other:?}"),
        }
        let storage = Path::new(env!("CARGO_MANIFEST_DIR"));
        let known = storage_kind(storage).unwrap();
        assert_eq!(
            is_dropped(storage).unwrap(),
            known == StorageKind::InStorage
        );
    }
}
