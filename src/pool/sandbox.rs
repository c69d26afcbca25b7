//! What keeps workers from anything but their work: what a user asks for, and what the
//! kernel has of it.
//!
//! Chosen in the consumer, prepared in the coordinator, entered by each worker as the last
//! thing before its first row. Never in here: lists of calls and rights (`sys/sandbox`).

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

/// Exit status of a trial that failed without an error of the system: no error has this number.
const OTHER_REFUSAL: i32 = 255;
/// How a process ends that panics.
const PANICKED: i32 = 101;

/// Forks that fail, and the wait between two.
const FORK_TRIES: u32 = 50;
const FORK_WAIT: Duration = Duration::from_millis(100);

/// Whether workers, which decode files that nobody vouches for, are kept from everything
/// else: a list of system calls (seccomp), and of files only those of the data set, to be
/// read (Landlock, Linux 5.13).
///
/// A call outside of the list ends the worker, and the file at which it was is a failed
/// sample when that happens again. A file outside of the data set cannot be opened: links
/// that lead out of a folder are followed to where they led when the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// As far as the kernel and the container allow it. `featherload doctor` and the report
    /// of a run say how far that is.
    #[default]
    Auto,
    /// All of it, or no run.
    Require,
    /// Nothing: for a helper whose allocator or profiler needs other calls, which a fault
    /// "asked for system call" names.
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
                format!("'{text}' is none of auto, require, off"),
            )),
        }
    }
}

/// What workers are kept to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// The list of system calls.
    pub calls: bool,
    /// The files of the data set.
    pub files: bool,
}

impl SandboxStatus {
    /// What this kernel can do, which a container may refuse all the same: the report of a
    /// run says what its workers were kept to.
    #[must_use]
    pub fn possible() -> Self {
        Self {
            calls: calls::check().is_ok(),
            files: files::check().is_ok(),
        }
    }

    /// In words: of what kind, or `off`.
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

/// Paths as bytes that travel by descriptor: there may be many, and a name may be no text.
/// Each stands behind a zero byte, which none has in it.
pub(crate) fn seal_paths(readable: &[PathBuf]) -> Result<SealedBytes> {
    let paths = readable.iter().map(|path| path.as_os_str().as_bytes());
    let bytes = paths.fold(vec![0], |mut all, path| {
        all.extend_from_slice(path);
        all.push(0);
        all
    });
    SealedBytes::new("featherload-readable", &[&bytes])
}

/// What [`seal`] has sealed.
///
/// # Errors
/// Memory that is not sealed.
pub(crate) fn unseal_paths(readable: OwnedFd) -> Result<Vec<PathBuf>> {
    let sealed = SealedBytes::from_fd(readable)?;
    let paths = sealed.bytes().split(|&byte| byte == 0);
    let paths = paths.filter(|path| !path.is_empty());
    Ok(paths.map(|path| OsStr::from_bytes(path).into()).collect())
}

/// How a child that tried something ended.
enum TrialOutcome {
    Passed,
    /// An error of the system, by its number; 0 for one that has none.
    Refused(i32),
    /// It asked for a call that is not on the list.
    Unlisted,
    Killed(Signal),
}

impl TrialOutcome {
    /// What helps, where another kernel or container does: not where a limit of this process was
    /// reached, or where this program ended by itself.
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

    /// `check` asks the system why, where asking is known to end nobody.
    fn judge(self, check: fn() -> Result<()>) -> Result<()> {
        match self {
            Self::Passed => Ok(()),
            Self::Refused(0) => {
                check().and_then(|()| Err(Error::config("this system refuses it to a process")))
            }
            Self::Refused(errno) => Err(Error::io(
                "a process that tried it",
                io::Error::from_raw_os_error(errno),
            )),
            Self::Unlisted => Err(Error::config(
                "this program's allocator makes system calls that are not on it",
            )),
            // By itself, as where its memory ends.
            Self::Killed(signal @ (Signal::SIGABRT | Signal::SIGSEGV)) => {
                let limits = limits::memory().map_or(String::new(), |limits| format!("; {limits}"));
                Err(Error::config(format!(
                    "the process that tried it ended by {signal}{limits}"
                )))
            }
            Self::Killed(signal) => Err(Error::config(format!(
                "this system ends a process that asks for it ({signal})"
            ))),
        }
    }
}

/// What becomes of a child that does `what`.
fn trial(what: impl Fn() -> Result<()>) -> Result<TrialOutcome> {
    let mut tries = 0;
    let child = loop {
        match process::fork_never_returning(|| what().map_or_else(|e| exit_status(&e), |()| 0)) {
            Ok(child) => break child,
            // A limit on processes may pass.
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

/// The number of the system's error, by which the parent names it.
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

/// And takes memory as decoders do, for which some allocators make calls of their own. Blocks
/// that a limit of memory has no room for are left out: workers may live with smaller ones.
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

/// What a worker may still do, ready to be entered.
#[derive(Debug, Default)]
pub(crate) struct WorkerSandbox {
    calls: bool,
    files: Option<FileRules>,
}

impl WorkerSandbox {
    /// Workers may read what lies at `readable` and below. What this system lets a process do
    /// is tried by a child of this one, which has one thread: a container may refuse what its
    /// kernel has, or end whoever asks for it.
    ///
    /// # Errors
    /// A system that cannot do what is required; one that refuses rules, or forks no child.
    pub(crate) fn prepare(choice: Sandbox, readable: &[PathBuf]) -> Result<Self> {
        if choice == Sandbox::Off {
            return Ok(Self::default());
        }
        let (calls, files) = match trial(|| enter_files(readable).and_then(|()| enter_calls()))? {
            TrialOutcome::Passed => (TrialOutcome::Passed, TrialOutcome::Passed),
            _ => (trial(enter_calls)?, trial(|| enter_files(readable))?),
        };
        let kept = |part: &str, trial: TrialOutcome, check| match (
            choice,
            trial.advice(),
            trial.judge(check),
        ) {
            (_, _, Ok(())) => Ok(true),
            (Sandbox::Require, advice, Err(e)) => Err(Error::option(
                "sandbox",
                format!(
                    "it is required, and workers are not kept to a list of {part}: {e}{advice}"
                ),
            )),
            (_, _, Err(e)) => {
                tracing::warn!("sandbox: workers are not kept to a list of {part}: {e}");
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

    /// From here on this process, a worker, opens no other file. Before it makes no other
    /// call, and while descriptors of the coordinator are open.
    ///
    /// # Errors
    /// A kernel that refuses.
    pub(crate) fn limit_files(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), FileRules::enter)
    }

    /// From here on this process makes no other system call than those of the list, of which
    /// `own` is a part; one that it may not make is named in `refused_call`.
    ///
    /// # Errors
    /// A kernel that refuses.
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
        for trial in limits.iter().chain(&own).chain([&TrialOutcome::Unlisted]) {
            assert_eq!(trial.advice(), "");
        }
        for trial in [
            TrialOutcome::Refused(0),
            TrialOutcome::Refused(libc::EPERM),
            TrialOutcome::Killed(Signal::SIGSYS),
        ] {
            assert!(trial.advice().contains("Linux 5.13"));
        }
    }

    /// The rest is tried by a child, and so by processes of one thread alone.
    #[test]
    fn off_asks_for_nothing() {
        let off = WorkerSandbox::prepare(Sandbox::Off, &[]).unwrap();
        assert_eq!(off.sandboxed(), SandboxStatus::default());
    }
}
