//! Whether the rows that were asked for come to an end at all.
//!
//! Runs in the coordinator. Each row in somebody's hands has a limit ([`super::overdue`]). A
//! worker whose decoder was taken over can do nothing without holding a row, or give rows
//! back for ever: no limit of a row is over then, and whoever waits for the batch would wait
//! without end. So may an honest one that a debugger holds. A pool that goes on ends a row, or
//! an attempt at one, within the limit of a row; otherwise workers without a row are replaced,
//! and if that brings nothing the pool is given up.
//!
//! Everything but the numbers of tickets is written by workers. So only what was never seen
//! before counts: a ticket has no more such events than rows and attempts.

use std::collections::HashMap;
use std::time::Duration;

use crate::pool::coordinator::lanes::REAP_LIMIT;
use crate::pool::ring::coordinator_side::TicketProgress;

/// For a worker to wake up, and for the coordinator to look.
const SLACK: Duration = Duration::from_secs(2);

/// How long a coordinator may not look after rows that are waited for: as long as it lets a
/// worker be at one of them, and what it takes to kill that.
pub(crate) fn heartbeat_limit(row_limit: Duration) -> Duration {
    // A user may give any limit, as large as none.
    row_limit.saturating_add(REAP_LIMIT + SLACK)
}

/// Whether rows come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallStatus {
    Progressing,
    /// Not for longer than a row may take: told once, until one does.
    Stalled,
    /// Not for as long again, and the time that it takes to kill a worker.
    StalledTwice,
}

/// The furthest that each slot's ticket has come.
#[derive(Debug)]
pub(crate) struct StallDetector {
    /// Most time without an end, at first and in the second place.
    limits: [Duration; 2],
    best: HashMap<u32, TicketProgress>,
    /// Rows that were taken from the dead, as counted when it last went on.
    returned: u64,
    /// When it last went on, or nothing was to be done.
    since: Duration,
    stands: bool,
}

impl StallDetector {
    /// `row_limit`, looked at every `tick`.
    pub(crate) fn new(row_limit: Duration, tick: Duration) -> Self {
        let row = row_limit + tick + SLACK;
        Self {
            limits: [row, row + REAP_LIMIT],
            best: HashMap::new(),
            returned: 0,
            since: Duration::ZERO,
            stands: false,
        }
    }

    /// How long nothing may come to an end before the pool is given up.
    pub(crate) fn limit(&self) -> Duration {
        self.limits[0] + self.limits[1]
    }

    /// Takes a look. `returned` counts the rows that were taken from dead workers.
    pub(crate) fn look(
        &mut self,
        now: Duration,
        standings: impl Iterator<Item = TicketProgress>,
        returned: u64,
    ) -> StallStatus {
        let mut unfinished = false;
        let mut went_on = std::mem::replace(&mut self.returned, returned) != returned;
        for standing in standings {
            unfinished |= standing.unfinished;
            let best = self.best.entry(standing.slot).or_insert(standing);
            if best.sequence != standing.sequence {
                *best = standing;
                went_on = true;
            }
            went_on |= standing.ended > best.ended || standing.attempts > best.attempts;
            best.ended = best.ended.max(standing.ended);
            best.attempts = best.attempts.max(standing.attempts);
        }
        if went_on || !unfinished {
            self.since = now;
            self.stands = false;
        }
        let limit = self.limits[usize::from(self.stands)];
        if now.saturating_sub(self.since) <= limit {
            return StallStatus::Progressing;
        }
        if self.stands {
            return StallStatus::StalledTwice;
        }
        self.stands = true;
        self.since = now;
        StallStatus::Stalled
    }

    /// Workers were stopped, or go on: what passed until now is not theirs.
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

    /// A look a second; when it stood, and when it stood still.
    fn looks(
        p: &mut StallDetector,
        seen: impl Fn(u32) -> Option<TicketProgress>,
    ) -> Vec<(u32, StallStatus)> {
        let mut told = Vec::new();
        for n in 1..1000 {
            match p.look(SECOND * n, seen(n).into_iter(), 0) {
                StallStatus::Progressing => {}
                pace => told.push((n, pace)),
            }
            if told.len() == 2 {
                break;
            }
        }
        told
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
        // Rows that are given back and filled again, attempts that are set back.
        let back_and_forth = |n| Some(at(1, 3 + n % 2, 2 - n % 2));
        assert_eq!(looks(&mut progress(), back_and_forth), stood(3));
    }

    #[test]
    fn new_ends_attempts_tickets_and_deaths_are() {
        assert_eq!(looks(&mut progress(), |n| Some(at(1, n / 60, 0))), []);
        assert_eq!(looks(&mut progress(), |n| Some(at(1, 0, n / 60))), []);
        assert_eq!(looks(&mut progress(), |n| Some(at(n / 60, 0, 0))), []);
        let mut p = progress();
        let mut dead = |n: u64| p.look(SECOND * n as u32, [at(1, 0, 0)].into_iter(), n / 60);
        assert!((0..1000).all(|n| dead(n) == StallStatus::Progressing));
    }

    #[test]
    fn a_pool_that_goes_on_behind_the_first_word_is_left_alone() {
        // An end at 100 s, in the second time.
        let told = looks(&mut progress(), |n| Some(at(1, n / 100, 0)));
        assert_eq!(told[0], (64, StallStatus::Stalled));
        assert_eq!(told[1], (164, StallStatus::Stalled));
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
            let pace = p.look(SECOND * n, [at(1, 0, 0)].into_iter(), 0);
            assert_eq!(pace, StallStatus::Progressing);
        }
    }
}
