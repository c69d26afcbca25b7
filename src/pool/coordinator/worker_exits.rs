//! Handles workers that ended: the cause, their rows, their replacement.
//!
//! Runs in the coordinator, after each end of a child.

use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;

use crate::error::Result;
use crate::pool::advice::START_AGAIN;
use crate::pool::coordinator::lanes::{KillReason, START_FAILURES, Worker, WorkerLane};
use crate::pool::coordinator::messages::{EVENT_BYTES, shorten_text};
use crate::pool::coordinator::strikes::DeathCause;
use crate::pool::coordinator::supervisor::WorkerSupervisor;
use crate::pool::ring::coordinator_side;
use crate::pool::ring::coordinator_side::{ClaimedRow, RowVerdict};
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::receipt;
use crate::pool::ring::ticket;
use crate::pool::ring::words::RingWords;
use crate::pool::worker::sigbus;
use crate::sys::process::child_event;
use crate::sys::sandbox::calls;

/// Error for a worker that holds several rows. Workers claim one row at a time.
pub(super) fn too_many_rows(serial: u32, rows: usize) -> String {
    format!(
        "worker {serial} holds {rows} rows, but can hold one: shared memory was overwritten by a \
         faulty decoder; {START_AGAIN}"
    )
}

/// Error for a claim of a row that was not posted.
pub(super) fn not_posted(claim: &ClaimedRow) -> String {
    let ClaimedRow {
        owner, row, slot, ..
    } = claim;
    format!(
        "worker {owner} holds row {row} of slot {slot}, which was not posted: shared memory was \
         overwritten by a faulty decoder; {START_AGAIN}"
    )
}

/// Most events kept until a consumer requests a report.
const EVENTS: usize = 256;

impl WorkerSupervisor {
    /// Rules 3, 4 and 6: handles every ended child and plans its replacement. Records which workers
    /// are stopped or continued.
    pub(super) fn handle_child_events(&mut self, now: Duration) -> Result<()> {
        while let Some(status) = child_event()? {
            let Some(pid) = status.pid() else { continue };
            let running = self.lanes.iter_mut().enumerate();
            let worker = { running }.find_map(|(lane, l)| match l {
                WorkerLane::Running(w) if w.pid == pid => Some((lane, w)),
                _ => None,
            });
            let Some((lane, worker)) = worker else {
                continue;
            };
            match status {
                // Reported for each stop, so a worker that continued in between starts a new stop.
                WaitStatus::Stopped(_, signal) => {
                    worker.stopped = Some((now, signal));
                    self.progress.reset_clock(now);
                }
                WaitStatus::Continued(_) => {
                    self.progress.reset_clock(now);
                    if let Some((since, _)) = worker.stopped.take() {
                        self.overdue.exclude_stop(worker.serial, since, now);
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

    /// Handles the end of the worker in `lane`.
    fn replace(&mut self, lane: usize, worker: Worker, status: WaitStatus, now: Duration) {
        if self.ending.is_some() || self.report.fatal.is_some() {
            self.lanes[lane] = WorkerLane::Ended;
            return;
        }
        let cause = self.cause(lane, worker, status);
        let text = self.settle_dead_worker(worker, cause);
        self.plan_replacement(lane, worker.age(now), cause, &text, now);
    }

    fn cause(&self, lane: usize, worker: Worker, status: WaitStatus) -> DeathCause {
        match (worker.killed, status) {
            (Some((_, KillReason::TimedOut(_))), _) => DeathCause::TimedOut,
            (Some((_, why)), WaitStatus::Signaled(_, Signal::SIGKILL, _)) => match why {
                KillReason::Stopped(signal) => DeathCause::Stopped(signal),
                _ => DeathCause::Ordered,
            },
            (_, WaitStatus::Signaled(_, signal, _)) => DeathCause::of_signal(signal),
            (_, WaitStatus::Exited(_, sigbus::EXIT_BROKEN_MAP))
                if self.record(lane, worker_word::BROKEN_MAP) == 1 =>
            {
                DeathCause::BrokenMap
            }
            (_, WaitStatus::Exited(_, calls::EXIT_REFUSED))
                if self.record(lane, worker_word::REFUSED_CALL) != 0 =>
            {
                DeathCause::Refused((self.record(lane, worker_word::REFUSED_CALL) - 1) as u32)
            }
            (_, WaitStatus::Exited(_, code)) => DeathCause::Crash { signal: None, code },
            _ => DeathCause::Crash {
                signal: None,
                code: -1,
            },
        }
    }

    fn record(&self, lane: usize, word: usize) -> u64 {
        let at = self.ring.layout().worker(lane as u32) + word;
        self.ring.words().load(at, Acquire)
    }

    /// Reopens, advances or fails the dead worker's rows, and wakes all processes.
    fn settle_dead_worker(&mut self, worker: Worker, cause: DeathCause) -> String {
        let ring = self.ring;
        let (w, l) = (ring.words(), ring.layout());
        let claim: Vec<ClaimedRow> =
            coordinator_side::rows_claimed_by(&w, l, worker.serial).collect();
        let is_posted = |claim: &&ClaimedRow| coordinator_side::is_posted(&w, l, claim, self.tries);
        if claim.len() > 1 {
            self.give_up(too_many_rows(worker.serial, claim.len()));
        } else if let Some(unposted) = claim.iter().find(|claim| !is_posted(claim)) {
            self.give_up(not_posted(unposted));
        }
        let mut at_work = Vec::new();
        let (strikes, job, given_up) = (&mut self.strikes, &self.job, &mut self.given_up);
        coordinator_side::resolve_rows_of(&ring.words(), ring.layout(), worker.serial, |claim| {
            let cause = match worker.killed {
                // The row that took too long was finished after all. This one has just begun.
                Some((_, KillReason::TimedOut(late))) if late != claim => DeathCause::Ordered,
                _ => cause,
            };
            let (verdict, fault) = strikes.count_death(claim, cause);
            let ticket = ticket::read(&ring.words(), ring.layout(), claim.slot, claim.sequence);
            let what = job.describe(&ticket, claim.row, claim.attempt);
            // The record keeps the fault of the row's own sample only.
            if let Some(fault) = fault
                && claim.attempt == 0
            {
                ring.write_fault(claim.slot, claim.row, &fault);
            }
            if verdict == RowVerdict::Fail {
                receipt::write(
                    &ring.words(),
                    ring.layout(),
                    (claim.slot, claim.row),
                    &ticket,
                    None,
                );
            }
            at_work.push(match verdict {
                RowVerdict::Retry => what,
                RowVerdict::NextAttempt => {
                    *given_up += 1;
                    format!("{what} (failed, the next sample is tried)")
                }
                RowVerdict::Fail => {
                    *given_up += 1;
                    format!("{what} (failed)")
                }
            });
            verdict
        });
        self.returned += at_work.len() as u64;
        let at = if at_work.is_empty() {
            String::new()
        } else {
            format!(" while working on {}", at_work.join(", "))
        };
        let text = format!(
            "worker {} (pid {}) {}{at}",
            worker.serial,
            worker.pid,
            cause.text()
        );
        self.report.processes.worker_deaths += 1;
        self.report.processes.ordered_deaths += u64::from(cause == DeathCause::Ordered);
        if cause != DeathCause::Ordered {
            self.record_event(text.clone());
        }
        text
    }

    fn record_event(&mut self, event: String) {
        tracing::warn!("{event}");
        let event = shorten_text(event);
        let room = EVENT_BYTES.saturating_sub(event.len());
        while self.events.len() == EVENTS
            || self.events.iter().map(String::len).sum::<usize>() > room
        {
            self.events.pop_front();
            self.report.processes.events_lost += 1;
        }
        self.events.push_back(event);
    }

    fn plan_replacement(
        &mut self,
        lane: usize,
        age: Duration,
        cause: DeathCause,
        text: &str,
        now: Duration,
    ) {
        if cause == DeathCause::Ordered {
            self.lanes[lane] = WorkerLane::Due(now);
            return;
        }
        let settled = self.ring.rows_committed().wrapping_add(self.given_up);
        match self.backoff[lane].after_death(settled, age) {
            Some(wait) => self.lanes[lane] = WorkerLane::Due(now + wait),
            None => {
                self.lanes[lane] = WorkerLane::Ended;
                self.give_up(format!(
                    "{START_FAILURES} workers ended one after the other within a second of their \
                     start, with no row finished in between; the last: {text}"
                ));
            }
        }
    }
}
