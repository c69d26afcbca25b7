//! What keeps workers from anything but their work: what a user asks for, and what the
//! kernel has of it.
//!
//! Chosen in the consumer, prepared in the coordinator, entered by each worker as the last
//! thing before its first row. Never in here: lists of calls and rights (`sys/sandbox`).

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sys::sandbox::files::FileRules;
use crate::sys::sandbox::{calls, files};

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
    /// Nothing: for a helper whose allocator or profiler needs other calls.
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
                true => Some(FileRules::new(readable)?),
                false => None,
            },
        })
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

    /// From here on this process makes no other system call. It may write and lock the open
    /// `files`; a call that it may not make is named in `refused_call`.
    ///
    /// # Errors
    /// A kernel that refuses.
    pub(crate) fn limit_calls(
        &self,
        files: &[RawFd],
        refused_call: &'static AtomicU64,
    ) -> Result<()> {
        match self.calls {
            true => calls::enter(files, refused_call),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
