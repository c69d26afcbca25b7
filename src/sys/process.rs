//! Starts processes, waits for their end, and prepares a child.
//!
//! `fork` is called in the coordinator, and in a consumer with `LaunchMethod::Fork`. Both must have
//! one thread, which is checked.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, getpid, getppid, setpgid};

use crate::error::{Error, Result};

/// A process by its descriptor, so that a reused number does no harm.
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    pub(crate) fn open(pid: Pid) -> Result<Self> {
        // SAFETY: pidfd_open takes two integers and returns a descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        let fd = Errno::result(fd).map_err(|e| Error::io(format!("pidfd_open {pid}"), e))?;
        // SAFETY: the kernel has just installed `fd`; no other value owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    pub(crate) fn current() -> Result<Self> {
        Self::open(getpid())
    }

    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sends SIGKILL to this process.
    pub(crate) fn kill(&self) {
        if let Err(e) = self.send(libc::SIGKILL) {
            // It has ended already.
            tracing::debug!("pidfd_send_signal: {e}");
        }
    }

    /// Sends a signal to this process. Signal 0 only checks whether one could be sent.
    pub(crate) fn send(&self, signal: i32) -> io::Result<()> {
        // SAFETY: takes two integers, a null siginfo and no flags.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        Ok(Errno::result(sent).map(drop)?)
    }

    /// The signal that stopped this child; `None` if it is not stopped.
    pub(crate) fn stopped(&self) -> Option<Signal> {
        // The status stays available until the child continues.
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::PIDFd(self.0.as_fd()), flags) {
            Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
            _ => None,
        }
    }

    /// Reaps this child, and returns how it ended. `None` if it is alive (and `wait` is false), or
    /// was reaped elsewhere.
    pub(crate) fn reap(&self, wait: bool) -> Option<WaitStatus> {
        let mut flags = WaitPidFlag::WEXITED;
        if !wait {
            flags |= WaitPidFlag::WNOHANG;
        }
        loop {
            match waitid(Id::PIDFd(self.0.as_fd()), flags) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::StillAlive) | Err(_) => return None,
                Ok(status) => return Some(status),
            }
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How long a joined thread may stay in the kernel's list.
const THREAD_LEAVES: Duration = Duration::from_millis(50);

/// Number of threads of this process according to the kernel. It may include a thread that was just
/// joined, so a number above one is read again.
pub(crate) fn thread_count() -> Result<usize> {
    let began = Instant::now();
    loop {
        let tasks = fs::read_dir("/proc/self/task")
            .map_err(|e| Error::io_at("read", "/proc/self/task", e))?;
        let count = tasks.count();
        if count <= 1 || began.elapsed() >= THREAD_LEAVES {
            return Ok(count);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The libraries in LD_PRELOAD, which may have started threads before `main`. `None` if it is
/// empty.
pub(crate) fn preloaded() -> Option<String> {
    let named = std::env::var_os("LD_PRELOAD")?;
    let named = named.to_string_lossy().trim().to_owned();
    (!named.is_empty()).then_some(named)
}

/// Checks that /proc is mounted, which every process of a pool needs.
///
/// # Errors
/// /proc is not mounted. The text states the fix.
pub(crate) fn check_proc() -> Result<()> {
    let tasks = "/proc/self/task";
    match fs::read_dir(tasks) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(Error::config(format!(
            "worker processes need /proc, which is not mounted here (read {tasks}: {e}): mount \
             it, or use `num_workers: 0`"
        ))),
        Err(e) => Err(Error::io_at("read", tasks, e)),
    }
}

/// Whether a descriptor of this process leads to an NVIDIA device. Then CUDA was initialised here
/// and would not survive a fork.
///
/// # Errors
/// The descriptors cannot be listed.
pub(crate) fn cuda_initialised() -> Result<bool> {
    let folder = "/proc/self/fd";
    let entries = fs::read_dir(folder).map_err(|e| Error::io_at("read", folder, e))?;
    Ok(entries.flatten().any(|e| {
        fs::read_link(e.path()).is_ok_and(|to| {
            to.as_os_str()
                .as_encoded_bytes()
                .starts_with(b"/dev/nvidia")
        })
    }))
}

/// Runs `child` in a forked process that never returns to the caller's code. It ends with `_exit`,
/// so no destructor or at-exit handler of the parent runs in it.
///
/// # Errors
/// This process has several threads; the fork fails.
pub(crate) fn fork_never_returning(child: impl FnOnce() -> i32) -> Result<Pid> {
    let threads = thread_count()?;
    if threads != 1 {
        let preloaded = preloaded().map_or(String::new(), |libraries| {
            format!(" (a library of LD_PRELOAD={libraries} may have started one)")
        });
        return Err(Error::config(format!(
            "cannot fork: this process has {threads} threads{preloaded} and a forked copy would \
             inherit their locks but not the threads; build the loader before starting threads, or \
             use LaunchMethod::Exec"
        )));
    }
    // SAFETY: one thread (checked above), so every lock is free and the child
    // may run ordinary code; it leaves only through `_exit`.
    match unsafe { nix::unistd::fork() }.map_err(|e| Error::not_started("fork", e.into()))? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(101);
            exit_now(code)
        }
    }
}

/// Waits for a child. Returns its exit status, or the signal that ended it.
pub(crate) fn exit_code(child: Pid) -> Result<std::result::Result<i32, Signal>> {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(Ok(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(Err(signal)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(Error::io("waitpid", e)),
        }
    }
}

/// Ends the process at once, without destructors and at-exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// Sets the name of this process in `ps`.
pub(crate) fn set_name(name: &CStr) {
    // The name is only for people, so an error is ignored.
    let _ = prctl::set_name(name);
}

/// Starts a new process group, so that Ctrl-C in a terminal reaches the consumer only.
pub(crate) fn lead_own_group() -> Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(|e| Error::io("setpgid", e))
}

/// Resets all signal handlers and the mask. Then ignores SIGINT, SIGHUP and SIGPIPE. Also ignores
/// SIGTTOU and SIGTTIN, which a terminal may send to stop a writer from another process group
/// (`stty tostop`).
pub(crate) fn reset_signals() -> Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    for signal in Signal::iterator() {
        let action = match signal {
            Signal::SIGKILL | Signal::SIGSTOP => continue,
            Signal::SIGINT
            | Signal::SIGHUP
            | Signal::SIGPIPE
            | Signal::SIGTTOU
            | Signal::SIGTTIN => &ignore,
            _ => &default,
        };
        // SAFETY: SIG_DFL and SIG_IGN run no code of ours.
        unsafe { sigaction(signal, action) }
            .map_err(|e| Error::io(format!("reset {signal}"), e))?;
    }
    // These have no names. The C library reserves the first two and hides them.
    for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL runs no code of ours.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            let e = io::Error::last_os_error();
            return Err(Error::io(format!("reset signal {signal}"), e));
        }
    }
    SigSet::empty()
        .thread_set_mask()
        .map_err(|e| Error::io("clear the signal mask", e))
}

/// Makes SIGSEGV and SIGBUS end this process, for the first line of a program.
///
/// Rust's own handler prints a line about stack overflows and expects the process to end. If the
/// signal was sent from outside, the handler returns and the process continues. A thread that
/// starts or ends at that moment then hangs forever (`std`, `stack_overflow/thread_info.rs`:
/// `pause`).
///
/// # Errors
/// A system call that fails.
#[cfg_attr(
    not(feature = "internals"),
    allow(dead_code, reason = "for programs alone")
)]
pub fn end_by_crash_signals() -> Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: SIG_DFL runs no code of ours.
        unsafe { sigaction(signal, &default) }
            .map_err(|e| Error::io(format!("reset {signal}"), e))?;
    }
    Ok(())
}

/// Makes the kernel kill this process when its parent dies, and checks that the parent is still
/// alive. The signal is sent when the parent *thread* ends, so the parent must have one thread.
pub(crate) fn die_with_parent(parent: Pid) -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| Error::io("set the death signal", e))?;
    if getppid() != parent {
        exit_now(0);
    }
    Ok(())
}

/// Closes every descriptor except `keep`. Their owners in this process must not be used or dropped
/// afterwards, so this is only for a child that never returns.
pub(crate) fn close_all_but(keep: &[RawFd]) -> Result<()> {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|&fd| u32::try_from(fd).ok())
        .collect();
    keep.sort_unstable();
    keep.dedup();
    let mut first = 0u32;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            let last = if fd == u32::MAX { u32::MAX } else { fd - 1 };
            close_range(first, last).map_err(|e| Error::io("close_range", e))?;
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

/// Calls close_range for a descriptor that cannot be open.
pub(crate) fn probe_close_range() -> io::Result<()> {
    close_range(u32::MAX, u32::MAX)
}

/// The caller fulfils the contract of [`close_all_but`].
fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closing descriptors touches no memory; this process will not use
    // their owners (the contract of the callers).
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    Ok(Errno::result(closed).map(drop)?)
}

/// Moves a descriptor to a number above the standard streams.
pub(crate) fn above_standard_streams(fd: OwnedFd) -> Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // The standard library uses numbers from 3 on.
    fd.try_clone()
        .map_err(|e| Error::io("duplicate the control socket", e))
}

/// Opens /dev/null as descriptors 0 and 1, and as 2 if that is closed.
pub(crate) fn standard_streams_to_null() -> Result<()> {
    let null = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|e| Error::io_at("open", "/dev/null", e))?;
    let mut targets = vec![0, 1];
    // SAFETY: F_GETFD on a number is defined whether it is open or not.
    if unsafe { libc::fcntl(2, libc::F_GETFD) } < 0 {
        targets.push(2);
    }
    for target in targets {
        if null.as_raw_fd() != target {
            // SAFETY: dup2 replaces the standard stream in the table; no
            // memory is touched and no other value in this child owns the number.
            let put = unsafe { libc::dup2(null.as_raw_fd(), target) };
            Errno::result(put).map_err(|e| Error::io("dup2 /dev/null", e))?;
        }
    }
    Ok(())
}

/// Makes the out-of-memory killer prefer this process to the trainer.
pub(crate) fn prefer_for_oom() {
    // Raising the value is always allowed. Without /proc the kernel's default stays.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
}

/// The next event of a child, without waiting: it has ended (and is reaped), was stopped, or was
/// continued. Each event is returned once.
pub(crate) fn child_event() -> Result<Option<WaitStatus>> {
    let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
    match waitpid(Pid::from_raw(-1), Some(flags)) {
        Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => Ok(None),
        Ok(status) => Ok(Some(status)),
        Err(Errno::EINTR) => Ok(None),
        Err(e) => Err(Error::io("waitpid", e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfd_becomes_readable_when_its_process_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let fd = PidFd::open(Pid::from_raw(child.id() as i32)).unwrap();
        let wait = |ms| {
            super::super::socket::readable(fd.as_fd(), std::time::Duration::from_millis(ms))
                .unwrap()
        };
        assert!(!wait(10));
        child.kill().unwrap();
        assert!(wait(5000));
        child.wait().unwrap();
    }

    #[test]
    fn forking_with_threads_is_refused() {
        // The test harness itself has several threads.
        std::thread::scope(|s| {
            let (tx, rx) = std::sync::mpsc::channel::<()>();
            s.spawn(move || rx.recv());
            let e = fork_never_returning(|| 0).unwrap_err().to_string();
            assert!(e.contains("LaunchMethod::Exec"), "{e}");
            drop(tx);
        });
    }
}
