//! What keeps workers from anything but their work: what a user asks for, and what the
//! kernel has of it.
//!
//! Chosen in the consumer, prepared in the coordinator, entered by each worker as the last
//! thing before its first row. Never in here: lists of calls and rights (`sys/sandbox`).

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sys::process;
use crate::sys::sandbox::calls::Own;
use crate::sys::sandbox::files::FileRules;
use crate::sys::sandbox::{calls, files};
use crate::sys::sealed::SealedBytes;

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
pub struct Sandboxed {
    /// The list of system calls.
    pub calls: bool,
    /// The files of the data set.
    pub files: bool,
}

impl Sandboxed {
    /// What this machine can do.
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
pub(crate) fn seal(readable: &[PathBuf]) -> Result<SealedBytes> {
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
pub(crate) fn unseal(readable: OwnedFd) -> Result<Vec<PathBuf>> {
    let sealed = SealedBytes::from_fd(readable)?;
    let paths = sealed.bytes().split(|&byte| byte == 0);
    let paths = paths.filter(|path| !path.is_empty());
    Ok(paths.map(|path| OsStr::from_bytes(path).into()).collect())
}

/// What a worker may still do, ready to be entered.
#[derive(Debug)]
pub(crate) struct Walls {
    calls: bool,
    files: Option<FileRules>,
}

impl Walls {
    /// Workers may read what lies at `readable` and below.
    ///
    /// # Errors
    /// A kernel that cannot do what is required; one that refuses rules.
    pub(crate) fn prepare(choice: Sandbox, readable: &[PathBuf]) -> Result<Self> {
        let required = |checked: Result<()>| match (choice, checked) {
            (Sandbox::Off, _) => Ok(false),
            (_, Ok(())) => Ok(true),
            (Sandbox::Auto, Err(_)) => Ok(false),
            (Sandbox::Require, Err(e)) => Err(Error::option(
                "sandbox",
                format!(
                    "it is required, and this system cannot do it: {e}; use a kernel from 5.13 on \
                     with Landlock, in a container that allows both calls, or `auto`"
                ),
            )),
        };
        Ok(Self {
            calls: required(calls::check())?,
            files: match required(files::check())? {
                true => match FileRules::new(readable) {
                    Ok(rules) => Some(rules),
                    Err(e) if choice == Sandbox::Auto => {
                        tracing::warn!("workers are not kept to the files of the data set: {e}");
                        None
                    }
                    Err(e) => return Err(e),
                },
                false => None,
            },
        })
    }

    /// The same, tried out by a child of this process, which has one thread: a container may
    /// refuse what its kernel has, or end who asks for it.
    ///
    /// # Errors
    /// A system that refuses what is required; one that forks no child.
    pub(crate) fn tried(self, choice: Sandbox) -> Result<Self> {
        if self.is_let(self.calls, true)? {
            return Ok(self);
        }
        let kept = Self {
            calls: self.calls && self.is_let(true, false)?,
            files: match self.is_let(false, true)? {
                true => self.files,
                false => None,
            },
        };
        let kept_to = kept.sandboxed().text();
        let what =
            format!("this system refuses workers a part of it; what they have is: {kept_to}");
        if choice == Sandbox::Require {
            let advice = "use a container that allows seccomp and Landlock, or `auto`";
            let why = format!("it is required, and {what}; {advice}");
            return Err(Error::option("sandbox", why));
        }
        tracing::warn!("sandbox: {what}");
        Ok(kept)
    }

    /// Whether a child can enter these parts.
    fn is_let(&self, calls: bool, files: bool) -> Result<bool> {
        static REFUSED_CALL: AtomicU64 = AtomicU64::new(0);
        if !calls && (!files || self.files.is_none()) {
            return Ok(true);
        }
        let enter = || {
            if files {
                self.limit_files()?;
            }
            let own = Own {
                process: std::process::id(),
                files: &[],
                shared: 0..0,
            };
            match calls {
                true => self.limit_calls(&own, &REFUSED_CALL),
                false => Ok(()),
            }
        };
        let child = process::fork_never_returning(|| i32::from(enter().is_err()))?;
        process::ended_well(child)
    }

    pub(crate) fn sandboxed(&self) -> Sandboxed {
        Sandboxed {
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
        own: &Own<'_>,
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
            let sealed = seal(paths).unwrap();
            let fd = sealed.as_fd().try_clone_to_owned().unwrap();
            assert_eq!(unseal(fd).unwrap(), paths);
        }
    }

    #[test]
    fn off_is_off_and_the_rest_is_what_the_machine_can_do() {
        let of = |choice| Walls::prepare(choice, &[]).map(|walls| walls.sandboxed());
        let off = Sandboxed::default();
        assert_eq!(of(Sandbox::Off).unwrap(), off);
        let possible = Sandboxed::possible();
        assert_eq!(of(Sandbox::Auto).unwrap(), possible);
        match possible {
            Sandboxed {
                calls: true,
                files: true,
            } => assert_eq!(of(Sandbox::Require).unwrap(), possible),
            _ => {
                let e = of(Sandbox::Require).unwrap_err().to_string();
                assert!(e.contains("sandbox") && e.contains("auto"), "{e}");
            }
        }
    }
}
