//! Kills workers: for a test, after a long stop, for a row that takes too long.
//!
//! Runs in the coordinator. Only sends signals. `worker_exits` handles the death once the kernel
//! reports it.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::pool::advice::START_AGAIN;
use crate::pool::coordinator::lanes::{KillReason, REAP_LIMIT, Worker, WorkerLane};
use crate::pool::coordinator::stall_detector::StallStatus;
use crate::pool::coordinator::supervisor::WorkerSupervisor;
use crate::pool::coordinator::worker_exits::{not_posted, too_many_rows};
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
                // Not reaped yet, so the number still belongs to this worker.
                let _ = kill(w.pid, Signal::SIGKILL);
                k.turn = lane + 1;
                return;
            }
        }
    }

    /// Kills workers that are stopped and not continued, busy or idle (docs/design/ring.md, rule
    /// 6).
    pub(super) fn kill_stopped(&mut self, now: Duration) {
        for lane in &mut self.lanes {
            if let WorkerLane::Running(w) = lane
                && let Some((by, signal)) = w.kill_time_of_stop(self.stop_limit)
                && now >= by
            {
                w.killed = Some((now, KillReason::Stopped(signal)));
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
    }

    /// Finds claims that no worker makes. A decoder has overwritten these words, and no worker
    /// would ever finish the rows.
    fn damage(&self, claimed: &[ClaimedRow]) -> Option<String> {
        let running = |owner: u32| {
            let mut lanes = self.lanes.iter();
            lanes.any(|lane| matches!(lane, WorkerLane::Running(w) if w.serial == owner))
        };
        // Only this thread forks and reaps workers, so the set of workers did not change meanwhile.
        if let Some(claim) = claimed.iter().find(|claim| !running(claim.owner)) {
            let ClaimedRow {
                owner, row, slot, ..
            } = claim;
            return Some(format!(
                "row {row} of slot {slot} is claimed by worker {owner}, which does not exist: \
                 shared memory was overwritten by a faulty decoder; {START_AGAIN}"
            ));
        }
        let (w, l) = (self.ring.words(), self.ring.layout());
        // If the row is still claimed after its ticket was read, it was claimed at that time.
        let unposted = claimed.iter().find(|claim| {
            !coordinator_side::is_posted(&w, l, claim, self.tries)
                && coordinator_side::is_still_claimed(&w, l, claim)
        });
        if let Some(claim) = unposted {
            return Some(not_posted(claim));
        }
        // Both at once: if the first is still claimed after the second was read, both were claimed
        // at that time.
        let mut owners = HashMap::new();
        for claim in claimed {
            if let Some(first) = owners.insert(claim.owner, claim)
                && coordinator_side::is_still_claimed(&w, l, claim)
                && coordinator_side::is_still_claimed(&w, l, first)
            {
                return Some(too_many_rows(claim.owner, 2));
            }
        }
        None
    }

    /// Kills workers that hold a row for longer than `row_limit`. If no row gets done at all, kills
    /// the workers without a row (docs/design/ring.md, rule 6).
    pub(super) fn check_rows(&mut self, now: Duration) {
        if now < self.next_check {
            return;
        }
        self.next_check = now + self.overdue.check_interval();
        coordinator_side::count_heartbeat(&self.ring.words(), self.ring.layout());
        // After the pool has failed, rows stay claimed by the killed workers.
        if self.report.fatal.is_some() {
            return;
        }
        let (w, l) = (self.ring.words(), self.ring.layout());
        let claimed: Vec<ClaimedRow> = coordinator_side::claimed_rows(&w, l).collect();
        if let Some(damage) = self.damage(&claimed) {
            self.give_up(damage);
            return;
        }
        let progress = coordinator_side::ticket_progress(&w, l, self.tries);
        match self.progress.check(now, progress, self.returned) {
            StallStatus::Progressing => {}
            StallStatus::Stalled => self.kill_idle(now, &claimed),
            StallStatus::StalledTwice => {
                self.give_up(format!(
                    "no row was finished for {} s, even by new workers: a faulty \
                     decoder, or workers are kept from running; {START_AGAIN}",
                    self.progress.limit().as_secs()
                ));
                return;
            }
        }
        let overdue_rows = self.overdue.check(now, claimed.into_iter());
        for claim in overdue_rows {
            let what = || {
                let ticket = ticket::read(&w, l, claim.slot, claim.sequence);
                self.job.describe(&ticket, claim.row, claim.attempt)
            };
            let worker = self.lanes.iter_mut().find_map(|lane| match lane {
                WorkerLane::Running(w) if w.serial == claim.owner => Some(w),
                _ => None,
            });
            match worker {
                Some(w) if w.killed.is_none() && w.stopped.is_none() => {
                    w.killed = Some((now, KillReason::TimedOut(claim)));
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

    /// Replaces the workers that hold no row, because no row gets done.
    fn kill_idle(&mut self, now: Duration, claimed: &[ClaimedRow]) {
        for lane in &mut self.lanes {
            if let WorkerLane::Running(w) = lane
                && w.killed.is_none()
                && claimed.iter().all(|claim| claim.owner != w.serial)
            {
                tracing::warn!("worker {} claims no row and is replaced", w.serial);
                w.killed = Some((now, KillReason::Ordered));
                let _ = kill(w.pid, Signal::SIGKILL);
            }
        }
    }
}
