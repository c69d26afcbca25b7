//! A helper that is restarted when it dies.
//!
//! Runs in the consumer.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::remote::helper::process::{HelperKind, HelperProcess};

/// Most processes that may die in a row without doing anything.
const MOST_DEATHS: u32 = 8;

/// A helper, which may use several processes in turn.
#[derive(Debug)]
pub(crate) struct HelperSupervisor {
    kind: &'static HelperKind,
    /// The executable, if it is named.
    executable: Option<PathBuf>,
    pub(crate) process: HelperProcess,
    /// Deaths in a row.
    deaths: u32,
    pub(crate) total_deaths: u64,
}

/// Whether the error means that the helper process has ended.
pub(crate) fn has_died(e: &Error) -> bool {
    e.is_worker() || e.is_io()
}

impl HelperSupervisor {
    /// # Errors
    /// Like [`HelperProcess::start`].
    pub(crate) fn start(kind: &'static HelperKind, executable: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            process: HelperProcess::start(kind, executable.as_deref())?,
            kind,
            executable,
            deaths: 0,
            total_deaths: 0,
        })
    }

    /// Records success, so that earlier deaths no longer count.
    pub(crate) fn reset_deaths(&mut self) {
        self.deaths = 0;
    }

    /// Replaces the process. `begin` sends its first requests.
    ///
    /// # Errors
    /// Like [`HelperProcess::start`]; an error of `begin`.
    pub(crate) fn restart<T>(
        &mut self,
        begin: impl FnOnce(&HelperProcess) -> Result<T>,
    ) -> Result<T> {
        self.process = HelperProcess::start(self.kind, self.executable.as_deref())?;
        begin(&self.process)
    }

    /// Returns `done`. If the process died, returns the result of `begin` with another process.
    ///
    /// # Errors
    /// Too many processes died in a row; another error.
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
                name,
                without_progress,
                ..
            } = self.kind;
            self.deaths += 1;
            self.total_deaths += 1;
            if self.deaths > MOST_DEATHS {
                // The next call tries again.
                self.deaths = 0;
                return Err(Error::worker(format!(
                    "the {name} died {MOST_DEATHS} times {without_progress}: {why}"
                )));
            }
            tracing::warn!("the {name} died and is restarted: {why}");
            done = self.restart(&mut begin);
        }
    }
}
