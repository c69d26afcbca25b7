//! The system calls that a worker may make: a list, enforced by seccomp.
//!
//! Any other call does not run. Instead the process gets SIGSYS. Its handler
//! ([`end_on_refused_call`]) stores the number of the call and ends the process.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, Ge, Lt, MaskedEq};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::error::{Error, Result};

/// Checks that this kernel supports it.
///
/// # Errors
/// There is no list for this processor; the kernel has no seccomp; a container denies the call.
pub(crate) fn check() -> Result<()> {
    target()?;
    let action = libc::SECCOMP_RET_TRAP;
    // SAFETY: checks whether the kernel knows the action, whose number it reads; changes nothing.
    let known = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    check_zero("ask for seccomp", known)
}

fn target() -> Result<TargetArch> {
    std::env::consts::ARCH.try_into().map_err(refused)
}

fn refused(e: seccompiler::BackendError) -> Error {
    Error::config(format!("no list of system calls can be made: {e}"))
}

/// Resources of a worker that some calls may use.
#[derive(Debug, Clone)]
pub(crate) struct AllowedResources<'a> {
    /// Number of the process.
    pub(crate) process: u32,
    /// Descriptors that it may write and lock.
    pub(crate) files: &'a [RawFd],
    /// Addresses of the shared memory, a part of which is writable. Mappings that begin there
    /// cannot be moved or extended, because their access rights would move with them.
    pub(crate) shared: Range<usize>,
}

/// From here on this process can make only listed system calls.
///
/// # Errors
/// The kernel rejects it.
pub(crate) fn enter(own: &AllowedResources<'_>, refused_call: &'static AtomicU64) -> Result<()> {
    let program = program(own)?;
    install_handler(refused_call)?;
    // SAFETY: takes numbers; from here on an exec gives no more rights.
    let given_up = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    check_zero("give up new rights", given_up.into())?;
    let length = u16::try_from(program.len())
        .map_err(|_| Error::config("the list of system calls is too long"))?;
    let list = libc::sock_fprog {
        len: length,
        // Both types are the kernel's `struct sock_filter`.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // Without this flag, kernels before 5.16 slow down all loads and stores of a process with a
    // filter. That protects secrets from code compiled for others (JavaScript). A worker has no
    // secrets and compiles nothing.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: `list` and the program that it points to live until the call returns, and the
    // kernel copies and checks them.
    let limited = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const list,
        )
    };
    check_zero("limit the system calls of a worker", limited)
}

/// Checks the result of a call that returns 0 on success.
fn check_zero(operation: &str, answer: i64) -> Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(Error::io(operation, io::Error::last_os_error())),
    }
}

/// Rules per call. One of them must match. Without rules, any arguments are allowed.
type CallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The list as a program for the kernel.
fn program(own: &AllowedResources<'_>) -> Result<BpfProgram> {
    let list = list(own).map_err(refused)?;
    SeccompFilter::new(list, SeccompAction::Trap, SeccompAction::Allow, target()?)
        .and_then(TryInto::try_into)
        .map_err(refused)
}

/// Condition on argument number `at`.
fn arg(
    at: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(at, Dword, operator, value)
}

#[rustfmt::skip] // One call a line, each with its reason.
fn list(own: &AllowedResources<'_>) -> Result<CallRules, seccompiler::BackendError> {
    let all = |conditions| SeccompRule::new(conditions);
    let any_of = |at, values: &[i32]| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        values.iter().map(|v| all(vec![arg(at, Eq, *v as u32 as u64)?])).collect()
    };
    let flag = |at, flag: i32| arg(at, MaskedEq(flag as u32 as u64), flag as u32 as u64);
    let without = |at, flags: i32| arg(at, MaskedEq(flags as u32 as u64), 0);
    let address = |operator, value: usize| SeccompCondition::new(0, Qword, operator, value as u64);
    let moves = || arg(3, Eq, libc::MREMAP_MAYMOVE as u64);
    let shared = |kind: i32| arg(3, MaskedEq(libc::MAP_TYPE as u64), kind as u64);

    let mut list = CallRules::from([
        // A sample is opened to read, examined, mapped and closed. `files` limits which ones.
        (libc::SYS_openat, vec![all(vec![without(2, libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC)?])?]),
        // musl uses this call instead.
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, vec![all(vec![without(1, libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC)?])?]),
        (libc::SYS_newfstatat, vec![all(vec![flag(3, libc::AT_EMPTY_PATH)?])?]),
        (libc::SYS_statx, vec![all(vec![flag(2, libc::AT_EMPTY_PATH)?])?]),
        (libc::SYS_fstat, vec![]),
        (libc::SYS_fstatfs, vec![]),
        (libc::SYS_close, vec![]),
        // Private memory, which RLIMIT_DATA counts, and files to read. No new map can write shared
        // memory or execute code. Shared memory without a file is not counted by any limit, even
        // read-only.
        (libc::SYS_mmap, vec![
            all(vec![shared(libc::MAP_PRIVATE)?, without(2, libc::PROT_EXEC)?])?,
            all(vec![shared(libc::MAP_SHARED)?, without(3, libc::MAP_ANONYMOUS)?, without(2, libc::PROT_EXEC | libc::PROT_WRITE)?])?,
            // glibc 2.41 and later keep random numbers there; like private memory.
            all(vec![shared(libc::MAP_DROPPABLE)?, flag(3, libc::MAP_ANONYMOUS)?, without(2, libc::PROT_EXEC)?])?,
        ]),
        (libc::SYS_munmap, vec![]),
        // Large blocks of the allocator grow in place.
        (libc::SYS_mremap, vec![
            all(vec![moves()?, address(Lt, own.shared.start)?])?,
            all(vec![moves()?, address(Ge, own.shared.end)?])?,
        ]),
        (libc::SYS_brk, vec![]),
        // Read-ahead, unneeded memory, pages of the ring in one call. Not MADV_REMOVE, which takes
        // shared pages from other processes.
        (libc::SYS_madvise, any_of(2, &[
            libc::MADV_NORMAL, libc::MADV_RANDOM, libc::MADV_SEQUENTIAL, libc::MADV_WILLNEED,
            libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_HUGEPAGE, libc::MADV_NOHUGEPAGE,
            libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE,
        ])?),
        // Sleeps until there is work, wakes the consumer, and locks of the standard library.
        (libc::SYS_futex, any_of(1, &[
            libc::FUTEX_WAIT, libc::FUTEX_WAKE,
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
        ])?),
        // Waits for an image that another worker decodes.
        (libc::SYS_clock_nanosleep, vec![]),
        // The kernel itself, if reading a clock needs a call.
        (libc::SYS_clock_gettime, vec![]),
        // Seeds of hash tables.
        (libc::SYS_getrandom, vec![]),
        // Lines on stderr, which is the coordinator's pipe, or on stdout, which is /dev/null.
        (libc::SYS_write, any_of(0, &[1, 2])?),
        (libc::SYS_writev, any_of(0, &[1, 2])?),
        // Number of processors: allocators read it, some of them late.
        (libc::SYS_sched_getaffinity, any_of(0, &[0])?),
        // Locks belong to a process, so the code checks that it still runs in the same one.
        (libc::SYS_getpid, vec![]),
        (libc::SYS_gettid, vec![]),
        // Normal exit, abort, exit from a signal handler; and being stopped.
        (libc::SYS_exit_group, vec![]),
        (libc::SYS_tgkill, vec![all(vec![arg(0, Eq, own.process.into())?, arg(2, Eq, libc::SIGABRT as u64)?])?]),
        (libc::SYS_rt_sigprocmask, vec![]),
        // The standard library prints why it aborts, with paths relative to this folder.
        (libc::SYS_getcwd, vec![]),
        (libc::SYS_rt_sigreturn, vec![]),
        (libc::SYS_restart_syscall, vec![]),
    ]);
    // Debug builds of the standard library check that a descriptor is open before closing it. musl
    // needs it for O_CLOEXEC.
    let mut locks = any_of(1, &[libc::F_GETFD, libc::F_SETFD])?;
    for fd in own.files {
        let of = || arg(0, Eq, *fd as u32 as u64);
        // An image store on disk, and allocation of an image store in memory.
        list.entry(libc::SYS_pread64).or_default().push(all(vec![of()?])?);
        list.entry(libc::SYS_pwrite64).or_default().push(all(vec![of()?])?);
        list.entry(libc::SYS_fallocate).or_default().push(all(vec![of()?, arg(1, Eq, 0)?])?);
        locks.push(all(vec![of()?, arg(1, Eq, libc::F_OFD_SETLK as u64)?])?);
    }
    list.insert(libc::SYS_fcntl, locks);
    Ok(list)
}

/// Exit status after a forbidden system call.
pub(crate) const EXIT_REFUSED: i32 = 78;

static REFUSED_CALL: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the stack of `sigaltstack`, if there is one. `refused_call` gets the number of the call
/// plus 1.
fn install_handler(refused_call: &'static AtomicU64) -> Result<()> {
    REFUSED_CALL.store(
        std::ptr::from_ref(refused_call).cast_mut(),
        Ordering::Release,
    );
    // SAFETY: an all-zero sigaction is a valid value: no flags, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = end_on_refused_call as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `end_on_refused_call` has the signature that SA_SIGINFO asks for and calls only
    // async-signal-safe functions.
    let installed = unsafe { libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()) };
    check_zero("install the SIGSYS handler", installed.into())
}

/// The part of `siginfo_t` that the kernel fills for SIGSYS (`include/uapi/asm-generic/siginfo.h`).
#[repr(C)]
struct SigsysInfo {
    signal: [libc::c_int; 3],
    address: *mut c_void,
    call: libc::c_int,
    arch: libc::c_uint,
}

extern "C" fn end_on_refused_call(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut c_void,
) {
    let word = REFUSED_CALL.load(Ordering::Acquire);
    if !word.is_null() {
        // SAFETY: the kernel passes a valid siginfo of 128 bytes to an SA_SIGINFO handler, and for
        // SIGSYS these are its first ones. The word is a `&'static`, by `install_handler`.
        unsafe {
            let call = (*info.cast::<SigsysInfo>()).call;
            (*word).store(u64::from(call as u32) + 1, Ordering::Release);
        }
    }
    // SAFETY: `_exit` is async-signal-safe and does not return.
    unsafe { libc::_exit(EXIT_REFUSED) };
}

/// The name of a call, if it is one that unsuitable code often makes.
pub(crate) fn name(call: i64) -> Option<&'static str> {
    let names = [
        (libc::SYS_openat, "openat to write"),
        (libc::SYS_mmap, "mmap of shared or executable memory"),
        (libc::SYS_madvise, "madvise"),
        (libc::SYS_mprotect, "mprotect"),
        (libc::SYS_mremap, "mremap of shared memory"),
        (libc::SYS_execve, "execve"),
        (libc::SYS_execveat, "execveat"),
        (libc::SYS_clone, "clone"),
        (libc::SYS_clone3, "clone3"),
        (libc::SYS_ptrace, "ptrace"),
        (libc::SYS_kill, "kill"),
        (libc::SYS_tgkill, "tgkill"),
        (libc::SYS_socket, "socket"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_read, "read"),
        (libc::SYS_write, "write"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_ioctl, "ioctl"),
        (libc::SYS_prctl, "prctl"),
        (libc::SYS_rt_sigaction, "rt_sigaction"),
        (libc::SYS_memfd_create, "memfd_create"),
        (libc::SYS_process_vm_writev, "process_vm_writev"),
        (libc::SYS_unlinkat, "unlinkat"),
    ];
    names
        .into_iter()
        .find_map(|(number, name)| (number == call).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(files: &[RawFd]) -> AllowedResources<'_> {
        AllowedResources {
            process: 1,
            files,
            shared: 4096..8192,
        }
    }

    #[test]
    fn a_list_is_a_program_of_bounded_length() {
        for files in [&[][..], &[3, 4, 5, 6]] {
            let program = program(&own(files)).unwrap();
            assert!(
                program.len() > 50 && program.len() < 1000,
                "{}",
                program.len()
            );
        }
    }

    #[test]
    fn the_calls_number_lies_where_the_kernel_writes_it() {
        assert_eq!(std::mem::offset_of!(SigsysInfo, address), 16);
        assert_eq!(std::mem::offset_of!(SigsysInfo, call), 24);
        assert!(size_of::<SigsysInfo>() <= size_of::<libc::siginfo_t>());
    }

    #[test]
    fn no_call_of_the_list_starts_a_program_or_writes_elsewhere() {
        let list = list(&own(&[])).unwrap();
        for never in [
            libc::SYS_execve,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_mprotect,
            libc::SYS_ptrace,
            libc::SYS_kill,
            libc::SYS_socket,
            libc::SYS_pwrite64,
            libc::SYS_memfd_create,
        ] {
            assert!(!list.contains_key(&never), "{:?}", name(never));
        }
    }
}
