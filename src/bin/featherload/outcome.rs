//! How a command ended.

use featherload::Result;

use crate::interrupt;

/// How a sub-command ended, if not by an error.
pub enum CommandOutcome {
    Done,
    /// The check failed.
    CheckFailed,
    /// Ended by SIGINT or SIGTERM.
    Interrupted(i32),
}

impl CommandOutcome {
    /// The outcome of a check.
    pub fn of_check(holds: bool) -> Self {
        if holds { Self::Done } else { Self::CheckFailed }
    }

    /// The outcome of a run that a signal may have ended early.
    pub fn of_run() -> Self {
        interrupt::received_signal().map_or(Self::Done, Self::Interrupted)
    }

    /// Like `of_run`, for a run that a signal may have made fail.
    pub fn or_interrupted(ended: Result<Self>) -> Result<Self> {
        match ended {
            Err(e) if !e.is_usage() && !e.is_sample() => match interrupt::signal_after_failure() {
                Some(signal) => Ok(Self::Interrupted(signal)),
                None => Err(e),
            },
            other => other,
        }
    }
}
