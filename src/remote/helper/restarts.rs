//! A helper that is started again when it dies.
//!
//! In the consumer.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::remote::helper::process::{HelperKind, HelperProcess};

/// Processes that may die one after the other with nothing done between them.
const MOST_DEATHS: u32 = 8;

/// A helper, of one process after the other.
#[derive(Debug)]
pub(crate) struct HelperSupervisor {
    kind: &'static HelperKind,
    /// Where it is named.
    executable: Option<PathBuf>,
    pub(crate) process: HelperProcess,
    /// One after the other.
    deaths: u32,
    pub(crate) total_deaths: u64,
}

/// Whether the process that an error is about is gone.
pub(crate) fn has_died(e: &Error) -> bool {
    e.is_worker() || e.is_io()
}

impl HelperSupervisor {
    /// # Errors
    /// As [`HelperProcess::start`].
    pub(crate) fn start(kind: &'static HelperKind, executable: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            process: HelperProcess::start(kind, executable.as_deref())?,
            kind,
            executable,
            deaths: 0,
            total_deaths: 0,
        })
    }

    /// It got something done: processes that died before are none in a row.
    pub(crate) fn goes_on(&mut self) {
        self.deaths = 0;
    }

    /// Another process in the place of this one; what `begin` has it do first.
    ///
    /// # Errors
    /// As [`HelperProcess::start`], and of `begin`.
    pub(crate) fn renew<T>(
        &mut self,
        begin: impl FnOnce(&HelperProcess) -> Result<T>,
    ) -> Result<T> {
        self.process = HelperProcess::start(self.kind, self.executable.as_deref())?;
        begin(&self.process)
    }

    /// What is `done`; where the process died of it, what another one `begin`s with.
    ///
    /// # Errors
    /// Processes that die one after the other; an error of one that lives.
    pub(crate) fn retry_after_death<T>(
        &mut self,
        mut done: Result<T>,
        mut begin: impl FnMut(&HelperProcess) -> Result<T>,
    ) -> Result<T> {
        loop {
            let why = match done {
                Err(why) if has_died(&why) => why,
                done => return done,
            };
            let HelperKind {
                name, nothing_done, ..
            } = self.kind;
            self.deaths += 1;
            self.total_deaths += 1;
            if self.deaths > MOST_DEATHS {
                // The next call tries again.
                self.deaths = 0;
                return Err(Error::worker(format!(
                    "the {name} died {MOST_DEATHS} times {nothing_done}: {why}"
                )));
            }
            tracing::warn!("the {name} died and is started again: {why}");
            done = self.renew(&mut begin);
        }
    }
}
