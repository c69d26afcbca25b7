//! Whom the coordinator kills: by order, for a stop, for a row that takes too long.
//!
//! Runs in the coordinator. Only sends signals: who was killed is buried when the
//! kernel says that it ended (`burial`).

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::pool::advice::START_AGAIN;
use crate::pool::coordinator::lanes::{KillReason, REAP_LIMIT, Worker, WorkerLane};
use crate::pool::coordinator::stall_detector::StallStatus;
use crate::pool::coordinator::supervisor::WorkerSupervisor;
use crate::pool::coordinator::worker_exits::{not_asked_for, too_many};
use crate::pool::ring::coordinator_side;
use crate::pool::ring::coordinator_side::ClaimedRow;
use crate::pool::ring::ticket;

impl WorkerSupervisor {
    pub(super) fn kill_by_order(&mut self, now: Duration) {
        let Some(k) = &mut self.kills else { return };
        if now < k.next {
            return;
        }
        k.next = now + k.every;
        let n = self.lanes.len();
        for i in 0..n {
            let lane = (k.turn + i) % n;
            if let WorkerLane::Running(w) = &mut self.lanes[lane]
                && w.killed.is_none()
            {
                w.killed = Some((now, KillReason::Ordered));
                // Not reaped yet, so the number is still this worker's.
                let _ = kill(w.pid, Signal::SIGKILL);
                k.turn = lane + 1;
                return;
            }
        }
    }

    /// Kills a worker that was stopped and is not continued, at work or idle
    /// (docs/design/ring.md, rule 6).
    pub(super) fn kill_stopped(&mut self, now: Duration) {
        for lane in &mut self.lanes {
            if let WorkerLane::Running(w) = lane
                && let Some((by, signal)) = w.end_of_stop(self.stop_limit)
                && now >= by
            {
                w.killed = Some((now, KillReason::Stopped(signal)));
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
    }

    /// Rows that are claimed as no worker claims them: a decoder has scribbled on them, and
    /// nobody would ever finish them.
    fn damage(&self, claimed: &[ClaimedRow]) -> Option<String> {
        let running = |owner: u32| {
            let mut lanes = self.lanes.iter();
            lanes.any(|lane| matches!(lane, WorkerLane::Running(w) if w.serial == owner))
        };
        // Only this thread makes workers and buries them, so none came or went meanwhile.
        if let Some(held) = claimed.iter().find(|held| !running(held.owner)) {
            let ClaimedRow {
                owner, row, slot, ..
            } = held;
            return Some(format!(
                "row {row} of slot {slot} is claimed by worker {owner}, which there is none of: \
                 shared memory was destroyed, by a decoder gone wrong; {START_AGAIN}"
            ));
        }
        let (w, l) = (self.ring.words(), self.ring.layout());
        // A row that is still claimed behind the look at its ticket was so then.
        let invented = claimed.iter().find(|held| {
            !coordinator_side::is_posted(&w, l, held, self.tries)
                && coordinator_side::is_still_claimed(&w, l, held)
        });
        if let Some(held) = invented {
            return Some(not_asked_for(held));
        }
        // Both at once: a row that is still claimed behind the look at the second was so then.
        let mut owners = HashMap::new();
        for held in claimed {
            if let Some(first) = owners.insert(held.owner, held)
                && coordinator_side::is_still_claimed(&w, l, held)
                && coordinator_side::is_still_claimed(&w, l, first)
            {
                return Some(too_many(held.owner, 2));
            }
        }
        None
    }

    /// Kills the worker that is at one row for `row_limit`; where no row ends, those without one
    /// (docs/design/ring.md, rule 6).
    pub(super) fn check_rows(&mut self, now: Duration) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + self.overdue.tick();
        coordinator_side::count_heartbeat(&self.ring.words(), self.ring.layout());
        // Rows of a pool that was given up stay claimed by those who were killed then.
        if self.report.fatal.is_some() {
            return;
        }
        let (w, l) = (self.ring.words(), self.ring.layout());
        let claimed: Vec<ClaimedRow> = coordinator_side::claimed_rows(&w, l).collect();
        if let Some(damage) = self.damage(&claimed) {
            self.give_up(damage);
            return;
        }
        let standings = coordinator_side::ticket_progress(&w, l, self.tries);
        match self.progress.look(now, standings, self.returned) {
            StallStatus::Progressing => {}
            StallStatus::Stalled => self.kill_idle(now, &claimed),
            StallStatus::StalledTwice => {
                self.give_up(format!(
                    "no row has come to an end for {} s, also by other workers: a decoder gone \
                     wrong, or somebody keeps workers from running; {START_AGAIN}",
                    self.progress.limit().as_secs()
                ));
                return;
            }
        }
        let over = self.overdue.look(now, claimed.into_iter());
        for held in over {
            let what = || {
                let ticket = ticket::read(&w, l, held.slot, held.sequence);
                self.job.describe(&ticket, held.row, held.attempt)
            };
            let worker = self.lanes.iter_mut().find_map(|lane| match lane {
                WorkerLane::Running(w) if w.serial == held.owner => Some(w),
                _ => None,
            });
            match worker {
                Some(w) if w.killed.is_none() && w.stopped.is_none() => {
                    w.killed = Some((now, KillReason::TimedOut(held)));
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

    /// Nothing comes to an end: those who hold no row are in nobody's way, but do nothing
    /// either. Others take their place.
    fn kill_idle(&mut self, now: Duration, claimed: &[ClaimedRow]) {
        for lane in &mut self.lanes {
            if let WorkerLane::Running(w) = lane
                && w.killed.is_none()
                && claimed.iter().all(|held| held.owner != w.serial)
            {
                tracing::warn!("worker {} takes no row and is replaced", w.serial);
                w.killed = Some((now, KillReason::Ordered));
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
    }
}
