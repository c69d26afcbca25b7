//! Main loop of the coordinator: keeps a worker in every lane, answers the consumer, and ends when
//! the consumer ends. `worker_exits` handles dead workers; `kills` kills workers.
//!
//! Runs in the coordinator, with one thread. It never touches a pixel.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::pool::coordinator::connection::ConsumerConnection;
use crate::pool::coordinator::lanes;
use crate::pool::coordinator::lanes::{REAP_LIMIT, RestartBackoff, Worker, WorkerLane};
use crate::pool::coordinator::messages::{
    CoordinatorCommand, CoordinatorReply, CoordinatorReport, StartRequest, shorten_text,
};
use crate::pool::coordinator::row_timeouts::RowTimeouts;
use crate::pool::coordinator::stall_detector::StallDetector;
use crate::pool::coordinator::strikes::RowStrikes;
use crate::pool::job::Job;
use crate::pool::pool_report::ProcessReport;
use crate::pool::ring::Ring;
use crate::pool::ring::consumer_side;
use crate::pool::ring::coordinator_side;
use crate::pool::ring::row_word::MAX_SERIAL;
use crate::pool::sandbox::WorkerSandbox;
use crate::pool::worker;
use crate::pool::worker::process::WorkerContext;
use crate::sys::clock::RunningClock;
use crate::sys::process::{PidFd, fork_never_returning};
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;
use crate::sys::stderr::StderrRelay;

/// How long workers may finish their rows after a stop.
const GRACE: Duration = Duration::from_millis(100);
/// Failed forks in a row before the pool fails, and the wait between two.
const FORK_TRIES: u32 = 50;
const FORK_WAIT: Duration = Duration::from_millis(100);

/// State of the pool in the coordinator. All times are readings of `clock`. So no limit is exceeded
/// when the whole job is suspended and resumed later.
pub(crate) struct WorkerSupervisor {
    pub(super) ring: &'static Ring,
    pub(super) job: Box<dyn Job>,
    /// Restrictions for workers.
    sandbox: WorkerSandbox,
    pub(super) clock: RunningClock,
    pub(super) lanes: Vec<WorkerLane>,
    pub(super) next_serial: u32,
    /// One per lane.
    pub(super) backoff: Vec<RestartBackoff>,
    /// Failed forks in a row.
    pub(super) failed_forks: u32,
    pub(super) strikes: RowStrikes,
    pub(super) overdue: RowTimeouts,
    pub(super) progress: StallDetector,
    pub(super) next_check: Duration,
    /// How long a worker may be stopped.
    pub(super) stop_limit: Duration,
    pub(super) tries: u32,
    pub(super) kills: Option<PeriodicKills>,
    pub(super) report: CoordinatorReport,
    /// Number of reports sent.
    pub(super) reports: u64,
    pub(super) events: VecDeque<String>,
    /// Set once workers are told to stop. Those alive at that time are killed.
    pub(super) ending: Option<Duration>,
    /// Attempts that the coordinator failed after a worker's death. They count as progress.
    pub(super) given_up: u64,
    /// Rows taken from dead workers.
    pub(super) returned: u64,
    pub(super) own_pid: Pid,
}

/// Kills of `--kill-workers-every`, which tests the recovery.
pub(super) struct PeriodicKills {
    pub(super) every: Duration,
    pub(super) next: Duration,
    pub(super) turn: usize,
}

impl WorkerSupervisor {
    /// Forks the first workers.
    pub(crate) fn start(
        ring: &'static Ring,
        job: Box<dyn Job>,
        sandbox: WorkerSandbox,
        request: &StartRequest,
    ) -> Result<Self> {
        let sandboxed = sandbox.sandboxed();
        let clock = RunningClock::start();
        let now = Duration::ZERO;
        let row_limit = Duration::from_millis(request.row_limit_ms);
        let overdue = RowTimeouts::new(row_limit);
        let mut s = Self {
            ring,
            job,
            sandbox,
            clock,
            lanes: vec![WorkerLane::Due(now); request.shape.lanes as usize],
            next_serial: request.first_serial.max(1),
            backoff: vec![RestartBackoff::default(); request.shape.lanes as usize],
            failed_forks: 0,
            strikes: RowStrikes::new(request.row_limit_ms, request.job.tries),
            next_check: now + overdue.check_interval(),
            progress: StallDetector::new(row_limit, overdue.check_interval()),
            overdue,
            stop_limit: lanes::stop_limit(row_limit),
            tries: request.job.tries,
            kills: request.kill_every_ms.map(|ms| {
                let every = Duration::from_millis(ms.max(1));
                PeriodicKills {
                    every,
                    next: now + every,
                    turn: 0,
                }
            }),
            report: CoordinatorReport {
                processes: ProcessReport {
                    sandboxed,
                    ..ProcessReport::default()
                },
                fatal: None,
            },
            reports: 0,
            events: VecDeque::new(),
            ending: None,
            given_up: 0,
            returned: 0,
            own_pid: getpid(),
        };
        s.fork_due_workers(now)?;
        Ok(s)
    }

    fn worker_pids(&self) -> Vec<i32> {
        self.lanes
            .iter()
            .filter_map(|lane| match lane {
                WorkerLane::Running(w) => Some(w.pid.as_raw()),
                _ => None,
            })
            .collect()
    }

    /// Runs until no worker is left, after the consumer sent a stop, closed its socket or died.
    pub(crate) fn run(
        mut self,
        line: &ConsumerConnection,
        consumer: &PidFd,
        children: &SignalFd,
        stderr: &mut StderrRelay,
    ) -> Result<()> {
        loop {
            let now = self.clock.read(Duration::ZERO);
            let timeout = self.next_deadline(now).saturating_sub(now);
            let [from_consumer, consumer_gone, child_ended, has_output] = wait_for(
                [
                    line.socket.as_fd(),
                    consumer.as_fd(),
                    children.as_fd(),
                    stderr.as_fd(),
                ],
                timeout,
            )?;
            let now = self.clock.read(timeout);
            if has_output {
                stderr.pass_on();
                self.report.processes.stderr_lost = stderr.lost();
            }
            if consumer_gone {
                self.end(now);
            } else if from_consumer {
                self.serve(line, now)?;
            }
            if child_ended {
                // One signal may stand for several children.
                while matches!(children.read_signal(), Ok(Some(_))) {}
            }
            self.handle_child_events(now)?;
            if self.ending.is_some() {
                if self.finish_ending(now) {
                    return Ok(());
                }
                if consumer_gone || from_consumer {
                    // A closed descriptor stays readable. Sleep instead of spinning until the
                    // workers end.
                    std::thread::sleep(Duration::from_millis(1));
                }
                continue;
            }
            self.kill_by_order(now);
            self.kill_stopped(now);
            self.check_rows(now);
            if let Err(e) = self.fork_due_workers(now) {
                self.give_up(e.to_string());
            }
        }
    }

    /// Answers one command.
    fn serve(&mut self, line: &ConsumerConnection, now: Duration) -> Result<()> {
        let mut byte = [0; 1];
        match socket::receive(line.socket.as_fd(), &mut byte, Duration::ZERO)? {
            ReceiveOutcome::Timeout => {}
            ReceiveOutcome::Closed => self.end(now),
            ReceiveOutcome::Message(..) => match CoordinatorCommand::from_byte(byte[0]) {
                Some(CoordinatorCommand::Stop) => self.end(now + GRACE),
                Some(CoordinatorCommand::Report) => {
                    self.report.processes.workers = self.worker_pids();
                    self.report.processes.events = self.events.drain(..).collect();
                    self.reports += 1;
                    line.reply(&CoordinatorReply::Report {
                        number: self.reports,
                        report: self.report.clone(),
                    })?;
                }
                Some(CoordinatorCommand::Start) => line.reply(&CoordinatorReply::Refused {
                    what: "the pool has already been started".into(),
                })?,
                None => {
                    return Err(Error::protocol(format!("command {} is unknown", byte[0])));
                }
            },
        }
        Ok(())
    }

    fn next_deadline(&self, now: Duration) -> Duration {
        if let Some(at) = self.ending {
            // Killed workers are reaped by signal. Check regularly.
            return at.max(now + Duration::from_millis(1));
        }
        let lanes = self.lanes.iter().filter_map(|lane| match lane {
            WorkerLane::Due(at) => Some(*at),
            // In steps: a planned sleep counts as time even if this process does not run.
            WorkerLane::Running(w) => w
                .kill_time_of_stop(self.stop_limit)
                .map(|(at, _)| at.min(now + self.stop_limit / 4)),
            WorkerLane::Ended => None,
        });
        let kills = self.kills.iter().map(|k| k.next);
        lanes.chain(kills).fold(self.next_check, Duration::min)
    }

    fn fork_due_workers(&mut self, now: Duration) -> Result<()> {
        for lane in 0..self.lanes.len() {
            if !matches!(self.lanes[lane], WorkerLane::Due(at) if at <= now)
                || self.report.fatal.is_some()
            {
                continue;
            }
            let serial = self.next_serial;
            if serial > MAX_SERIAL {
                return Err(Error::worker(format!(
                    "{MAX_SERIAL} workers were forked, the most that a pool can count: build a \
                     new loader"
                )));
            }
            let (job, sandbox) = (&mut *self.job, &self.sandbox);
            let context = WorkerContext {
                ring: self.ring,
                lane: lane as u32,
                serial,
                tries: self.tries,
                coordinator: self.own_pid,
            };
            let forked =
                fork_never_returning(|| worker::process::run_worker(context, job, sandbox));
            let pid = match forked {
                Ok(pid) => pid,
                Err(e) => {
                    // A limit on processes may be temporary.
                    self.failed_forks += 1;
                    if self.failed_forks > FORK_TRIES {
                        return Err(e);
                    }
                    self.lanes[lane] = WorkerLane::Due(now + FORK_WAIT);
                    continue;
                }
            };
            self.failed_forks = 0;
            self.next_serial += 1;
            self.lanes[lane] = WorkerLane::Running(Worker {
                pid,
                serial,
                forked: now,
                stopped: None,
                killed: None,
            });
        }
        Ok(())
    }

    pub(super) fn give_up(&mut self, what: String) {
        tracing::error!("{what}");
        self.report.fatal.get_or_insert(shorten_text(what));
        for lane in &self.lanes {
            if let WorkerLane::Running(w) = lane {
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
        for lane in &mut self.lanes {
            if matches!(lane, WorkerLane::Due(_)) {
                *lane = WorkerLane::Ended;
            }
        }
        coordinator_side::give_up(&self.ring.words(), self.ring.layout());
    }

    /// Tells the workers to stop, with time until `by`.
    fn end(&mut self, by: Duration) {
        consumer_side::stop(&self.ring.words(), self.ring.layout());
        self.ending = Some(self.ending.map_or(by, |sooner| by.min(sooner)));
        for lane in &mut self.lanes {
            if matches!(lane, WorkerLane::Due(_)) {
                *lane = WorkerLane::Ended;
            }
        }
    }

    /// Kills the workers that remain after the grace time. True when none is left.
    fn finish_ending(&mut self, now: Duration) -> bool {
        let Some(by) = self.ending else {
            return false;
        };
        let mut left = false;
        for lane in &self.lanes {
            if let WorkerLane::Running(w) = lane {
                left = true;
                if now >= by {
                    let _ = kill(w.pid, Signal::SIGKILL);
                }
            }
        }
        // A process that survives SIGKILL this long is in uninterruptible I/O. Its parent-death
        // signal ends it later.
        !left || now >= by + REAP_LIMIT
    }
}

/// Sleeps until an event: a command, the consumer's end, a child's end, or output for stderr.
fn wait_for(fds: [BorrowedFd<'_>; 4], timeout: Duration) -> Result<[bool; 4]> {
    let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    // Rounded up, so that a deadline in half a millisecond does not spin.
    let ms = timeout.as_micros().div_ceil(1000).min(60_000) as u16;
    match poll(&mut fds, PollTimeout::from(ms)) {
        Ok(_) => Ok(fds.map(|fd| fd.revents().is_some_and(|r| !r.is_empty()))),
        Err(nix::errno::Errno::EINTR) => Ok([false; 4]),
        Err(e) => Err(Error::io("poll", e)),
    }
}
