//! Decides what to do with a row whose worker died.
//!
//! Pure; runs in the coordinator. A row that crashes its workers must fail in the end. A row must
//! not fail because a worker was killed from outside while filling it. Deaths are counted for each
//! attempt at a row.

use std::collections::HashMap;

use nix::sys::signal::Signal;

use crate::error::{FaultKind, SampleFault};
use crate::pool::ring::coordinator_side::{ClaimedRow, RowVerdict};
use crate::sys::sandbox::calls;

/// Crashes of workers before the row's attempt fails.
const CRASH_LIMIT: u32 = 2;
/// Kills from outside before the row's attempt fails.
const OUTSIDE_LIMIT: u32 = 5;
/// Most rows to remember: far more than can be in flight.
const MEMORY: usize = 4096;
/// Tickets that can be in flight together: far more than a ring has slots.
const NEAR: u32 = 1024;

/// Why a worker ended, with respect to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeathCause {
    /// The input map broke: the file shrank or could not be read.
    BrokenMap,
    /// A signal that it caused itself, or an unexpected exit.
    Crash { signal: Option<Signal>, code: i32 },
    /// It made this forbidden system call.
    Refused(u32),
    /// The coordinator killed it because the row took too long.
    TimedOut,
    /// SIGKILL, SIGTERM and the like from outside.
    Outside(Signal),
    /// Stopped from outside by this signal, then killed by the coordinator.
    Stopped(Signal),
    /// Killed by the coordinator, as a test or because it was idle.
    Ordered,
}

impl DeathCause {
    /// Interprets the signal that ended a worker.
    pub(crate) fn of_signal(signal: Signal) -> Self {
        match signal {
            Signal::SIGSEGV
            | Signal::SIGBUS
            | Signal::SIGILL
            | Signal::SIGFPE
            | Signal::SIGABRT
            | Signal::SIGSYS
            // It wrote past the limit of a file's length.
            | Signal::SIGXFSZ => Self::Crash {
                signal: Some(signal),
                code: 0,
            },
            other => Self::Outside(other),
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::BrokenMap => "its input file shrank or became unreadable".into(),
            Self::Crash {
                signal: Some(s), ..
            } => format!("crashed with {s}"),
            Self::Crash { code, .. } => format!("ended with status {code}"),
            Self::Refused(call) => {
                let name = calls::name(call.into()).map(|name| format!(" ({name})"));
                format!(
                    "made the forbidden system call {call}{}; if the program's \
                     allocator makes it, as mimalloc does, set the option sandbox to off",
                    name.unwrap_or_default()
                )
            }
            Self::TimedOut => "was killed because its row took too long".into(),
            Self::Outside(s) => format!("was ended from outside by {s}"),
            Self::Stopped(s) => format!("was stopped from outside ({s}) and killed"),
            Self::Ordered => "was killed on purpose".into(),
        }
    }
}

/// Counts of deaths by ticket sequence, row and attempt.
#[derive(Debug)]
pub(crate) struct RowStrikes {
    /// Crashes, and kills from outside.
    rows: HashMap<(u32, u32, u32), (u32, u32)>,
    row_limit_ms: u64,
    /// Number of substitutes for a row's own sample.
    tries: u32,
}

impl RowStrikes {
    pub(crate) fn new(row_limit_ms: u64, tries: u32) -> Self {
        Self {
            rows: HashMap::new(),
            row_limit_ms,
            tries,
        }
    }

    /// Counts a death. Returns the verdict for the row, and the fault of the attempt if that
    /// failed.
    pub(crate) fn count_death(
        &mut self,
        claim: ClaimedRow,
        cause: DeathCause,
    ) -> (RowVerdict, Option<SampleFault>) {
        let ClaimedRow {
            sequence,
            row,
            attempt,
            ..
        } = claim;
        self.forget_old_rows(sequence);
        let verdict = if attempt < self.tries {
            RowVerdict::NextAttempt
        } else {
            RowVerdict::Fail
        };
        let fail = |kind, reason: String| (verdict, Some(SampleFault::new(kind, reason)));
        let row_limit_ms = self.row_limit_ms;
        let key = (sequence, row, attempt);
        let mut count = |is_crash: bool| {
            let (crashes, kills) = self.rows.entry(key).or_default();
            let (count, most) = match is_crash {
                true => (crashes, CRASH_LIMIT),
                false => (kills, OUTSIDE_LIMIT),
            };
            *count += 1;
            let count = *count;
            // The attempt has failed and is not tried again.
            if count >= most {
                self.rows.remove(&key);
            }
            count
        };
        match cause {
            DeathCause::Ordered => (RowVerdict::Retry, None),
            DeathCause::BrokenMap => fail(
                FaultKind::Shrunk,
                "file shrank or unreadable while mapped".into(),
            ),
            DeathCause::TimedOut => fail(
                FaultKind::TimedOut,
                format!("took longer than {row_limit_ms} ms (option row_limit)"),
            ),
            DeathCause::Crash { .. } | DeathCause::Refused(_) => {
                let crashes = count(true);
                if crashes < CRASH_LIMIT {
                    return (RowVerdict::Retry, None);
                }
                fail(
                    FaultKind::Quarantined,
                    format!(
                        "quarantined: {crashes} workers died of it, the last {}",
                        cause.text()
                    ),
                )
            }
            DeathCause::Outside(_) | DeathCause::Stopped(_) => {
                let kills = count(false);
                if kills < OUTSIDE_LIMIT {
                    return (RowVerdict::Retry, None);
                }
                let reason = match cause {
                    DeathCause::Stopped(_) => format!(
                        "quarantined: {kills} workers were stopped or killed from outside while \
                         working on it, the last {}",
                        cause.text()
                    ),
                    _ => format!(
                        "quarantined: {kills} workers were killed while working on it, perhaps for \
                         lack of memory"
                    ),
                };
                fail(FaultKind::Quarantined, reason)
            }
        }
    }

    /// Forgets rows of old tickets. Sequences wrap around after 2^32. If that is not enough, the
    /// sequences were overwritten, and all rows are forgotten. Then a row may kill a few more
    /// workers.
    fn forget_old_rows(&mut self, sequence: u32) {
        if self.rows.len() < MEMORY {
            return;
        }
        let is_near = |s: u32| s.wrapping_sub(sequence).min(sequence.wrapping_sub(s)) < NEAR;
        self.rows.retain(|(s, _, _), _| is_near(*s));
        if self.rows.len() >= MEMORY {
            self.rows.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash() -> DeathCause {
        DeathCause::of_signal(Signal::SIGSEGV)
    }

    fn claim(sequence: u32, row: u32, attempt: u32) -> ClaimedRow {
        ClaimedRow {
            slot: 0,
            row,
            owner: 1,
            sequence,
            attempt,
        }
    }

    #[test]
    fn two_crashes_quarantine_a_row_and_only_that_row() {
        let mut s = RowStrikes::new(1, 0);
        assert_eq!(s.count_death(claim(1, 0, 0), crash()).0, RowVerdict::Retry);
        assert_eq!(s.count_death(claim(1, 1, 0), crash()).0, RowVerdict::Retry);
        assert_eq!(s.count_death(claim(2, 0, 0), crash()).0, RowVerdict::Retry);
        let (v, fault) = s.count_death(claim(1, 0, 0), crash());
        assert_eq!(v, RowVerdict::Fail);
        assert_eq!(fault.unwrap().kind, FaultKind::Quarantined);
    }

    #[test]
    fn outside_kills_count_apart_and_orders_never() {
        let mut s = RowStrikes::new(1, 0);
        let row = claim(1, 0, 0);
        for _ in 0..100 {
            assert_eq!(s.count_death(row, DeathCause::Ordered).0, RowVerdict::Retry);
        }
        for _ in 0..4 {
            let c = DeathCause::of_signal(Signal::SIGKILL);
            assert_eq!(s.count_death(row, c).0, RowVerdict::Retry);
        }
        assert_eq!(s.count_death(row, crash()).0, RowVerdict::Retry);
        let (v, fault) = s.count_death(row, DeathCause::of_signal(Signal::SIGKILL));
        assert_eq!(v, RowVerdict::Fail);
        assert!(fault.unwrap().reason.contains("lack of memory"));
    }

    #[test]
    fn stops_count_as_kills_from_outside() {
        let mut s = RowStrikes::new(1, 0);
        let stop = DeathCause::Stopped(Signal::SIGSTOP);
        for i in 0..4 {
            let kill = DeathCause::of_signal(Signal::SIGKILL);
            let cause = if i % 2 == 0 { stop } else { kill };
            assert_eq!(
                s.count_death(claim(1, 0, 0), cause),
                (RowVerdict::Retry, None)
            );
        }
        let (v, fault) = s.count_death(claim(1, 0, 0), stop);
        assert_eq!(v, RowVerdict::Fail);
        let reason = fault.unwrap().reason;
        assert!(reason.contains("5 workers") && reason.contains("(SIGSTOP)"));
    }

    #[test]
    fn a_broken_map_and_a_time_limit_fail_at_once() {
        let mut s = RowStrikes::new(60_000, 0);
        assert_eq!(
            s.count_death(claim(1, 0, 0), DeathCause::BrokenMap).0,
            RowVerdict::Fail
        );
        let (v, fault) = s.count_death(claim(1, 1, 0), DeathCause::TimedOut);
        assert_eq!(v, RowVerdict::Fail);
        assert!(fault.unwrap().reason.contains("60000 ms"));
    }

    #[test]
    fn attempts_have_strikes_of_their_own_and_the_last_one_fails() {
        let mut s = RowStrikes::new(1, 2);
        for (attempt, end) in [
            (0, RowVerdict::NextAttempt),
            (1, RowVerdict::NextAttempt),
            (2, RowVerdict::Fail),
            // Overwritten word: there is no such attempt.
            (255, RowVerdict::Fail),
        ] {
            let row = claim(1, 0, attempt);
            assert_eq!(
                s.count_death(row, DeathCause::Ordered),
                (RowVerdict::Retry, None)
            );
            assert_eq!(s.count_death(row, crash()), (RowVerdict::Retry, None));
            let (v, fault) = s.count_death(row, crash());
            assert_eq!(v, end, "attempt {attempt}");
            assert_eq!(fault.unwrap().kind, FaultKind::Quarantined);
            assert_eq!(
                s.count_death(claim(2, 0, attempt), DeathCause::BrokenMap).0,
                end
            );
            assert_eq!(
                s.count_death(claim(3, 0, attempt), DeathCause::TimedOut).0,
                end
            );
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut s = RowStrikes::new(1, 0);
        for sequence in 0..20_000 {
            s.count_death(claim(sequence, 0, 0), crash());
        }
        assert!(s.rows.len() <= MEMORY + 1);
        assert!(s.rows.contains_key(&(19_999, 0, 0)));
    }

    /// For any sequence: descending, of rows that do not exist, and around the wrap.
    #[test]
    fn memory_is_bounded_for_numbers_of_no_ticket() {
        let judged = |keys: &mut dyn Iterator<Item = (u32, u32)>| {
            let mut s = RowStrikes::new(1, 0);
            for (sequence, row) in keys {
                s.count_death(claim(sequence, row, 0), crash());
                assert!(s.rows.len() <= MEMORY, "{}", s.rows.len());
            }
            s
        };
        judged(&mut (0..20_000).map(|n| (u32::MAX - n, 0)));
        judged(&mut (0..20_000).map(|n| (7, n)));
        judged(&mut (0..20_000).map(|n| (n % 2 * (u32::MAX / 2), n)));
        let around = judged(&mut (0..20_000u32).map(|n| (n.wrapping_sub(19_990), 0)));
        let kept = |sequence| around.rows.contains_key(&(sequence, 0, 0));
        assert!(kept(9) && kept(0) && kept(u32::MAX), "near ones are kept");
    }

    #[test]
    fn a_row_that_is_given_up_is_forgotten() {
        let mut s = RowStrikes::new(1, 0);
        s.count_death(claim(1, 0, 0), DeathCause::Ordered);
        s.count_death(claim(2, 0, 0), DeathCause::BrokenMap);
        s.count_death(claim(3, 0, 0), DeathCause::TimedOut);
        assert!(s.rows.is_empty(), "{:?}", s.rows);
        for _ in 0..CRASH_LIMIT {
            s.count_death(claim(4, 0, 0), crash());
        }
        for _ in 0..OUTSIDE_LIMIT {
            s.count_death(claim(5, 0, 0), DeathCause::of_signal(Signal::SIGKILL));
        }
        assert!(s.rows.is_empty(), "{:?}", s.rows);
    }
}
