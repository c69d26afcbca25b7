//! Finds rows that the same worker has held for too long.
//!
//! Runs in the coordinator. It reads row words, because a worker that was stopped just after its
//! claim has reported nothing yet. Each attempt at a row has the full limit. Times are readings of
//! the coordinator's `RunningClock`, so suspending the whole job makes no row overdue.

use std::collections::HashMap;
use std::time::Duration;

use crate::pool::ring::coordinator_side::ClaimedRow;

/// First sight of each claimed row, per attempt.
#[derive(Debug)]
pub(crate) struct RowTimeouts {
    row_limit: Duration,
    first_seen: HashMap<ClaimedRow, Duration>,
}

impl RowTimeouts {
    pub(crate) fn new(row_limit: Duration) -> Self {
        Self {
            row_limit,
            first_seen: HashMap::new(),
        }
    }

    /// Interval of checks: a quarter of the limit, at most one second.
    pub(crate) fn check_interval(&self) -> Duration {
        (self.row_limit / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Updates the claimed rows, and returns those over the limit.
    pub(crate) fn check(
        &mut self,
        now: Duration,
        claims: impl Iterator<Item = ClaimedRow>,
    ) -> Vec<ClaimedRow> {
        let mut still = HashMap::with_capacity(self.first_seen.len());
        let mut overdue_rows = Vec::new();
        for h in claims {
            let since = self.first_seen.get(&h).copied().unwrap_or(now);
            if now.saturating_sub(since) >= self.row_limit {
                overdue_rows.push(h);
            }
            still.insert(h, since);
        }
        self.first_seen = still;
        overdue_rows
    }

    /// The owner was stopped from `from` until `now`. That time does not count for its row.
    pub(crate) fn exclude_stop(&mut self, owner: u32, from: Duration, now: Duration) {
        for (claim, since) in &mut self.first_seen {
            if claim.owner == owner {
                // A row first seen during the stop starts now.
                *since = now.min(*since + now.saturating_sub(from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::tests::FakeClock;

    fn h(owner: u32, sequence: u32) -> ClaimedRow {
        ClaimedRow {
            slot: 0,
            row: 0,
            owner,
            sequence,
            attempt: 0,
        }
    }

    #[test]
    fn an_hour_in_which_the_coordinator_did_not_run_counts_against_no_row() {
        let mut o = RowTimeouts::new(Duration::from_secs(60));
        let mut t = FakeClock::start();
        let mut check = |passed| {
            let now = t.pass(passed, o.check_interval());
            !o.check(now, [h(1, 1)].into_iter()).is_empty()
        };
        let second = Duration::from_secs(1);
        for _ in 0..3 {
            assert!((0..10).all(|_| !check(second)));
            assert!(!check(Duration::from_secs(3600)));
        }
        // It becomes overdue once it has had its time.
        let more = (0..60).position(|_| check(second));
        assert!(more.is_some_and(|n| n > 20), "{more:?}");
    }

    #[test]
    fn the_time_that_a_worker_stood_still_is_not_its_rows() {
        let at = Duration::from_secs;
        let mut o = RowTimeouts::new(at(60));
        let both = || [h(1, 1), h(2, 2)].into_iter();
        assert!(o.check(at(0), both()).is_empty());
        o.exclude_stop(1, at(10), at(50));
        assert_eq!(o.check(at(60), both()), [h(2, 2)]);
        assert_eq!(o.check(at(99), both()), [h(2, 2)]);
        assert_eq!(o.check(at(100), both()).len(), 2);
        // First seen while its owner was stopped.
        assert!(o.check(at(200), [h(3, 3)].into_iter()).is_empty());
        o.exclude_stop(3, at(190), at(210));
        assert!(o.check(at(269), [h(3, 3)].into_iter()).is_empty());
        assert_eq!(o.check(at(270), [h(3, 3)].into_iter()), [h(3, 3)]);
    }

    #[test]
    fn only_the_same_claim_ages() {
        let mut o = RowTimeouts::new(Duration::from_secs(60));
        let at = Duration::from_secs;
        assert!(o.check(at(0), [h(1, 1)].into_iter()).is_empty());
        assert!(o.check(at(59), [h(1, 1)].into_iter()).is_empty());
        assert_eq!(o.check(at(60), [h(1, 1)].into_iter()), [h(1, 1)]);
        assert!(o.check(at(61), [h(2, 1)].into_iter()).is_empty());
        let next = ClaimedRow {
            attempt: 1,
            ..h(2, 1)
        };
        assert!(o.check(at(119), [next].into_iter()).is_empty());
        assert!(o.check(at(178), [next].into_iter()).is_empty());
        assert_eq!(o.check(at(179), [next].into_iter()), [next]);
        assert!(o.check(at(180), [h(2, 2)].into_iter()).is_empty());
        assert!(o.check(at(200), [].into_iter()).is_empty());
        assert!(o.check(at(300), [h(2, 2)].into_iter()).is_empty());
        assert_eq!(o.check_interval(), Duration::from_secs(1));
    }
}
