//! What becomes of a row whose worker died.
//!
//! Pure; runs in the coordinator. A row that keeps killing its workers must not
//! kill for ever, a row that was merely there when somebody killed must not
//! suffer for it.

use std::collections::HashMap;

use nix::sys::signal::Signal;

use crate::error::{FaultKind, SampleFault};
use crate::ring::coordinator_side::Verdict;

/// Deaths of the row's own making before it is quarantined.
const CRASH_LIMIT: u32 = 2;
/// Kills from outside before it is.
const OUTSIDE_LIMIT: u32 = 5;
/// Rows remembered; far more than can be in flight.
const MEMORY: usize = 4096;

/// Why a worker ended, as far as its row is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The input map broke: the file shrank or could not be read.
    BrokenMap,
    /// A signal of its own making, or an exit nobody asked for.
    Crash { signal: Option<Signal>, code: i32 },
    /// We killed it because the row took too long.
    TimedOut,
    /// SIGKILL, SIGTERM and the like from somebody else.
    Outside(Signal),
    /// Killed by order, as a test.
    Ordered,
}

impl Cause {
    /// Reads a signal that ended a worker.
    pub(super) fn of_signal(signal: Signal) -> Self {
        match signal {
            Signal::SIGSEGV
            | Signal::SIGBUS
            | Signal::SIGILL
            | Signal::SIGFPE
            | Signal::SIGABRT
            | Signal::SIGSYS => Self::Crash {
                signal: Some(signal),
                code: 0,
            },
            other => Self::Outside(other),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::BrokenMap => "its input file shrank or became unreadable".into(),
            Self::Crash {
                signal: Some(s), ..
            } => format!("crashed with {s}"),
            Self::Crash { code, .. } => format!("ended with status {code}"),
            Self::TimedOut => "was killed: its row took too long".into(),
            Self::Outside(s) => format!("was ended from outside by {s}"),
            Self::Ordered => "was killed by order".into(),
        }
    }
}

/// Strikes against rows, by ticket sequence and row.
#[derive(Debug, Default)]
pub(super) struct Strikes {
    rows: HashMap<(u32, u32), (u32, u32)>,
}

impl Strikes {
    /// Counts a death and says what becomes of the row, with the fault to
    /// record when it fails.
    pub(super) fn judge(
        &mut self,
        sequence: u32,
        row: u32,
        cause: Cause,
        row_limit_ms: u64,
    ) -> (Verdict, Option<SampleFault>) {
        if self.rows.len() >= MEMORY {
            // Old tickets are long delivered; sequence numbers only rise.
            self.rows
                .retain(|(s, _), _| s.saturating_add(1024) > sequence);
        }
        let fail = |kind, reason: String| (Verdict::Fail, Some(SampleFault::new(kind, reason)));
        let (crashes, kills) = self.rows.entry((sequence, row)).or_default();
        match cause {
            Cause::Ordered => (Verdict::Return, None),
            Cause::BrokenMap => fail(
                FaultKind::Shrunk,
                "file shrank or unreadable while mapped".into(),
            ),
            Cause::TimedOut => fail(
                FaultKind::TimedOut,
                format!("took longer than {row_limit_ms} ms (option row_limit)"),
            ),
            Cause::Crash { .. } => {
                *crashes += 1;
                if *crashes < CRASH_LIMIT {
                    return (Verdict::Return, None);
                }
                fail(
                    FaultKind::Quarantined,
                    format!(
                        "quarantined: {crashes} workers died of it, the last {}",
                        cause.text()
                    ),
                )
            }
            Cause::Outside(_) => {
                *kills += 1;
                if *kills < OUTSIDE_LIMIT {
                    return (Verdict::Return, None);
                }
                fail(
                    FaultKind::Quarantined,
                    format!(
                        "quarantined: {kills} workers were killed while at it, perhaps out of memory"
                    ),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash() -> Cause {
        Cause::of_signal(Signal::SIGSEGV)
    }

    #[test]
    fn two_crashes_quarantine_a_row_and_only_that_row() {
        let mut s = Strikes::default();
        assert_eq!(s.judge(1, 0, crash(), 1).0, Verdict::Return);
        assert_eq!(s.judge(1, 1, crash(), 1).0, Verdict::Return);
        assert_eq!(s.judge(2, 0, crash(), 1).0, Verdict::Return);
        let (v, fault) = s.judge(1, 0, crash(), 1);
        assert_eq!(v, Verdict::Fail);
        assert_eq!(fault.unwrap().kind, FaultKind::Quarantined);
    }

    #[test]
    fn outside_kills_count_apart_and_orders_never() {
        let mut s = Strikes::default();
        for _ in 0..100 {
            assert_eq!(s.judge(1, 0, Cause::Ordered, 1).0, Verdict::Return);
        }
        for _ in 0..4 {
            let c = Cause::of_signal(Signal::SIGKILL);
            assert_eq!(s.judge(1, 0, c, 1).0, Verdict::Return);
        }
        assert_eq!(s.judge(1, 0, crash(), 1).0, Verdict::Return);
        let (v, fault) = s.judge(1, 0, Cause::of_signal(Signal::SIGKILL), 1);
        assert_eq!(v, Verdict::Fail);
        assert!(fault.unwrap().reason.contains("out of memory"));
    }

    #[test]
    fn a_broken_map_and_a_time_limit_fail_at_once() {
        let mut s = Strikes::default();
        assert_eq!(s.judge(1, 0, Cause::BrokenMap, 1).0, Verdict::Fail);
        let (v, fault) = s.judge(1, 1, Cause::TimedOut, 60_000);
        assert_eq!(v, Verdict::Fail);
        assert!(fault.unwrap().reason.contains("60000 ms"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut s = Strikes::default();
        for sequence in 0..20_000 {
            s.judge(sequence, 0, crash(), 1);
        }
        assert!(s.rows.len() <= MEMORY + 1);
    }
}
