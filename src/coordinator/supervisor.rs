//! The coordinator's work: keep every lane manned, give back what the dead
//! held, answer the consumer, end when it ends.
//!
//! Runs in the coordinator, single-threaded, never touching a pixel.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getpid};

use super::lanes::{self, Backoff, Killed, Lane, START_FAILURES, Worker};
use super::messages::{Command, Reply, Report, StartRequest};
use super::overdue::Overdue;
use super::process::Line;
use super::strikes::{Cause, Strikes};
use crate::error::{Error, Result};
use crate::ring::Ring;
use crate::ring::consumer_side::{self, Ticket};
use crate::ring::coordinator_side::{self, Verdict};
use crate::ring::layout::{ticket_word, worker_word};
use crate::ring::row_word::MAX_SERIAL;
use crate::ring::words::Words;
use crate::sys::clock::RunningClock;
use crate::sys::process::{self, PidFd, child_event, fork_never_returning};
use crate::sys::socket::{self, Received};
use crate::worker::job::Job;
use crate::worker::{self, sigbus};

/// How long workers may finish their rows after a stop.
const GRACE: Duration = Duration::from_millis(100);
/// How long a killed worker may stay unreaped before the pool is given up.
const REAP_LIMIT: Duration = Duration::from_secs(5);
/// Failed forks in a row before the pool is given up, and the wait between two.
const FORK_TRIES: u32 = 50;
const FORK_WAIT: Duration = Duration::from_millis(100);
/// Events kept for a consumer that does not ask.
const EVENTS: usize = 256;

/// Everything that the coordinator keeps about its pool. Every time in it is
/// one of `clock`: none of its limits is over because the whole job was stopped
/// for an hour and continued.
pub(super) struct Supervisor {
    ring: &'static Ring,
    job: Box<dyn Job>,
    clock: RunningClock,
    lanes: Vec<Lane>,
    next_serial: u32,
    /// One for each lane.
    backoff: Vec<Backoff>,
    /// Forks that failed in a row.
    failed_forks: u32,
    strikes: Strikes,
    overdue: Overdue,
    next_look: Duration,
    /// How long a worker may stand stopped.
    stop_limit: Duration,
    tries: u32,
    kills: Option<OrderedKills>,
    report: Report,
    /// Reports sent.
    reports: u64,
    events: VecDeque<String>,
    /// Set once workers are told to stop: those left at that time are killed.
    ending: Option<Duration>,
    /// Attempts at rows that ended without a worker's doing: progress as well.
    given_up: u64,
    me: Pid,
}

/// `--kill-workers-every`: a test of the recovery, on demand.
struct OrderedKills {
    every: Duration,
    next: Duration,
    turn: usize,
}

impl Supervisor {
    /// Forks the first workers.
    pub(super) fn start(
        ring: &'static Ring,
        job: Box<dyn Job>,
        request: &StartRequest,
    ) -> Result<Self> {
        let clock = RunningClock::start();
        let now = Duration::ZERO;
        let row_limit = Duration::from_millis(request.row_limit_ms);
        let overdue = Overdue::new(row_limit);
        let mut s = Self {
            ring,
            job,
            clock,
            lanes: vec![Lane::Due(now); request.shape.lanes as usize],
            next_serial: request.first_serial.max(1),
            backoff: vec![Backoff::default(); request.shape.lanes as usize],
            failed_forks: 0,
            strikes: Strikes::new(request.row_limit_ms, request.job.tries()),
            next_look: now + overdue.tick(),
            overdue,
            stop_limit: lanes::stop_limit(row_limit),
            tries: request.job.tries(),
            kills: request.kill_every_ms.map(|ms| {
                let every = Duration::from_millis(ms.max(1));
                OrderedKills {
                    every,
                    next: now + every,
                    turn: 0,
                }
            }),
            report: Report::default(),
            reports: 0,
            events: VecDeque::new(),
            ending: None,
            given_up: 0,
            me: getpid(),
        };
        s.fork_due(now)?;
        Ok(s)
    }

    fn worker_pids(&self) -> Vec<i32> {
        self.lanes
            .iter()
            .filter_map(|lane| match lane {
                Lane::Running(w) => Some(w.pid.as_raw()),
                _ => None,
            })
            .collect()
    }

    /// Runs until the consumer says stop, closes its socket or dies, and no
    /// worker is left.
    pub(super) fn run(mut self, line: &Line, consumer: &PidFd, children: &SignalFd) -> Result<()> {
        loop {
            let now = self.clock.read(Duration::ZERO);
            let timeout = self.next_deadline(now).saturating_sub(now);
            let [from_consumer, consumer_gone, child_ended] =
                wait_for(line.socket(), consumer, children, timeout)?;
            let now = self.clock.read(timeout);
            if consumer_gone {
                self.end(now);
            } else if from_consumer {
                self.serve(line, now)?;
            }
            if child_ended {
                // One signal stands for any number of children.
                while matches!(children.read_signal(), Ok(Some(_))) {}
            }
            self.attend(now)?;
            if self.ending.is_some() {
                if self.finish_ending(now) {
                    return Ok(());
                }
                if consumer_gone || from_consumer {
                    // Both stay readable for ever once closed: wait for the
                    // workers instead of spinning.
                    std::thread::sleep(Duration::from_millis(1));
                }
                continue;
            }
            self.kill_by_order(now);
            self.kill_stopped(now);
            self.kill_overdue(now);
            if let Err(e) = self.fork_due(now) {
                self.give_up(e.to_string());
            }
        }
    }

    /// Answers one command.
    fn serve(&mut self, line: &Line, now: Duration) -> Result<()> {
        let mut byte = [0; 1];
        match socket::receive(line.socket().as_fd(), &mut byte, Duration::ZERO)? {
            Received::Timeout => {}
            Received::Closed => self.end(now),
            Received::Message(..) => match Command::from_byte(byte[0]) {
                Some(Command::Stop) => self.end(now + GRACE),
                Some(Command::Report) => {
                    self.report.workers = self.worker_pids();
                    self.report.events = self.events.drain(..).collect();
                    self.reports += 1;
                    line.reply(Reply::Report {
                        number: self.reports,
                        report: self.report.clone(),
                    })?;
                }
                Some(Command::Start) => line.reply(Reply::Refused {
                    what: "the pool has been started already".into(),
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
            // After the grace the killed are reaped by signal; look now and then.
            return at.max(now + Duration::from_millis(1));
        }
        let lanes = self.lanes.iter().filter_map(|lane| match lane {
            Lane::Due(at) => Some(*at),
            // In steps: what is planned counts, also if nobody runs meanwhile.
            Lane::Running(w) => w
                .end_of_stop(self.stop_limit)
                .map(|(at, _)| at.min(now + self.stop_limit / 4)),
            Lane::Ended => None,
        });
        let kills = self.kills.iter().map(|k| k.next);
        lanes.chain(kills).fold(self.next_look, Duration::min)
    }

    /// Rules 3, 4 and 6: bury every ended child, then plan its replacement;
    /// note who was stopped and who goes on.
    fn attend(&mut self, now: Duration) -> Result<()> {
        while let Some(status) = child_event()? {
            let Some(pid) = status.pid() else { continue };
            let running = self.lanes.iter_mut().enumerate();
            let worker = { running }.find_map(|(lane, l)| match l {
                Lane::Running(w) if w.pid == pid => Some((lane, w)),
                _ => None,
            });
            let Some((lane, worker)) = worker else {
                continue;
            };
            match status {
                // Told anew for each stop, so one who went on meanwhile begins anew.
                WaitStatus::Stopped(_, signal) => worker.stopped = Some((now, signal)),
                WaitStatus::Continued(_) => {
                    if let Some((since, _)) = worker.stopped.take() {
                        self.overdue.forgive(worker.serial, since, now);
                    }
                }
                _ => {
                    let worker = *worker;
                    self.replace(lane, worker, status, now);
                }
            }
        }
        Ok(())
    }

    /// Who ran in `lane` has ended.
    fn replace(&mut self, lane: usize, worker: Worker, status: WaitStatus, now: Duration) {
        if self.ending.is_some() || self.report.fatal.is_some() {
            self.lanes[lane] = Lane::Ended;
            return;
        }
        let cause = self.cause(lane, worker, status);
        let text = self.bury(worker, cause);
        self.plan_replacement(lane, worker.age(now), cause, &text, now);
    }

    fn cause(&self, lane: usize, worker: Worker, status: WaitStatus) -> Cause {
        match (worker.killed, status) {
            (Some((_, Killed::TimedOut(_))), _) => Cause::TimedOut,
            (Some((_, why)), WaitStatus::Signaled(_, Signal::SIGKILL, _)) => match why {
                Killed::Stopped(signal) => Cause::Stopped(signal),
                _ => Cause::Ordered,
            },
            (_, WaitStatus::Signaled(_, signal, _)) => Cause::of_signal(signal),
            (_, WaitStatus::Exited(_, sigbus::EXIT_BROKEN_MAP))
                if self.record(lane, worker_word::BROKEN_MAP) == 1 =>
            {
                Cause::BrokenMap
            }
            (_, WaitStatus::Exited(_, code)) => Cause::Crash { signal: None, code },
            _ => Cause::Crash {
                signal: None,
                code: -1,
            },
        }
    }

    fn record(&self, lane: usize, word: usize) -> u64 {
        let at = self.ring.layout().worker(lane as u32) + word;
        self.ring
            .words()
            .load(at, std::sync::atomic::Ordering::Acquire)
    }

    /// Gives back, moves on or fails the dead worker's rows and wakes everybody.
    fn bury(&mut self, worker: Worker, cause: Cause) -> String {
        let ring = self.ring;
        let mut at_work = Vec::new();
        let (strikes, job, given_up) = (&mut self.strikes, &self.job, &mut self.given_up);
        coordinator_side::bury(&ring.words(), ring.layout(), worker.serial, |held| {
            let cause = match worker.killed {
                // The row that took too long came through after all; this one
                // has only begun.
                Some((_, Killed::TimedOut(late))) if late != held => Cause::Ordered,
                _ => cause,
            };
            let (verdict, fault) = strikes.judge(held, cause);
            let ticket = ticket(ring, held.slot, held.sequence);
            let what = job.describe(&ticket, held.row, held.attempt);
            // The record keeps why the row's own sample gave no pixels.
            if let Some(fault) = fault
                && held.attempt == 0
            {
                ring.write_fault(held.slot, held.row, &fault);
            }
            at_work.push(match verdict {
                Verdict::Return => what,
                Verdict::MoveOn => {
                    *given_up += 1;
                    format!("{what} (given up, the next sample is tried)")
                }
                Verdict::Fail => {
                    *given_up += 1;
                    format!("{what} (given up)")
                }
            });
            verdict
        });
        let at = if at_work.is_empty() {
            String::new()
        } else {
            format!(" while at {}", at_work.join(", "))
        };
        let text = format!(
            "worker {} (pid {}) {}{at}",
            worker.serial,
            worker.pid,
            cause.text()
        );
        self.report.deaths += 1;
        self.report.ordered_deaths += u64::from(cause == Cause::Ordered);
        if cause != Cause::Ordered {
            self.note(text.clone());
        }
        text
    }

    fn note(&mut self, event: String) {
        tracing::warn!("{event}");
        if self.events.len() == EVENTS {
            self.events.pop_front();
            self.report.events_lost += 1;
        }
        self.events.push_back(event);
    }

    fn plan_replacement(
        &mut self,
        lane: usize,
        age: Duration,
        cause: Cause,
        text: &str,
        now: Duration,
    ) {
        if cause == Cause::Ordered {
            self.lanes[lane] = Lane::Due(now);
            return;
        }
        let settled = self.ring.rows_committed() + self.given_up;
        match self.backoff[lane].after_death(settled, age) {
            Some(wait) => self.lanes[lane] = Lane::Due(now + wait),
            None => {
                self.lanes[lane] = Lane::Ended;
                self.give_up(format!(
                    "{START_FAILURES} workers ended one after the other within a second of their \
                     start, with no row settled between; the last: {text}"
                ));
            }
        }
    }

    fn fork_due(&mut self, now: Duration) -> Result<()> {
        for lane in 0..self.lanes.len() {
            if !matches!(self.lanes[lane], Lane::Due(at) if at <= now)
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
            let (ring, job, tries, me) = (self.ring, &mut *self.job, self.tries, self.me);
            let forked = fork_never_returning(|| {
                worker::process::live(ring, job, lane as u32, serial, tries, me)
            });
            let pid = match forked {
                Ok(pid) => pid,
                Err(e) => {
                    // A limit on processes may pass.
                    self.failed_forks += 1;
                    if self.failed_forks > FORK_TRIES {
                        return Err(e);
                    }
                    self.lanes[lane] = Lane::Due(now + FORK_WAIT);
                    continue;
                }
            };
            self.failed_forks = 0;
            self.next_serial += 1;
            self.lanes[lane] = Lane::Running(Worker {
                pid,
                serial,
                forked: now,
                stopped: None,
                killed: None,
            });
        }
        Ok(())
    }

    fn kill_by_order(&mut self, now: Duration) {
        let Some(k) = &mut self.kills else { return };
        if now < k.next {
            return;
        }
        k.next = now + k.every;
        let n = self.lanes.len();
        for i in 0..n {
            let lane = (k.turn + i) % n;
            if let Lane::Running(w) = &mut self.lanes[lane]
                && w.killed.is_none()
            {
                w.killed = Some((now, Killed::Ordered));
                // Not reaped yet, so the number is still this worker's.
                let _ = kill(w.pid, Signal::SIGKILL);
                k.turn = lane + 1;
                return;
            }
        }
    }

    /// Rule 6: who was stopped and is not let go on, at work or idle.
    fn kill_stopped(&mut self, now: Duration) {
        for lane in &mut self.lanes {
            if let Lane::Running(w) = lane
                && let Some((by, signal)) = w.end_of_stop(self.stop_limit)
                && now >= by
            {
                w.killed = Some((now, Killed::Stopped(signal)));
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
    }

    /// Rule 6: who is at one row for too long.
    fn kill_overdue(&mut self, now: Duration) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + self.overdue.tick();
        let (w, l) = (self.ring.words(), self.ring.layout());
        let over = self.overdue.look(now, coordinator_side::claimed(&w, l));
        for held in over {
            let what = || {
                let ticket = ticket(self.ring, held.slot, held.sequence);
                self.job.describe(&ticket, held.row, held.attempt)
            };
            let worker = self.lanes.iter_mut().find_map(|lane| match lane {
                Lane::Running(w) if w.serial == held.owner => Some(w),
                _ => None,
            });
            match worker {
                Some(w) if w.killed.is_none() && w.stopped.is_none() => {
                    w.killed = Some((now, Killed::TimedOut(held)));
                    let _ = kill(w.pid, Signal::SIGKILL);
                }
                Some(Worker {
                    pid,
                    killed: Some((at, _)),
                    ..
                }) if now.saturating_sub(*at) > REAP_LIMIT => {
                    let text = format!(
                        "worker (pid {pid}) cannot be killed while it reads {}: its storage does \
                         not answer",
                        what()
                    );
                    self.give_up(text);
                    return;
                }
                _ => {}
            }
        }
    }

    fn give_up(&mut self, what: String) {
        tracing::error!("{what}");
        self.report.fatal.get_or_insert(what);
        for lane in &self.lanes {
            if let Lane::Running(w) = lane {
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
        for lane in &mut self.lanes {
            if matches!(lane, Lane::Due(_)) {
                *lane = Lane::Ended;
            }
        }
        coordinator_side::give_up(&self.ring.words(), self.ring.layout());
    }

    /// Tells the workers to stop, and gives them time until `by`.
    fn end(&mut self, by: Duration) {
        consumer_side::stop(&self.ring.words(), self.ring.layout());
        self.ending = Some(self.ending.map_or(by, |sooner| by.min(sooner)));
        for lane in &mut self.lanes {
            if matches!(lane, Lane::Due(_)) {
                *lane = Lane::Ended;
            }
        }
    }

    /// Kills who is left after the grace; true when nobody is.
    fn finish_ending(&mut self, now: Duration) -> bool {
        let Some(by) = self.ending else {
            return false;
        };
        let mut left = false;
        for lane in &self.lanes {
            if let Lane::Running(w) = lane {
                left = true;
                if now >= by {
                    let _ = kill(w.pid, Signal::SIGKILL);
                }
            }
        }
        // Who survives SIGKILL that long sits in uninterruptible I/O; the death
        // signal gets it when the kernel lets go.
        !left || now >= by + REAP_LIMIT
    }
}

fn ticket(ring: &Ring, slot: u32, sequence: u32) -> Ticket {
    let (w, l) = (ring.words(), ring.layout());
    let (epoch, batch) = coordinator_side::ticket_of(&w, l, slot);
    let rows = w.load(
        l.ticket(slot, ticket_word::ROWS),
        std::sync::atomic::Ordering::Acquire,
    );
    Ticket {
        sequence,
        epoch,
        batch,
        rows: rows.min(u64::from(l.shape().rows)) as u32,
    }
}

/// Sleeps until something happens: [a command, the consumer's end, a child's end].
fn wait_for(
    socket: &OwnedFd,
    consumer: &PidFd,
    children: &SignalFd,
    timeout: Duration,
) -> Result<[bool; 3]> {
    let mut fds = [
        PollFd::new(socket.as_fd(), PollFlags::POLLIN),
        PollFd::new(consumer.as_fd(), PollFlags::POLLIN),
        PollFd::new(children.as_fd(), PollFlags::POLLIN),
    ];
    // Rounded up: a deadline half a millisecond away must not spin.
    let ms = timeout.as_micros().div_ceil(1000).min(60_000) as u16;
    match poll(&mut fds, PollTimeout::from(ms)) {
        Ok(_) => Ok(fds.map(|fd| fd.revents().is_some_and(|r| !r.is_empty()))),
        Err(nix::errno::Errno::EINTR) => Ok([false; 3]),
        Err(e) => Err(Error::io("poll", e)),
    }
}

/// Ends the process group's own children when the loop broke off with an error.
pub(super) fn abandon(error: &Error) -> i32 {
    tracing::error!("coordinator: {error}");
    // The workers' death signal does the rest.
    process::exit_now(1)
}
