//! How much memory this process may still take, and what it gives back.
//!
//! Asked in the consumer, before the ring is allocated; limits are set in the
//! coordinator and in workers.

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::fstat;

use super::{cgroup, text_file};
use crate::error::{Error, Result};

/// Bytes that this process may still take: what the machine has available, or what the cgroup
/// leaves when that is less. None where neither is told. A ring that is larger is refused.
pub fn available_bytes() -> Option<u64> {
    let machine = text_file::of_kernel(Path::new("/proc/meminfo"))
        .and_then(|text| available_in_meminfo(&text));
    [machine, cgroup::memory_left()].into_iter().flatten().min()
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    Some(text_file::number(text, "MemAvailable:")? * 1024)
}

/// From here on this process may take `bytes` of private memory beside what it
/// has. More is refused by the kernel: an allocation fails, nobody else suffers.
pub(crate) fn limit_growth(bytes: u64) -> Result<()> {
    let failed = |e: nix::errno::Errno| Error::io("limit the memory of a worker", e);
    let most = private_bytes()?.saturating_add(bytes);
    let (soft, hard) = getrlimit(Resource::RLIMIT_DATA).map_err(failed)?;
    setrlimit(Resource::RLIMIT_DATA, most.min(soft), hard).map_err(failed)
}

/// From here on a crash of this process, or of one that it forks, leaves no core, which
/// might have the pictures of a whole sample in it.
///
/// One byte, not 0: both mean no file, and a program that takes cores through a pipe
/// (`core_pattern`) is called whatever the limit is, but for 1 (`fs/coredump.c`).
pub(crate) fn leave_no_core() -> Result<()> {
    let failed = |e: nix::errno::Errno| Error::io("forbid cores", e);
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).map_err(failed)?;
    let most = hard.min(1);
    setrlimit(Resource::RLIMIT_CORE, most, most).map_err(failed)
}

/// From here on this process writes no file behind the end of the longest of these.
pub(crate) fn limit_file_length(files: &[RawFd]) -> Result<()> {
    let failed = |e| Error::io("limit the length of files", e);
    let mut most = 0;
    for fd in files {
        // SAFETY: the caller's jobs have it open, and nobody closes it meanwhile.
        let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
        let found = fstat(fd).map_err(failed)?;
        most = most.max(u64::try_from(found.st_size).unwrap_or(0));
    }
    setrlimit(Resource::RLIMIT_FSIZE, most, most).map_err(failed)
}

/// Private, writable memory of this process, resident or not: what
/// `RLIMIT_DATA` counts.
fn private_bytes() -> Result<u64> {
    let status = "/proc/self/status";
    let text = fs::read_to_string(status).map_err(|e| Error::io_at("read", status, e))?;
    let kib = text_file::number(&text, "VmData:").ok_or_else(|| {
        let none = std::io::Error::other("it has no line VmData");
        Error::io_at("read", status, none)
    })?;
    Ok(kib * 1024)
}

/// Blocks from this size on are the kernel's again once they are freed, bytes.
const GIVEN_BACK: i32 = 1 << 20;

/// What the C library may keep of smaller ones at the end of its heap, bytes. At half of it the
/// heap of ordinary photos shrinks and grows again every few of them, for 0.5% of the time.
const KEPT_FREE: i32 = 4 << 20;

/// Set where the heap is this crate's alone.
static GIVES_BACK: AtomicBool = AtomicBool::new(false);

/// Makes the C library give back what is freed: large blocks at once, and the heap's end
/// when much of it is free. By itself it keeps up to 64 MiB after a large picture; and what
/// it keeps lies beside what was forecast.
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

/// Gives back what is still kept, in front of something large, which then does not
/// lie beside what was left by many small ones. Nothing in a process that did not
/// call [`give_back_what_is_freed`]: there the heap is the caller's.
pub(crate) fn trim_heap() {
    if !GIVES_BACK.load(Ordering::Relaxed) {
        return;
    }
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
