//! One lane for each worker that should be alive: who runs in it, or when the
//! replacement is due.
//!
//! Runs in the coordinator. Pure bookkeeping; the supervisor forks and kills.

use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// Deaths in a row, without a row settled (committed or given up), that end the pool.
pub(super) const START_FAILURES: u32 = 5;

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
    /// Why we sent SIGKILL, if we did.
    pub(super) killed: Option<Killed>,
}

/// Why, and when, the coordinator killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    Ordered,
    TimedOut(Instant),
}

/// Counts deaths that come without any progress between them.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    deaths: u32,
    settled_at_last: u64,
}

impl Backoff {
    /// How long to wait before the replacement; none = give the pool up.
    pub(super) fn after_death(&mut self, rows_settled: u64) -> Option<Duration> {
        if rows_settled != self.settled_at_last {
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
        let waits: Vec<_> = (0..5).map(|_| b.after_death(0)).collect();
        assert_eq!(waits, [ms(1), ms(10), ms(100), ms(100), None]);
        let mut b = Backoff::default();
        for rows in 0..100 {
            assert!(b.after_death(rows).is_some());
        }
    }
}
