//! Memory that this process may still allocate, and memory that it returns.
//!
//! The consumer reads the available memory before it allocates the ring. Coordinator and workers
//! set limits.

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::fstat;

use super::{cgroup, text_file};
use crate::error::{Error, Result};

/// Memory in bytes that this process may still allocate: what the machine has available, or what
/// the cgroup leaves, if that is less. `None` if both are unknown.
pub fn available_bytes() -> Option<u64> {
    let machine = text_file::of_kernel(Path::new("/proc/meminfo"))
        .and_then(|text| available_in_meminfo(&text));
    [machine, cgroup::memory_left()].into_iter().flatten().min()
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    Some(text_file::number(text, "MemAvailable:")? * 1024)
}

/// Limits this process to `bytes` of private memory in addition to its current size. A larger
/// allocation fails in this process only.
pub(crate) fn limit_growth(bytes: u64) -> Result<()> {
    let failed = |e: nix::errno::Errno| Error::io("limit the memory of a worker", e);
    let most = private_bytes()?.saturating_add(bytes);
    let (soft, hard) = getrlimit(Resource::RLIMIT_DATA).map_err(failed)?;
    setrlimit(Resource::RLIMIT_DATA, most.min(soft), hard).map_err(failed)
}

/// Prevents core files of this process and its children, which might contain whole images.
///
/// The limit is one byte instead of 0. Both write no file, but a program that receives cores
/// through a pipe (`core_pattern`) is called for any limit except 1 (`fs/coredump.c`).
pub(crate) fn leave_no_core() -> Result<()> {
    let failed = |e: nix::errno::Errno| Error::io("forbid cores", e);
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).map_err(failed)?;
    let most = hard.min(1);
    setrlimit(Resource::RLIMIT_CORE, most, most).map_err(failed)
}

/// Limits the length of files that this process writes to the longest of `files`.
pub(crate) fn limit_file_length(files: &[RawFd]) -> Result<()> {
    let failed = |e| Error::io("limit the length of files", e);
    let mut most = 0;
    for fd in files {
        // SAFETY: the caller's jobs have it open, and it is not closed meanwhile.
        let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
        let found = fstat(fd).map_err(failed)?;
        most = most.max(u64::try_from(found.st_size).unwrap_or(0));
    }
    setrlimit(Resource::RLIMIT_FSIZE, most, most).map_err(failed)
}

/// Private writable memory of this process, resident or not, which `RLIMIT_DATA` limits.
fn private_bytes() -> Result<u64> {
    let status = "/proc/self/status";
    let text = fs::read_to_string(status).map_err(|e| Error::io_at("read", status, e))?;
    let kib = text_file::number(&text, "VmData:").ok_or_else(|| {
        let none = std::io::Error::other("it has no line VmData");
        Error::io_at("read", status, none)
    })?;
    Ok(kib * 1024)
}

/// Blocks of at least this size return to the kernel when freed, in bytes.
const GIVEN_BACK: i32 = 1 << 20;

/// Free memory that the C library may keep at the end of its heap, in bytes. With half of it, the
/// heap shrinks and grows again every few photos, which costs 0.5% of the time.
const KEPT_FREE: i32 = 4 << 20;

/// Set if only this crate uses the heap.
static GIVES_BACK: AtomicBool = AtomicBool::new(false);

/// Makes the C library return freed memory: large blocks at once, and the end of the heap when much
/// of it is free. By default it keeps up to 64 MiB after a large image, which exceeds the memory
/// plan.
pub(crate) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in [
        (libc::M_MMAP_THRESHOLD, GIVEN_BACK),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: takes two integers and sets a number in the allocator, which
        // no other thread uses: workers have one.
        unsafe { libc::mallopt(parameter, bytes) };
    }
    GIVES_BACK.store(true, Ordering::Relaxed);
}

/// Returns the free memory that is still kept. Call it before a large allocation, so that both do
/// not add up. Does nothing unless the process called [`return_freed_memory`], because otherwise
/// the caller uses the heap too.
pub(crate) fn trim_heap() {
    if GIVES_BACK.load(Ordering::Relaxed) {
        trim_shared_heap();
    }
}

/// The same in a process that shares its heap with a caller. It takes some milliseconds in a large
/// heap, so call it once for a run: after files were read whose contents are not kept.
pub(crate) fn trim_shared_heap() {
    // SAFETY: takes no pointer, and frees nothing that is in use; safe to call
    // from any thread (malloc_trim(3)).
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable:    7 kB\n";
        assert_eq!(available_in_meminfo(text), Some(7 * 1024));
        assert_eq!(available_in_meminfo("MemTotal: 10 kB"), None);
    }

    #[test]
    fn private_memory_is_seen() {
        let before = private_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(private_bytes().unwrap() >= before + (60 << 20));
        drop(block);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(available_bytes().is_none_or(|b| b > 1 << 20));
    }
}
