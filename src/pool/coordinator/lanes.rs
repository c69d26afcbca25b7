//! One lane per worker: the worker that runs in it, or the time of its replacement.
//!
//! Runs in the coordinator. Pure bookkeeping; the supervisor forks and kills. Times are readings of
//! its `RunningClock`, which stops while the process does.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::pool::ring::coordinator_side::ClaimedRow;

/// Deaths in a row that end the pool, if no row was committed or failed in between.
pub(crate) const START_FAILURES: u32 = 5;

/// A worker that lived longer than this has started successfully.
const START: Duration = Duration::from_secs(1);

/// How long a worker may be stopped (SIGSTOP) before it is killed, unless `row_limit` is shorter.
/// Long enough to suspend all processes of a job one by one. Short enough that a batch does not
/// wait for a debugger.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// How long a killed worker may stay unreaped before the pool fails.
pub(crate) const REAP_LIMIT: Duration = Duration::from_secs(5);

/// How long workers may be stopped, in a pool with this limit on rows.
pub(crate) fn stop_limit(row_limit: Duration) -> Duration {
    STOP_LIMIT.min(row_limit)
}

/// State of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerLane {
    Running(Worker),
    /// Time to fork a replacement.
    Due(Duration),
    /// No replacement: the pool ends.
    Ended,
}

/// A worker that is alive or not yet reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) pid: Pid,
    pub(crate) serial: u32,
    pub(crate) forked: Duration,
    /// Start of its stop and the signal, while it is stopped.
    pub(crate) stopped: Option<(Duration, Signal)>,
    /// Time and reason of our SIGKILL, if any.
    pub(crate) killed: Option<(Duration, KillReason)>,
}

impl Worker {
    /// When to kill a stopped worker, and the signal that stopped it.
    pub(crate) fn kill_time_of_stop(&self, limit: Duration) -> Option<(Duration, Signal)> {
        match (self.stopped, self.killed) {
            (Some((since, signal)), None) => Some((since.saturating_add(limit), signal)),
            _ => None,
        }
    }

    /// Its age. Time while it is stopped does not count.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        let end = self.stopped.map_or(now, |(since, _)| since);
        end.saturating_sub(self.forked)
    }
}

/// Why the coordinator killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillReason {
    Ordered,
    /// It was stopped from outside by this signal, and not continued.
    Stopped(Signal),
    /// This row took too long. The worker may hold another row by the time it dies.
    TimedOut(ClaimedRow),
}

/// Counts young deaths in a lane in a row, with no row committed or failed in between. It is
/// counted per lane, so that a kill of all workers counts as one death each. A worker that is
/// killed while it waits has started successfully.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestartBackoff {
    deaths: u32,
    rows_at_last_death: u64,
}

impl RestartBackoff {
    /// How long to wait before the replacement; `None` = the pool fails.
    pub(crate) fn after_death(&mut self, rows_settled: u64, age: Duration) -> Option<Duration> {
        if rows_settled != self.rows_at_last_death || age >= START {
            self.deaths = 0;
            self.rows_at_last_death = rows_settled;
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
    use crate::sys::clock::tests::FakeClock;

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
        assert_eq!(w.kill_time_of_stop(ms(300)), end);
        assert_eq!(w.age(ms(5000)), ms(490));
        w.killed = Some((ms(800), KillReason::Stopped(Signal::SIGSTOP)));
        assert_eq!(w.kill_time_of_stop(ms(300)), None);
        w = stopped(ms(10), ms(500));
        w.stopped = None;
        assert_eq!(w.kill_time_of_stop(ms(300)), None);
        assert_eq!(w.age(ms(5000)), ms(4990));
    }

    /// Stops the workers first, then the coordinator, as `kill -STOP` on a group may do.
    #[test]
    fn an_hour_in_which_nobody_ran_is_no_hour_of_a_workers_stop() {
        let ms = Duration::from_millis;
        let mut t = FakeClock::start();
        let w = stopped(ms(0), t.pass(ms(40), ms(50)));
        let (end, _) = w.kill_time_of_stop(stop_limit(ms(60_000))).unwrap();
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
