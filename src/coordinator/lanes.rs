//! One lane for each worker that should be alive: who runs in it, or when the
//! replacement is due.
//!
//! Runs in the coordinator. Pure bookkeeping; the supervisor forks and kills.

use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::ring::coordinator_side::Held;

/// Deaths in a row, without a row settled (committed or given up), that end the pool.
pub(super) const START_FAILURES: u32 = 5;

/// A worker that lived longer than this did start.
const START: Duration = Duration::from_secs(1);

/// Who uses a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Running(Worker),
    /// Fork a replacement then.
    Due(Instant),
    /// No replacement: the pool ends.
    Ended,
}

/// A live (or not yet reaped) worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worker {
    pub(super) pid: Pid,
    pub(super) serial: u32,
    pub(super) forked: Instant,
    /// Why we sent SIGKILL, if we did.
    pub(super) killed: Option<Killed>,
}

/// Why, and when, the coordinator killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    Ordered,
    /// This row took too long. By the time of its death the worker may hold another.
    TimedOut(Instant, Held),
}

/// Counts a lane's deaths in a row: young ones, with no row settled by anybody
/// between them. Kept for each lane, so that one blow at all workers is one
/// death each, and workers that are killed while they wait did start.
#[derive(Debug, Clone, Default)]
pub(super) struct Backoff {
    deaths: u32,
    settled_at_last: u64,
}

impl Backoff {
    /// How long to wait before the replacement; none = give the pool up.
    pub(super) fn after_death(&mut self, rows_settled: u64, age: Duration) -> Option<Duration> {
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

    #[test]
    fn five_deaths_without_a_row_end_the_pool_and_a_row_forgives() {
        let mut b = Backoff::default();
        let ms = |n| Some(Duration::from_millis(n));
        let waits: Vec<_> = (0..5).map(|_| b.after_death(0, Duration::ZERO)).collect();
        assert_eq!(waits, [ms(1), ms(10), ms(100), ms(100), None]);
        let mut b = Backoff::default();
        for _ in 0..100 {
            assert!(b.after_death(0, START).is_some());
        }
        for rows in 0..100 {
            assert!(b.after_death(rows, Duration::ZERO).is_some());
        }
    }
}
