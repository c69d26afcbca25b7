//! The sandbox of workers: the user's option, and what the kernel supports of it.
//!
//! Chosen in the consumer, prepared in the coordinator. Each worker enters it just before its first
//! row. Never in here: lists of calls and rights (`sys/sandbox`).

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, limits};
use crate::sys::process;
use crate::sys::sandbox::calls::AllowedResources;
use crate::sys::sandbox::files::FileRules;
use crate::sys::sandbox::{calls, files};
use crate::sys::sealed_bytes::SealedBytes;

/// Exit status of a trial that failed without a system error. No system error has this number.
const OTHER_REFUSAL: i32 = 255;
/// Exit status of a process that panics.
const PANICKED: i32 = 101;

/// Retries of a failed fork, and the wait between two.
const FORK_TRIES: u32 = 50;
const FORK_WAIT: Duration = Duration::from_millis(100);

/// Restricts workers, because they decode untrusted files. A worker may make only listed system
/// calls (seccomp). It may read only files of the data set (Landlock, Linux 5.13).
///
/// An unlisted call ends the worker. If the same file causes it again, its sample fails. Files
/// outside the data set cannot be opened. Links that lead out of a folder work if they existed when
/// the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// As far as kernel and container support it. `featherload doctor` and the report of a run show
    /// the extent.
    #[default]
    Auto,
    /// Fails if any part is not supported.
    Require,
    /// Off: for a helper whose allocator or profiler needs other calls. The fault "made the
    /// forbidden system call" names such a call.
    Off,
}

impl FromStr for Sandbox {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "require" => Ok(Self::Require),
            "off" => Ok(Self::Off),
            _ => Err(Error::option(
                "sandbox",
                format!("'{text}' is invalid: use auto, require or off"),
            )),
        }
    }
}

/// The parts of the sandbox that are in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// System calls are limited to the list.
    pub calls: bool,
    /// Files are limited to the data set.
    pub files: bool,
}

impl SandboxStatus {
    /// The parts that this kernel supports. A container may still reject them: the report of a run
    /// has the final answer.
    #[must_use]
    pub fn possible() -> Self {
        Self {
            calls: calls::check().is_ok(),
            files: files::check().is_ok(),
        }
    }

    /// A text for people: the active parts, or `off`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match (self.calls, self.files) {
            (true, true) => "system calls and files",
            (true, false) => "system calls",
            (false, true) => "files",
            (false, false) => "off",
        }
    }
}

/// Writes the paths into sealed memory. There may be many, and they need not be UTF-8. Each follows
/// a zero byte, which no path contains.
pub(crate) fn seal_paths(readable: &[PathBuf]) -> Result<SealedBytes> {
    let paths = readable.iter().map(|path| path.as_os_str().as_bytes());
    let bytes = paths.fold(vec![0], |mut all, path| {
        all.extend_from_slice(path);
        all.push(0);
        all
    });
    SealedBytes::new("featherload-readable", &[&bytes])
}

/// Reads the paths that [`seal_paths`] wrote.
///
/// # Errors
/// The memory is not sealed.
pub(crate) fn unseal_paths(readable: OwnedFd) -> Result<Vec<PathBuf>> {
    let sealed = SealedBytes::from_fd(readable)?;
    let paths = sealed.bytes().split(|&byte| byte == 0);
    let paths = paths.filter(|path| !path.is_empty());
    Ok(paths.map(|path| OsStr::from_bytes(path).into()).collect())
}

/// How a trial process ended.
enum TrialOutcome {
    Passed,
    /// The number of a system error; 0 for other errors.
    Refused(i32),
    /// It made an unlisted system call.
    Unlisted,
    Killed(Signal),
}

impl TrialOutcome {
    /// Advice to use another kernel or container, where that would help. It does not help if this
    /// process reached a limit or crashed by itself.
    fn advice(&self) -> &'static str {
        match self {
            Self::Refused(errno) if limits::is_reached(*errno) => "",
            Self::Unlisted | Self::Killed(Signal::SIGABRT | Signal::SIGSEGV) => "",
            _ => {
                "; use Linux 5.13 or newer with Landlock, in a container that allows seccomp and \
                 Landlock, or `auto`"
            }
        }
    }

    /// Converts the outcome into a result. `check` finds the reason in this process, where that is
    /// safe.
    fn into_result(self, check: fn() -> Result<()>) -> Result<()> {
        match self {
            Self::Passed => Ok(()),
            Self::Refused(0) => {
                check().and_then(|()| Err(Error::config("this system denies it to processes")))
            }
            Self::Refused(errno) => Err(Error::io(
                "a process that tried it",
                io::Error::from_raw_os_error(errno),
            )),
            Self::Unlisted => Err(Error::config(
                "this program's allocator makes system calls that are not on it",
            )),
            // It crashed by itself, for example for lack of memory.
            Self::Killed(signal @ (Signal::SIGABRT | Signal::SIGSEGV)) => {
                let limits = limits::memory().map_or(String::new(), |limits| format!("; {limits}"));
                Err(Error::config(format!(
                    "the process that tried it ended by {signal}{limits}"
                )))
            }
            Self::Killed(signal) => Err(Error::config(format!(
                "this system kills a process that uses it ({signal})"
            ))),
        }
    }
}

/// Runs `what` in a child process.
fn run_in_child(what: impl Fn() -> Result<()>) -> Result<TrialOutcome> {
    let mut tries = 0;
    let child = loop {
        match process::fork_never_returning(|| what().map_or_else(|e| exit_status(&e), |()| 0)) {
            Ok(child) => break child,
            // A limit on processes may be temporary.
            Err(_) if tries < FORK_TRIES => tries += 1,
            Err(e) => return Err(e),
        }
        std::thread::sleep(FORK_WAIT);
    };
    Ok(match process::exit_code(child)? {
        Ok(0) => TrialOutcome::Passed,
        Ok(calls::EXIT_REFUSED) => TrialOutcome::Unlisted,
        Ok(OTHER_REFUSAL | PANICKED) => TrialOutcome::Refused(0),
        Ok(errno) => TrialOutcome::Refused(errno),
        Err(signal) => TrialOutcome::Killed(signal),
    })
}

/// Exit status that passes the system error to the parent.
fn exit_status(e: &Error) -> i32 {
    match e {
        Error::Io { source, .. } => source.raw_os_error(),
        _ => None,
    }
    .filter(|errno| *errno != calls::EXIT_REFUSED)
    .unwrap_or(OTHER_REFUSAL)
}

fn enter_files(readable: &[PathBuf]) -> Result<()> {
    files::check()?;
    FileRules::new(readable)?.enter()
}

/// Also allocates memory as decoders do, because some allocators use special system calls. Blocks
/// that exceed a memory limit are skipped, as workers may need less.
fn enter_calls() -> Result<()> {
    static REFUSED_CALL: AtomicU64 = AtomicU64::new(0);
    calls::check()?;
    let own = AllowedResources {
        process: std::process::id(),
        files: &[],
        shared: 0..0,
    };
    calls::enter(&own, &REFUSED_CALL)?;
    for _ in 0..2 {
        let mut blocks: [Vec<u8>; 25] = Default::default();
        for (bits, block) in blocks.iter_mut().enumerate().skip(4) {
            let _ = block.try_reserve_exact(1 << bits);
        }
        drop(std::hint::black_box(blocks));
    }
    Ok(())
}

/// The prepared sandbox of a worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerSandbox {
    calls: bool,
    files: Option<FileRules>,
}

impl WorkerSandbox {
    /// Prepares the sandbox. Workers may read files at or below `readable`. A child process, which
    /// has one thread, tries each part: a container may reject what its kernel supports, or kill
    /// the caller.
    ///
    /// # Errors
    /// A required part is not supported; the kernel rejects the rules; the fork fails.
    pub(crate) fn prepare(choice: Sandbox, readable: &[PathBuf]) -> Result<Self> {
        if choice == Sandbox::Off {
            return Ok(Self::default());
        }
        let (calls, files) =
            match run_in_child(|| enter_files(readable).and_then(|()| enter_calls()))? {
                TrialOutcome::Passed => (TrialOutcome::Passed, TrialOutcome::Passed),
                _ => (
                    run_in_child(enter_calls)?,
                    run_in_child(|| enter_files(readable))?,
                ),
            };
        let kept = |part: &str, run_in_child: TrialOutcome, check| match (
            choice,
            run_in_child.advice(),
            run_in_child.into_result(check),
        ) {
            (_, _, Ok(())) => Ok(true),
            (Sandbox::Require, advice, Err(e)) => Err(Error::option(
                "sandbox",
                format!(
                    "it is required, but workers cannot be limited to a list of {part}: \
                     {e}{advice}"
                ),
            )),
            (_, _, Err(e)) => {
                tracing::warn!("sandbox: workers are not limited to a list of {part}: {e}");
                Ok(false)
            }
        };
        Ok(Self {
            calls: kept("system calls", calls, calls::check)?,
            files: match kept("files", files, files::check)? {
                true => Some(FileRules::new(readable)?),
                false => None,
            },
        })
    }

    pub(crate) fn sandboxed(&self) -> SandboxStatus {
        SandboxStatus {
            calls: self.calls,
            files: self.files.is_some(),
        }
    }

    /// From here on this process, a worker, can open no other file. Call it before
    /// [`WorkerSandbox::limit_calls`] and while the coordinator's descriptors are open.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub(crate) fn limit_files(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), FileRules::enter)
    }

    /// From here on this process can make only listed system calls. `own` limits the arguments of
    /// some. `refused_call` gets the number of an unlisted call.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub(crate) fn limit_calls(
        &self,
        own: &AllowedResources<'_>,
        refused_call: &'static AtomicU64,
    ) -> Result<()> {
        match self.calls {
            true => calls::enter(own, refused_call),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn many_folders_and_names_that_are_no_text_come_as_they_were() {
        let name = |n: u32| OsStr::from_bytes(format!("/a/{n}/\u{e4}").as_bytes()).into();
        let mut paths: Vec<PathBuf> = (0..20_000).map(name).collect();
        paths.push(OsStr::from_bytes(b"/data/\xff").into());
        for paths in [&paths[..], &[]] {
            let sealed = seal_paths(paths).unwrap();
            let fd = sealed.as_fd().try_clone_to_owned().unwrap();
            assert_eq!(unseal_paths(fd).unwrap(), paths);
        }
    }

    #[test]
    fn another_kernel_is_advised_where_this_one_refuses_alone() {
        let limits = [libc::EMFILE, libc::ENOMEM].map(TrialOutcome::Refused);
        let own = [Signal::SIGABRT, Signal::SIGSEGV].map(TrialOutcome::Killed);
        for run_in_child in limits.iter().chain(&own).chain([&TrialOutcome::Unlisted]) {
            assert_eq!(run_in_child.advice(), "");
        }
        for run_in_child in [
            TrialOutcome::Refused(0),
            TrialOutcome::Refused(libc::EPERM),
            TrialOutcome::Killed(Signal::SIGSYS),
        ] {
            assert!(run_in_child.advice().contains("Linux 5.13"));
        }
    }

    /// A child process tries the rest, so it needs a process with one thread.
    #[test]
    fn off_asks_for_nothing() {
        let off = WorkerSandbox::prepare(Sandbox::Off, &[]).unwrap();
        assert_eq!(off.sandboxed(), SandboxStatus::default());
    }
}
