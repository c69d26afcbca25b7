//! One lane for each worker that should be alive: who runs in it, or when the
//! replacement is due.
//!
//! Runs in the coordinator. Pure bookkeeping; the supervisor forks and kills.
//! Times are those of its `RunningClock`, which stands still while it does.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::pool::ring::coordinator_side::ClaimedRow;

/// Deaths in a row, without a row settled (committed or given up), that end the pool.
pub(crate) const START_FAILURES: u32 = 5;

/// A worker that lived longer than this did start.
const START: Duration = Duration::from_secs(1);

/// How long a worker may stand stopped (SIGSTOP) before it is killed; with a
/// shorter `row_limit` only that long. Whoever stops a whole job may take a
/// while from one process to the next; whoever waits for a batch should not
/// wait for a debugger.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// How long a killed worker may stay unreaped before the pool is given up.
pub(crate) const REAP_LIMIT: Duration = Duration::from_secs(5);

/// How long workers of a pool with that limit on rows may stand stopped.
pub(crate) fn stop_limit(row_limit: Duration) -> Duration {
    STOP_LIMIT.min(row_limit)
}

/// Who uses a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerLane {
    Running(Worker),
    /// Fork a replacement then.
    Due(Duration),
    /// No replacement: the pool ends.
    Ended,
}

/// A live (or not yet reaped) worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) pid: Pid,
    pub(crate) serial: u32,
    pub(crate) forked: Duration,
    /// Since when it stands still, and by which signal, if it does.
    pub(crate) stopped: Option<(Duration, Signal)>,
    /// When and why we sent SIGKILL, if we did.
    pub(crate) killed: Option<(Duration, KillReason)>,
}

impl Worker {
    /// When a stopped worker is to be killed, and the signal that stopped it.
    pub(crate) fn end_of_stop(&self, limit: Duration) -> Option<(Duration, Signal)> {
        match (self.stopped, self.killed) {
            (Some((since, signal)), None) => Some((since.saturating_add(limit), signal)),
            _ => None,
        }
    }

    /// How long it has lived; a worker that is stopped does not live on.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        let end = self.stopped.map_or(now, |(since, _)| since);
        end.saturating_sub(self.forked)
    }
}

/// Why the coordinator killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillReason {
    Ordered,
    /// Somebody stopped it, by this signal, and did not let it go on.
    Stopped(Signal),
    /// This row took too long. By the time of its death the worker may hold another.
    TimedOut(ClaimedRow),
}

/// Counts a lane's deaths in a row: young ones, with no row settled by anybody
/// between them. Kept for each lane, so that one blow at all workers is one
/// death each, and workers that are killed while they wait did start.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestartBackoff {
    deaths: u32,
    settled_at_last: u64,
}

impl RestartBackoff {
    /// How long to wait before the replacement; none = give the pool up.
    pub(crate) fn after_death(&mut self, rows_settled: u64, age: Duration) -> Option<Duration> {
        if rows_settled != self.settled_at_last || age >= START {
            self.deaths = 0;
            self.settled_at_last = rows_settled;
        }
        self.deaths += 1;
        match self.deaths {
            1 => Some(Duration::from_millis(1)),
            2 => Some(Duration::from_millis(10)),
            n if n < START_FAILURES => Some(Duration::from_millis(100)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::tests::Told;

    fn stopped(forked: Duration, since: Duration) -> Worker {
        Worker {
            pid: Pid::from_raw(1),
            serial: 1,
            forked,
            stopped: Some((since, Signal::SIGSTOP)),
            killed: None,
        }
    }

    #[test]
    fn a_stopped_worker_has_a_second_or_the_row_limit_and_is_killed_once() {
        let ms = Duration::from_millis;
        assert_eq!(stop_limit(ms(60_000)), ms(1000));
        assert_eq!(stop_limit(ms(300)), ms(300));
        let mut w = stopped(ms(10), ms(500));
        let end = Some((ms(800), Signal::SIGSTOP));
        assert_eq!(w.end_of_stop(ms(300)), end);
        assert_eq!(w.age(ms(5000)), ms(490));
        w.killed = Some((ms(800), KillReason::Stopped(Signal::SIGSTOP)));
        assert_eq!(w.end_of_stop(ms(300)), None);
        w = stopped(ms(10), ms(500));
        w.stopped = None;
        assert_eq!(w.end_of_stop(ms(300)), None);
        assert_eq!(w.age(ms(5000)), ms(4990));
    }

    /// Workers first, then the coordinator, as `kill -STOP` goes through them.
    #[test]
    fn an_hour_in_which_nobody_ran_is_no_hour_of_a_workers_stop() {
        let ms = Duration::from_millis;
        let mut t = Told::start();
        let w = stopped(ms(0), t.pass(ms(40), ms(50)));
        let (end, _) = w.end_of_stop(stop_limit(ms(60_000))).unwrap();
        assert!(t.pass(ms(3_600_000), ms(250)) < end);
        let mut looks = (0..4).map(|_| t.pass(ms(250), ms(250)));
        assert!(looks.any(|now| now >= end), "but it is in the end");
    }

    #[test]
    fn five_deaths_without_a_row_end_the_pool_and_a_row_forgives() {
        let mut b = RestartBackoff::default();
        let ms = |n| Some(Duration::from_millis(n));
        let waits: Vec<_> = (0..5).map(|_| b.after_death(0, Duration::ZERO)).collect();
        assert_eq!(waits, [ms(1), ms(10), ms(100), ms(100), None]);
        let mut b = RestartBackoff::default();
        for _ in 0..100 {
            assert!(b.after_death(0, START).is_some());
        }
        for rows in 0..100 {
            assert!(b.after_death(rows, Duration::ZERO).is_some());
        }
    }
}
