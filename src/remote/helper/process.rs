//! A live helper, as its consumer has it: how it is started, what it says, how it ends.
//!
//! In the consumer. In a forked copy of it dropping does nothing.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::pool::coordinator::launch::launch_helper;
use crate::remote::helper::messages::{HelperMessage, LONGEST, from_bytes, name_of, to_bytes};
use crate::sys::clock::RunningClock;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;

/// Between two looks whether it has ended, while an answer is awaited.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to end once it was killed. One that waits for storage which does not
/// answer is left behind.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// How long it may stand stopped while this process runs.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// A kind of helper.
#[derive(Debug)]
pub(crate) struct HelperKind {
    /// For messages.
    pub(crate) name: &'static str,
    /// The argument that makes an executable one.
    pub(crate) command: &'static str,
    /// How long it may take to end by itself.
    pub(crate) end_limit: Duration,
    /// For messages: what those that die one after the other do not get done.
    pub(crate) nothing_done: &'static str,
}

impl HelperKind {
    /// An answer to another question.
    pub(crate) fn unexpected(&self, reply: &impl fmt::Debug) -> Error {
        let (kind, reply) = (self.name, name_of(reply));
        Error::protocol(format!("the {kind} answered {reply} to another question"))
    }
}

/// A live helper.
#[derive(Debug)]
pub(crate) struct HelperProcess {
    kind: &'static HelperKind,
    socket: OwnedFd,
    pub(crate) pid: Pid,
    pidfd: PidFd,
    /// The process that owns this value; a forked copy of it does not.
    owner: Pid,
    /// Since when it stands stopped.
    stopped: Mutex<Option<RunningClock>>,
}

impl HelperProcess {
    /// Starts one, and shakes hands with it.
    ///
    /// # Errors
    /// An executable that is missing, or cannot be such a helper.
    pub(crate) fn start(kind: &'static HelperKind, executable: Option<&Path>) -> Result<Self> {
        let lacks = match cfg!(all(feature = "stores", feature = "codecs")) {
            true => None,
            false => Some("stores"),
        };
        let (socket, pid, pidfd) = launch_helper(kind.command, executable, lacks)?;
        Ok(Self {
            kind,
            socket,
            pid,
            pidfd,
            owner: getpid(),
            stopped: Mutex::new(None),
        })
    }

    /// Whether this process started it, and no fork that copied this value.
    pub(crate) fn is_own(&self) -> bool {
        getpid() == self.owner
    }

    pub(crate) fn send(&self, request: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<()> {
        socket::send(self.socket.as_fd(), &to_bytes(request)?, fds)
    }

    /// Sends a request unless the helper does not listen now; whether it did.
    pub(crate) fn offer(&self, request: &impl Serialize) -> Result<bool> {
        let offered = socket::offer(self.socket.as_fd(), &to_bytes(request)?, &[]);
        Ok(matches!(offered, Ok(true)))
    }

    /// What it replies to a request. One that dies or ends with trouble is an error.
    pub(crate) fn ask<T: DeserializeOwned>(&self, request: &impl Serialize) -> Result<T> {
        self.send(request, &[])?;
        self.reply()
    }

    /// The next reply, however long it takes.
    pub(crate) fn reply<T: DeserializeOwned>(&self) -> Result<T> {
        loop {
            if let Some(reply) = self.reply_within(LOOK, LOOK)? {
                return Ok(reply);
            }
        }
    }

    /// The next reply; none when that takes longer than `limit`. One that was stopped and is not
    /// let go on is killed. Whoever waits asks again and again, with a sleep of `planned` between
    /// at most.
    pub(crate) fn reply_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        planned: Duration,
    ) -> Result<Option<T>> {
        let mut buffer = vec![0; LONGEST];
        loop {
            match socket::receive(self.socket.as_fd(), &mut buffer, limit)? {
                ReceiveOutcome::Message(n, _) => match from_bytes(&buffer[..n])? {
                    HelperMessage::Reply(reply) => return Ok(Some(reply)),
                    HelperMessage::Warning(text) => tracing::warn!("{text}"),
                    HelperMessage::Trouble(trouble) => return Err(trouble.into_error()),
                },
                ReceiveOutcome::Timeout => return self.check_stopped(planned).map(|()| None),
                ReceiveOutcome::Closed => {
                    let how = match self.pidfd.reap(true) {
                        Some(WaitStatus::Exited(_, status)) => format!("ended with {status}"),
                        Some(WaitStatus::Signaled(_, signal, _)) => {
                            format!("was ended by {signal}")
                        }
                        _ => "ended".to_owned(),
                    };
                    return Err(self.error(&how));
                }
            }
        }
    }

    /// # Errors
    /// That it was killed.
    fn check_stopped(&self, planned: Duration) -> Result<()> {
        // A clock is whole at every moment.
        let mut clock = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(signal) = self.pidfd.stopped() else {
            *clock = None;
            return Ok(());
        };
        if clock.get_or_insert_with(RunningClock::start).read(planned) < STOP_LIMIT {
            return Ok(());
        }
        Err(self.kill(&format!("was stopped by {signal} for {STOP_LIMIT:?}")))
    }

    /// Kills it; why, as an error.
    pub(crate) fn kill(&self, why: &str) -> Error {
        self.pidfd.kill();
        self.error(&format!("{why}, and was killed"))
    }

    fn error(&self, what: &str) -> Error {
        Error::worker(format!("the {} (pid {}) {what}", self.kind.name, self.pid))
    }

    /// Whether it ended within `limit`.
    fn ends_within(&self, limit: Duration) -> bool {
        // Also when somebody else has reaped it.
        let ended = matches!(socket::readable(self.pidfd.as_fd(), limit), Ok(true));
        if ended {
            self.pidfd.reap(false);
        }
        ended
    }
}

impl Drop for HelperProcess {
    /// It ends by itself when the socket does. Not in a forked copy: it is the parent's.
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let end = socket::end(self.socket.as_fd());
        if end.is_ok() && self.ends_within(self.kind.end_limit) {
            return;
        }
        self.pidfd.kill();
        self.ends_within(KILL_LIMIT);
    }
}
