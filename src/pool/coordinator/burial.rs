//! What becomes of a worker that ended: why it did, its rows, its replacement.
//!
//! Runs in the coordinator, after each child's end.

use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;

use crate::error::Result;
use crate::pool::advice::START_AGAIN;
use crate::pool::coordinator::lanes::{Killed, Lane, START_FAILURES, Worker};
use crate::pool::coordinator::messages::{EVENT_BYTES, told};
use crate::pool::coordinator::strikes::Cause;
use crate::pool::coordinator::supervisor::Supervisor;
use crate::pool::ring::coordinator_side;
use crate::pool::ring::coordinator_side::{Held, Verdict};
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::receipt;
use crate::pool::ring::ticket;
use crate::pool::ring::words::Words;
use crate::pool::worker::sigbus;
use crate::sys::process::child_event;
use crate::sys::sandbox::calls;

/// A worker holds one row at a time.
pub(super) fn too_many(serial: u32, rows: usize) -> String {
    format!(
        "worker {serial} holds {rows} rows, and can hold one: shared memory was destroyed, by a \
         decoder gone wrong; {START_AGAIN}"
    )
}

/// Nobody asked for such a row, so a worker claims none.
pub(super) fn not_asked_for(held: &Held) -> String {
    let Held {
        owner, row, slot, ..
    } = held;
    format!(
        "worker {owner} holds row {row} of slot {slot}, which is not asked for: shared memory was \
         destroyed, by a decoder gone wrong; {START_AGAIN}"
    )
}

/// Events kept for a consumer that does not ask.
const EVENTS: usize = 256;

impl Supervisor {
    /// Rules 3, 4 and 6: bury every ended child, then plan its replacement;
    /// note who was stopped and who goes on.
    pub(super) fn attend(&mut self, now: Duration) -> Result<()> {
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
                WaitStatus::Stopped(_, signal) => {
                    worker.stopped = Some((now, signal));
                    self.progress.forgive(now);
                }
                WaitStatus::Continued(_) => {
                    self.progress.forgive(now);
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
            (_, WaitStatus::Exited(_, calls::EXIT_REFUSED))
                if self.record(lane, worker_word::REFUSED_CALL) != 0 =>
            {
                Cause::Refused((self.record(lane, worker_word::REFUSED_CALL) - 1) as u32)
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
        self.ring.words().load(at, Acquire)
    }

    /// Gives back, moves on or fails the dead worker's rows and wakes everybody.
    fn bury(&mut self, worker: Worker, cause: Cause) -> String {
        let ring = self.ring;
        let (w, l) = (ring.words(), ring.layout());
        let held: Vec<Held> = coordinator_side::held_by(&w, l, worker.serial).collect();
        let asked_for = |held: &&Held| coordinator_side::was_asked_for(&w, l, held, self.tries);
        if held.len() > 1 {
            self.give_up(too_many(worker.serial, held.len()));
        } else if let Some(invented) = held.iter().find(|held| !asked_for(held)) {
            self.give_up(not_asked_for(invented));
        }
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
            let ticket = ticket::read(&ring.words(), ring.layout(), held.slot, held.sequence);
            let what = job.describe(&ticket, held.row, held.attempt);
            // The record keeps why the row's own sample gave no pixels.
            if let Some(fault) = fault
                && held.attempt == 0
            {
                ring.write_fault(held.slot, held.row, &fault);
            }
            if verdict == Verdict::Fail {
                receipt::write(
                    &ring.words(),
                    ring.layout(),
                    (held.slot, held.row),
                    &ticket,
                    None,
                );
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
        self.returned += at_work.len() as u64;
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
        self.report.processes.worker_deaths += 1;
        self.report.processes.ordered_deaths += u64::from(cause == Cause::Ordered);
        if cause != Cause::Ordered {
            self.note(text.clone());
        }
        text
    }

    fn note(&mut self, event: String) {
        tracing::warn!("{event}");
        let event = told(event);
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
        cause: Cause,
        text: &str,
        now: Duration,
    ) {
        if cause == Cause::Ordered {
            self.lanes[lane] = Lane::Due(now);
            return;
        }
        let settled = self.ring.rows_committed().wrapping_add(self.given_up);
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
}
