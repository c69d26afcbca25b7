//! Whether the rows that were asked for come to an end at all.
//!
//! Runs in the coordinator. Each row in somebody's hands has a limit ([`super::overdue`]). A
//! worker whose decoder was taken over can do nothing without holding a row, or give rows
//! back for ever: no limit of a row is over then, and whoever waits for the batch would wait
//! without end. An honest pool ends a row, or an attempt at one, within the limit of a row and
//! what it takes to kill a worker.
//!
//! Everything but the numbers of tickets is written by workers. So only what was never seen
//! before counts: a ticket has no more such events than rows and attempts.

use std::collections::HashMap;
use std::time::Duration;

use crate::pool::coordinator::lanes::REAP_LIMIT;
use crate::pool::ring::coordinator_side::Standing;

/// For a worker to wake up, and for the coordinator to look.
const SLACK: Duration = Duration::from_secs(2);

/// The furthest that each slot's ticket has come.
#[derive(Debug)]
pub(crate) struct Progress {
    limit: Duration,
    best: HashMap<u32, Standing>,
    /// Rows that the dead have left, as counted when it last went on.
    left: u64,
    /// When it last went on, or nothing was to be done.
    since: Duration,
}

impl Progress {
    /// `row_limit`, looked at every `tick`.
    pub(crate) fn new(row_limit: Duration, tick: Duration) -> Self {
        Self {
            limit: row_limit + tick + REAP_LIMIT + SLACK,
            best: HashMap::new(),
            left: 0,
            since: Duration::ZERO,
        }
    }

    /// How long nothing may come to an end.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Takes a look: true when nothing has come to an end for too long. `left` counts the
    /// rows that were taken from dead workers.
    pub(crate) fn look(
        &mut self,
        now: Duration,
        standings: impl Iterator<Item = Standing>,
        left: u64,
    ) -> bool {
        let mut unfinished = false;
        let mut went_on = std::mem::replace(&mut self.left, left) != left;
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
        }
        now.saturating_sub(self.since) > self.limit
    }

    /// Workers were stopped, or go on: what passed until now is not theirs.
    pub(crate) fn forgive(&mut self, now: Duration) {
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(sequence: u32, ended: u32, attempts: u32) -> Standing {
        Standing {
            slot: 0,
            sequence,
            ended,
            attempts,
            unfinished: true,
        }
    }

    /// A look a second; after how many it was too long.
    fn looks(p: &mut Progress, seen: impl Fn(u32) -> Option<Standing>) -> Option<u32> {
        let begun = p.since;
        (1..1000).find(|n| p.look(begun + SECOND * *n, seen(*n).into_iter(), 0))
    }

    fn progress() -> Progress {
        Progress::new(SECOND * 60, SECOND)
    }

    #[test]
    fn what_was_seen_before_is_no_progress() {
        let over = Some(69);
        assert_eq!(looks(&mut progress(), |_| Some(at(1, 3, 0))), over);
        // Rows that are given back and filled again, attempts that are set back.
        let back_and_forth = |n| Some(at(1, 3 + n % 2, 2 - n % 2));
        assert_eq!(looks(&mut progress(), back_and_forth), over.map(|n| n + 2));
    }

    #[test]
    fn new_ends_attempts_tickets_and_deaths_are() {
        assert_eq!(looks(&mut progress(), |n| Some(at(1, n / 60, 0))), None);
        assert_eq!(looks(&mut progress(), |n| Some(at(1, 0, n / 60))), None);
        assert_eq!(looks(&mut progress(), |n| Some(at(n / 60, 0, 0))), None);
        let mut p = progress();
        let mut dead = |n: u64| p.look(SECOND * n as u32, [at(1, 0, 0)].into_iter(), n / 60);
        assert!(!(0..1000).any(&mut dead));
    }

    #[test]
    fn a_pool_with_nothing_to_do_or_that_was_stopped_has_time() {
        let done = Standing {
            unfinished: false,
            ..at(1, 8, 0)
        };
        assert_eq!(looks(&mut progress(), |_| Some(done)), None);
        assert_eq!(looks(&mut progress(), |_| None), None);
        let mut p = progress();
        for n in 0..1000 {
            if n % 60 == 0 {
                p.forgive(SECOND * n);
            }
            assert!(!p.look(SECOND * n, [at(1, 0, 0)].into_iter(), 0));
        }
    }
}
