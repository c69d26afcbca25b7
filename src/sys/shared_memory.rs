//! A writable memfd of fixed size, mapped by several processes.
//!
//! Created by the consumer, mapped by all. All its pages are allocated at the start and its size is
//! sealed. So an access can neither fail for lack of memory nor cause a fault. Returns raw pointers
//! and atomics only. The protocol of the ring decides which process may access which byte.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mprotect, munmap};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

use crate::error::{Error, Result, size_rounded_up};

const PAGE: usize = 4096;

/// Bytes to allocate per call, so that signals of a timer cannot prevent progress.
const ALLOCATION_STEP: usize = 16 << 20;

const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_SEAL);

/// Seals of memory that its creator alone writes. Other processes can only map it for reading.
const ONE_WRITER_SEALS: SealFlag = SEALS.union(SealFlag::F_SEAL_FUTURE_WRITE);

/// Memory shared by several processes. It is unmapped when dropped.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    fd: OwnedFd,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread. Every access goes through atomics,
// or through raw pointers whose users prove it.
unsafe impl Send for SharedMemory {}
// SAFETY: as for Send; `&SharedMemory` gives only atomics and raw pointers.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Creates and seals `len` zero bytes, without allocating them.
    pub(crate) fn create(name: &str, len: usize) -> Result<Self> {
        Self::create_sealed(name, len, SEALS)
    }

    /// As [`Self::create`], for memory that this mapping alone can write, also if another process
    /// that has the descriptor tries to.
    pub(crate) fn create_for_one_writer(name: &str, len: usize) -> Result<Self> {
        Self::create_sealed(name, len, ONE_WRITER_SEALS)
    }

    fn create_sealed(name: &str, len: usize, seals: SealFlag) -> Result<Self> {
        let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
            .map_err(|e| Error::io("memfd_create", e))?;
        let size = libc::off_t::try_from(len).map_err(|_| {
            Error::config(format!(
                "{} exceed the address space",
                size_rounded_up(len as u64)
            ))
        })?;
        ftruncate(&fd, size).map_err(|e| Error::io("ftruncate shared memory", e))?;
        // The mapping is made first: the last seal of one writer forbids further ones.
        let memory = Self::map(fd, len, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        fcntl(&memory.fd, FcntlArg::F_ADD_SEALS(seals))
            .map_err(|e| Error::io("seal shared memory", e))?;
        Ok(memory)
    }

    /// Allocates the pages of `range`, so that access cannot fail later. `what` is their purpose,
    /// for error texts. Its creator calls this for the whole memory before it is used.
    pub(crate) fn allocate(&self, range: Range<usize>, what: &str) -> Result<()> {
        let bytes = range.len();
        let mut start = range.start;
        while start < range.end {
            let step = ALLOCATION_STEP.min(range.end - start);
            // Smaller than the file's size, which is an off_t.
            let (from, len) = (start as libc::off_t, step as libc::off_t);
            match fallocate(&self.fd, FallocateFlags::empty(), from, len) {
                Ok(()) => start += step,
                // A signal undoes the whole call, hence the steps.
                Err(Errno::EINTR) => {}
                Err(e) => {
                    return Err(Error::io(
                        format!("allocate {} for {what}", size_rounded_up(bytes as u64)),
                        e,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Maps memory of another process. It must be sealed and have `len` bytes.
    pub(crate) fn open(fd: OwnedFd, len: usize) -> Result<Self> {
        Self::open_sealed(fd, len, SEALS, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)
    }

    /// Maps memory of [`Self::create_for_one_writer`] for reading. A write ends this process with
    /// SIGSEGV.
    pub(crate) fn open_read_only(fd: OwnedFd, len: usize) -> Result<Self> {
        Self::open_sealed(fd, len, ONE_WRITER_SEALS, ProtFlags::PROT_READ)
    }

    fn open_sealed(
        fd: OwnedFd,
        len: usize,
        needed: SealFlag,
        protection: ProtFlags,
    ) -> Result<Self> {
        let seals =
            fcntl(&fd, FcntlArg::F_GET_SEALS).map_err(|e| Error::io("read the seals", e))?;
        if SealFlag::from_bits_truncate(seals) & needed != needed {
            return Err(Error::protocol("the received memory is not sealed"));
        }
        let size = fstat(&fd)
            .map_err(|e| Error::io("fstat shared memory", e))?
            .st_size;
        if usize::try_from(size) != Ok(len) {
            return Err(Error::protocol(format!(
                "the received memory has {size} bytes, its layout needs {len}"
            )));
        }
        Self::map(fd, len, protection)
    }

    fn map(fd: OwnedFd, len: usize, protection: ProtFlags) -> Result<Self> {
        let size = std::num::NonZeroUsize::new(len)
            .ok_or_else(|| Error::config("0 bytes cannot be mapped"))?;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches
        // no memory of ours. The size is sealed: `open_sealed` checks that, and `create_sealed`
        // seals it before it returns. So no later access to the file's pages can fault.
        let base =
            unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, &fd, 0) }.map_err(|e| {
                Error::io(
                    format!("map {} of shared memory", size_rounded_up(len as u64)),
                    e,
                )
            })?;
        // Excludes it from core files, which would be large. An error only makes them larger.
        // SAFETY: the whole mapping from above; this call does not change memory.
        let _ = unsafe { madvise(base, len, MmapAdvise::MADV_DONTDUMP) };
        Ok(Self {
            fd,
            base: base.cast(),
            len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The `i`-th 8-byte word. Panics if it is outside: offsets come from the layout, which was
    /// checked against the length.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> &AtomicU64 {
        assert!(i < self.len / 8, "word {i} lies outside the memory");
        // SAFETY: in bounds by the assertion, aligned because the map starts
        // on a page; AtomicU64 allows every bit pattern and shared mutation,
        // and lives as long as the map, which `&self` keeps.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().cast::<u64>().add(i)) }
    }

    /// Maps the pages of `len` bytes at `offset` in one call, instead of one page fault each. It
    /// changes the speed only. Kernels before 5.14 do not support it.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> nix::Result<()> {
        let start = offset - offset % PAGE;
        let end = (offset + len).next_multiple_of(PAGE).min(self.len);
        let at = self.bytes_at(start, end - start);
        // SAFETY: the range lies inside this mapping (`bytes_at` asserts it);
        // populating changes no byte of it.
        let done = unsafe { libc::madvise(at.cast(), end - start, libc::MADV_POPULATE_WRITE) };
        Errno::result(done).map(drop)
    }

    /// Makes `range`, in whole pages, read-only in this process only. A later write ends this
    /// process with SIGSEGV.
    pub(crate) fn make_read_only(&self, range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let whole = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
        assert!(whole, "bytes {range:?} are no whole pages");
        let at = NonNull::new(self.bytes_at(range.start, range.len()))
            .ok_or_else(|| Error::protocol("shared memory has no address"))?;
        // SAFETY: the range lies inside this mapping (`bytes_at` asserts it). All access to
        // it is by atomics and raw pointers, which reading alone does not break; a write is
        // a signal that ends the process, and no memory changes.
        unsafe { mprotect(at.cast(), range.len(), ProtFlags::PROT_READ) }
            .map_err(|e| Error::io("make shared memory read-only", e))
    }

    /// Copies `bytes` to `offset`. Panics if they are outside. Another process may read them at the
    /// same time, and then sees any mixture.
    pub(crate) fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        let to = self.bytes_at(offset, bytes.len());
        // SAFETY: `to` has room for the bytes (`bytes_at` asserts it), and `bytes` is memory of this
        // process that no shared mapping overlaps.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Copies bytes from `offset` to `to`. Panics if they are outside. Bytes that another process
    /// writes at the same time come as any mixture.
    pub(crate) fn read_bytes(&self, offset: usize, to: &mut [u8]) {
        let from = self.bytes_at(offset, to.len());
        // SAFETY: `from` has as many bytes (`bytes_at` asserts it), and `to` is memory of this
        // process that no shared mapping overlaps.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }

    /// Pointer to `len` bytes at `offset`. Panics if they are outside.
    #[inline]
    pub(crate) fn bytes_at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "bytes {offset}+{len} lie outside the memory"
        );
        // SAFETY: in bounds of the mapping by the assertion.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are those of the mapping made in `map`, and
        // nothing borrowed from `self` can outlive it.
        if let Err(e) = unsafe { munmap(self.base.cast(), self.len) } {
            tracing::warn!("munmap of shared memory failed: {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_maps_show_the_same_bytes() {
        let a = SharedMemory::create("featherload-test", 8192).unwrap();
        let b = SharedMemory::open(a.as_fd().try_clone_to_owned().unwrap(), 8192).unwrap();
        a.word(3).store(42, Ordering::Release);
        assert_eq!(b.word(3).load(Ordering::Acquire), 42);
    }

    #[test]
    fn memory_of_one_writer_is_not_mapped_for_writing() {
        let a = SharedMemory::create_for_one_writer("featherload-test", PAGE).unwrap();
        a.allocate(0..PAGE, "a test").unwrap();
        a.word(3).store(42, Ordering::Release);
        let fd = || a.as_fd().try_clone_to_owned().unwrap();
        let b = SharedMemory::open_read_only(fd(), PAGE).unwrap();
        a.word(4).store(43, Ordering::Release);
        assert_eq!(b.word(3).load(Ordering::Acquire), 42);
        assert_eq!(b.word(4).load(Ordering::Acquire), 43);
        let e = SharedMemory::open(fd(), PAGE).unwrap_err().to_string();
        assert!(e.contains("Operation not permitted"), "{e}");
        let other = SharedMemory::create("featherload-test", PAGE).unwrap();
        let other = other.as_fd().try_clone_to_owned().unwrap();
        assert!(SharedMemory::open_read_only(other, PAGE).is_err());
    }

    #[test]
    fn populating_changes_nothing() {
        let a = SharedMemory::create("featherload-test", 3 * PAGE).unwrap();
        a.allocate(0..3 * PAGE, "a test").unwrap();
        a.word(600).store(7, Ordering::Release);
        for (offset, len) in [
            (0, 1),
            (100, 2 * PAGE),
            (3 * PAGE - 1, 1),
            (5, 3 * PAGE - 5),
        ] {
            // An older kernel refuses.
            let _ = a.populate(offset, len);
        }
        assert_eq!(a.word(600).load(Ordering::Acquire), 7);
        assert_eq!(a.word(0).load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_wrong_length_is_refused() {
        let a = SharedMemory::create("featherload-test", 8192).unwrap();
        let fd = a.as_fd().try_clone_to_owned().unwrap();
        assert!(SharedMemory::open(fd, 4096).is_err());
    }

    #[test]
    #[should_panic(expected = "outside the memory")]
    fn words_outside_are_refused() {
        let a = SharedMemory::create("featherload-test", 4096).unwrap();
        a.word(512);
    }
}
