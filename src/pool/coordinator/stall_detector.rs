//! Detects that no row gets done.
//!
//! Runs in the coordinator. Each claimed row has a time limit ([`super::row_timeouts`]). But a
//! compromised worker can avoid it: it may claim no row, or return rows forever. So can an honest
//! worker under a debugger. Then the consumer would wait forever. In a healthy pool a row, or an
//! attempt at one, ends within the limit for a row. If none does, workers without a row are
//! replaced. If that does not help, the pool fails.
//!
//! Workers can write everything except the tickets' sequences. So only new events count as
//! progress, and a ticket has at most one per row and attempt.

use std::collections::HashMap;
use std::time::Duration;

use crate::pool::coordinator::lanes::REAP_LIMIT;
use crate::pool::ring::coordinator_side::TicketProgress;

/// Time for a worker to wake, and for the coordinator to check.
const SLACK: Duration = Duration::from_secs(2);

/// Longest time between two heartbeats of a coordinator: the limit for a row, and the time to kill
/// its worker.
pub(crate) fn heartbeat_limit(row_limit: Duration) -> Duration {
    // The limit of a row may be as large as `Duration::MAX`.
    row_limit.saturating_add(REAP_LIMIT + SLACK)
}

/// Whether rows get done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallStatus {
    Progressing,
    /// None for longer than a row may take. Returned once, until a row gets done.
    Stalled,
    /// None for the same time again, plus the time to kill a worker.
    StalledTwice,
}

/// Best progress seen for the ticket of each slot.
#[derive(Debug)]
pub(crate) struct StallDetector {
    /// Time limits without progress: the first, and the second after the workers were replaced.
    limits: [Duration; 2],
    best: HashMap<u32, TicketProgress>,
    /// Count of rows taken from dead workers, at the last progress.
    returned: u64,
    /// Time of the last progress, or when there was nothing to do.
    since: Duration,
    is_stalled: bool,
}

impl StallDetector {
    /// `check_interval`: the interval of checks.
    pub(crate) fn new(row_limit: Duration, check_interval: Duration) -> Self {
        let row = row_limit + check_interval + SLACK;
        Self {
            limits: [row, row + REAP_LIMIT],
            best: HashMap::new(),
            returned: 0,
            since: Duration::ZERO,
            is_stalled: false,
        }
    }

    /// Time without progress after which the pool fails.
    pub(crate) fn limit(&self) -> Duration {
        self.limits[0] + self.limits[1]
    }

    /// Checks the progress. `returned` counts rows taken from dead workers.
    pub(crate) fn check(
        &mut self,
        now: Duration,
        tickets: impl Iterator<Item = TicketProgress>,
        returned: u64,
    ) -> StallStatus {
        let mut unfinished = false;
        let mut progressed = std::mem::replace(&mut self.returned, returned) != returned;
        for ticket in tickets {
            unfinished |= ticket.unfinished;
            let best = self.best.entry(ticket.slot).or_insert(ticket);
            if best.sequence != ticket.sequence {
                *best = ticket;
                progressed = true;
            }
            progressed |= ticket.ended > best.ended || ticket.attempts > best.attempts;
            best.ended = best.ended.max(ticket.ended);
            best.attempts = best.attempts.max(ticket.attempts);
        }
        if progressed || !unfinished {
            self.since = now;
            self.is_stalled = false;
        }
        let limit = self.limits[usize::from(self.is_stalled)];
        if now.saturating_sub(self.since) <= limit {
            return StallStatus::Progressing;
        }
        if self.is_stalled {
            return StallStatus::StalledTwice;
        }
        self.is_stalled = true;
        self.since = now;
        StallStatus::Stalled
    }

    /// Workers were stopped or continued, so the time until now does not count.
    pub(crate) fn reset_clock(&mut self, now: Duration) {
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(sequence: u32, ended: u32, attempts: u32) -> TicketProgress {
        TicketProgress {
            slot: 0,
            sequence,
            ended,
            attempts,
            unfinished: true,
        }
    }

    /// One check per second; returns when it stalled, and when it stalled twice.
    fn looks(
        p: &mut StallDetector,
        progress_at: impl Fn(u32) -> Option<TicketProgress>,
    ) -> Vec<(u32, StallStatus)> {
        let mut stalls = Vec::new();
        for n in 1..1000 {
            match p.check(SECOND * n, progress_at(n).into_iter(), 0) {
                StallStatus::Progressing => {}
                pace => stalls.push((n, pace)),
            }
            if stalls.len() == 2 {
                break;
            }
        }
        stalls
    }

    fn progress() -> StallDetector {
        StallDetector::new(SECOND * 60, SECOND)
    }

    fn stood(after: u32) -> Vec<(u32, StallStatus)> {
        vec![
            (after + 63, StallStatus::Stalled),
            (after + 63 + 69, StallStatus::StalledTwice),
        ]
    }

    #[test]
    fn no_limit_is_too_large_to_be_counted_with() {
        assert_eq!(heartbeat_limit(Duration::MAX), Duration::MAX);
        let mut p = StallDetector::new(Duration::from_millis(u64::MAX), SECOND);
        assert_eq!(looks(&mut p, |_| Some(at(1, 0, 0))), []);
    }

    #[test]
    fn what_was_seen_before_is_no_progress() {
        assert_eq!(looks(&mut progress(), |_| Some(at(1, 3, 0))), stood(1));
        // Rows that are returned and filled again; attempts that are set back.
        let back_and_forth = |n| Some(at(1, 3 + n % 2, 2 - n % 2));
        assert_eq!(looks(&mut progress(), back_and_forth), stood(3));
    }

    #[test]
    fn new_ends_attempts_tickets_and_deaths_are() {
        assert_eq!(looks(&mut progress(), |n| Some(at(1, n / 60, 0))), []);
        assert_eq!(looks(&mut progress(), |n| Some(at(1, 0, n / 60))), []);
        assert_eq!(looks(&mut progress(), |n| Some(at(n / 60, 0, 0))), []);
        let mut p = progress();
        let mut dead = |n: u64| p.check(SECOND * n as u32, [at(1, 0, 0)].into_iter(), n / 60);
        assert!((0..1000).all(|n| dead(n) == StallStatus::Progressing));
    }

    #[test]
    fn a_pool_that_goes_on_behind_the_first_word_is_left_alone() {
        // An end at 100 s, in the second time.
        let stalls = looks(&mut progress(), |n| Some(at(1, n / 100, 0)));
        assert_eq!(stalls[0], (64, StallStatus::Stalled));
        assert_eq!(stalls[1], (164, StallStatus::Stalled));
    }

    #[test]
    fn a_pool_with_nothing_to_do_or_that_was_stopped_has_time() {
        let done = TicketProgress {
            unfinished: false,
            ..at(1, 8, 0)
        };
        assert_eq!(looks(&mut progress(), |_| Some(done)), []);
        assert_eq!(looks(&mut progress(), |_| None), []);
        let mut p = progress();
        for n in 0..1000 {
            if n % 60 == 0 {
                p.reset_clock(SECOND * n);
            }
            let pace = p.check(SECOND * n, [at(1, 0, 0)].into_iter(), 0);
            assert_eq!(pace, StallStatus::Progressing);
        }
    }
}
