//! The consumer's handle of a helper process: its start, its messages, its end.
//!
//! Runs in the consumer. In a forked copy, dropping does nothing.

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

/// Interval for checking that the helper is alive, while waiting for a reply.
const LOOK: Duration = Duration::from_millis(50);
/// How long a killed helper may take to end. If it waits for unresponsive storage, it is left
/// behind.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// How long it may be stopped (SIGSTOP) while this process runs.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// A kind of helper.
#[derive(Debug)]
pub(crate) struct HelperKind {
    /// Name for messages.
    pub(crate) name: &'static str,
    /// Argument that makes an executable such a helper.
    pub(crate) command: &'static str,
    /// How long it may take to end by itself.
    pub(crate) end_limit: Duration,
    /// For messages: what helpers that die repeatedly did not achieve.
    pub(crate) without_progress: &'static str,
}

impl HelperKind {
    /// Error for a reply to another request.
    pub(crate) fn unexpected(&self, reply: &impl fmt::Debug) -> Error {
        let (kind, reply) = (self.name, name_of(reply));
        Error::protocol(format!("the {kind} sent the unexpected reply {reply}"))
    }
}

/// A live helper.
#[derive(Debug)]
pub(crate) struct HelperProcess {
    kind: &'static HelperKind,
    socket: OwnedFd,
    pub(crate) pid: Pid,
    pidfd: PidFd,
    /// The process that owns this value. A forked copy does not.
    owner: Pid,
    /// Runs while the helper is stopped.
    stopped: Mutex<Option<RunningClock>>,
}

impl HelperProcess {
    /// Starts a helper and performs the handshake.
    ///
    /// # Errors
    /// The executable is missing, or cannot be such a helper.
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

    /// Whether this process started it, so this is not a forked copy.
    pub(crate) fn is_own(&self) -> bool {
        getpid() == self.owner
    }

    pub(crate) fn send(&self, request: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<()> {
        socket::send(self.socket.as_fd(), &to_bytes(request)?, fds)
    }

    /// Sends a request, unless the helper's socket is full. Returns whether it was sent.
    pub(crate) fn try_send(&self, request: &impl Serialize) -> Result<bool> {
        let sent = socket::try_send(self.socket.as_fd(), &to_bytes(request)?, &[]);
        Ok(matches!(sent, Ok(true)))
    }

    /// Sends a request and waits for the reply. Fails if the helper dies or reports an error.
    pub(crate) fn call<T: DeserializeOwned>(&self, request: &impl Serialize) -> Result<T> {
        self.send(request, &[])?;
        self.reply()
    }

    /// The next reply, without a time limit.
    pub(crate) fn reply<T: DeserializeOwned>(&self) -> Result<T> {
        loop {
            if let Some(reply) = self.reply_within(LOOK, LOOK)? {
                return Ok(reply);
            }
        }
    }

    /// The next reply; `None` if it takes longer than `limit`. A helper that stays stopped is
    /// killed. The caller must call this repeatedly, with at most `planned` of sleep in between.
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
                    HelperMessage::Trouble(error) => return Err(error.into_error()),
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
    /// The helper was killed.
    fn check_stopped(&self, planned: Duration) -> Result<()> {
        // A clock is valid between any two operations, so a poisoned lock is harmless.
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

    /// Kills the helper. Returns the reason as an error.
    pub(crate) fn kill(&self, why: &str) -> Error {
        self.pidfd.kill();
        self.error(&format!("{why}, and was killed"))
    }

    fn error(&self, what: &str) -> Error {
        Error::worker(format!("the {} (pid {}) {what}", self.kind.name, self.pid))
    }

    /// Whether it ends within `limit`.
    fn ends_within(&self, limit: Duration) -> bool {
        // Also if it was reaped elsewhere.
        let ended = matches!(socket::readable(self.pidfd.as_fd(), limit), Ok(true));
        if ended {
            self.pidfd.reap(false);
        }
        ended
    }
}

impl Drop for HelperProcess {
    /// It ends by itself when the socket closes. Does nothing in a forked copy: the helper belongs
    /// to the parent.
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let end = socket::shut_down(self.socket.as_fd());
        if end.is_ok() && self.ends_within(self.kind.end_limit) {
            return;
        }
        self.pidfd.kill();
        self.ends_within(KILL_LIMIT);
    }
}
