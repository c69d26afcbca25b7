//! The consumer's handle of its coordinator.
//!
//! Runs in the consumer. Dropping it ends the coordinator and all workers, and waits for them. In a
//! forked copy of the consumer, dropping does nothing.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::pool::advice::START_AGAIN;
use crate::pool::coordinator::messages::{
    CoordinatorCommand, CoordinatorReply, CoordinatorReport, LONGEST_REPLY, StartRequest,
};
use crate::sys::clock::RunningClock;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;

/// Time limit for the coordinator to map the ring and fork its workers.
const START_LIMIT: Duration = Duration::from_secs(30);
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// The coordinator gives workers 100 ms. After this limit it is killed, and the workers die with
/// it.
const END_LIMIT: Duration = Duration::from_millis(400);

/// How long the coordinator may be stopped (SIGSTOP) while this process runs. During that time no
/// dead worker is replaced. The same limit as for a worker.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// Longest sleep before checking that the coordinator is alive.
const LOOK: Duration = Duration::from_millis(50);

/// A live coordinator.
#[derive(Debug)]
pub(crate) struct CoordinatorHandle {
    socket: OwnedFd,
    pid: Pid,
    pidfd: PidFd,
    /// The process that owns this value. A forked copy does not.
    owner: Pid,
    /// How the coordinator ended, once that is known.
    end_cause: OnceLock<String>,
    /// Runs while the coordinator is stopped.
    stopped: Mutex<Option<RunningClock>>,
    /// Number of requested reports.
    reports: AtomicU64,
}

impl CoordinatorHandle {
    pub(crate) fn new(socket: OwnedFd, pid: Pid, pidfd: PidFd) -> Self {
        Self {
            socket,
            pid,
            pidfd,
            owner: getpid(),
            end_cause: OnceLock::new(),
            stopped: Mutex::new(None),
            reports: AtomicU64::new(0),
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Sends the ring and the job. The caller continues while workers are forked.
    pub(crate) fn send_start(
        &self,
        request: &StartRequest,
        ring: BorrowedFd<'_>,
        job: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let request = request.seal()?;
        let mut fds = vec![request.as_fd(), ring];
        fds.extend_from_slice(job);
        socket::send(
            self.socket.as_fd(),
            &[CoordinatorCommand::Start as u8],
            &fds,
        )
        .map_err(|e| self.or_end_error(e))
    }

    /// Waits until the workers are forked.
    pub(crate) fn await_start(&self) -> Result<()> {
        match self.receive(START_LIMIT)? {
            CoordinatorReply::Started => Ok(()),
            CoordinatorReply::Refused { what } => {
                Err(Error::worker(format!("the pool did not start: {what}")))
            }
            CoordinatorReply::Report { .. } => Err(Error::protocol(
                "received a report instead of the reply to a start",
            )),
        }
    }

    /// Report since the start.
    pub(crate) fn report(&self) -> Result<CoordinatorReport> {
        socket::send(
            self.socket.as_fd(),
            &[CoordinatorCommand::Report as u8],
            &[],
        )
        .map_err(|e| self.or_end_error(e))?;
        let request_number = self.reports.fetch_add(1, Ordering::Relaxed) + 1;
        loop {
            match self.receive(REPORT_LIMIT)? {
                // Late answer to an earlier request.
                CoordinatorReply::Report { number, .. } if number < request_number => {}
                CoordinatorReply::Report { report, .. } => return Ok(report),
                _ => {
                    return Err(Error::protocol(
                        "the coordinator sent another reply instead of a report",
                    ));
                }
            }
        }
    }

    /// Time during which this process was stopped does not count: the coordinator may have been
    /// stopped too.
    fn receive(&self, limit: Duration) -> Result<CoordinatorReply> {
        let mut clock = RunningClock::start();
        let mut buffer = vec![0; LONGEST_REPLY];
        loop {
            let left = limit.saturating_sub(clock.read(LOOK));
            // Waits briefly, because the coordinator may end meanwhile.
            match socket::receive(self.socket.as_fd(), &mut buffer, left.min(LOOK)) {
                Ok(ReceiveOutcome::Message(n, _)) => return CoordinatorReply::read(&buffer[..n]),
                Ok(ReceiveOutcome::Timeout) if left.is_zero() => {
                    return Err(Error::worker(format!(
                        "the coordinator (pid {}) did not answer within {limit:?}",
                        self.pid
                    )));
                }
                Ok(ReceiveOutcome::Timeout) => {}
                Ok(ReceiveOutcome::Closed) => {
                    let closed = "the coordinator closed its socket but still runs";
                    return Err(self.or_end_error(Error::protocol(closed)));
                }
                Err(e) => return Err(self.or_end_error(e)),
            }
            if !self.check_running() {
                return Err(self.ended());
            }
        }
    }

    /// Whether the coordinator runs. One that stays stopped is killed. The caller must call this
    /// repeatedly, with at most one `LOOK` of sleep in between.
    pub(crate) fn check_running(&self) -> bool {
        if !self.is_alive() {
            return false;
        }
        // A clock is valid between any two operations, so a poisoned lock is harmless.
        let mut clock = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(signal) = self.pidfd.stopped() else {
            *clock = None;
            return true;
        };
        if clock.get_or_insert_with(RunningClock::start).read(LOOK) < STOP_LIMIT {
            return true;
        }
        self.pidfd.kill();
        self.end_cause
            .get_or_init(|| format!("was stopped by {signal} for {STOP_LIMIT:?} and then killed"));
        false
    }

    /// Whether the coordinator has not ended yet, reaped or not.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(
            socket::readable(self.pidfd.as_fd(), Duration::ZERO),
            Ok(false)
        )
    }

    /// Replaces `error` by the coordinator's end, if that caused it: sockets close slightly before
    /// the process ends.
    fn or_end_error(&self, error: Error) -> Error {
        match socket::readable(self.pidfd.as_fd(), Duration::from_millis(50)) {
            Ok(true) => self.ended(),
            _ => error,
        }
    }

    /// The error for a coordinator that has ended.
    pub(crate) fn ended(&self) -> Error {
        let end_cause = self.end_cause.get_or_init(|| match self.pidfd.reap(false) {
            Some(WaitStatus::Signaled(_, signal, _)) => format!("was ended by {signal}"),
            Some(WaitStatus::Exited(_, code)) => format!("ended with status {code}"),
            _ => "ended".to_owned(),
        });
        Error::worker(format!(
            "the coordinator (pid {}) {end_cause} and its workers with it; {START_AGAIN}",
            self.pid
        ))
    }
}

impl Drop for CoordinatorHandle {
    fn drop(&mut self) {
        if getpid() != self.owner {
            return;
        }
        // A coordinator that has ended or does not respond is killed below.
        let _ = socket::send(self.socket.as_fd(), &[CoordinatorCommand::Stop as u8], &[]);
        let end = Instant::now() + END_LIMIT;
        while self.is_alive() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.pidfd.kill();
                break;
            }
            let _ = socket::readable(self.pidfd.as_fd(), left);
        }
        // A process that survives SIGKILL waits for storage. It ends once the storage answers, and
        // is reaped when this process ends.
        let _ = socket::readable(self.pidfd.as_fd(), END_LIMIT);
        self.pidfd.reap(false);
    }
}
