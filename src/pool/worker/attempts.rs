//! Tries the samples of one row in order: its own, then its substitutes.
//!
//! Runs in workers, in the consumer with zero workers, and in the consumer for rows that a device
//! reports as failed. Only this file defines the order of attempts. The caller stores the current
//! attempt.

use crate::error::SampleFault;
use crate::pool::job::{Job, RowParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;

/// The attempts that remain for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptRange {
    /// First attempt. Read from shared memory, so it may be any number.
    pub(crate) first: u32,
    /// Number of substitutes for the row's own sample; 0 = none.
    pub(crate) tries: u32,
}

/// Fills a row with the first sample that succeeds. Returns its attempt, or `None` if all fail.
/// After each failure it calls `failed` with the attempt, its fault and the next attempt, if any.
pub(crate) fn fill_or_substitute(
    job: &mut dyn Job,
    ticket: &Ticket,
    row: u32,
    attempts: AttemptRange,
    out: &mut RowParts<'_>,
    meter: &mut StageMeter,
    mut failed: impl FnMut(u32, SampleFault, Option<u32>),
) -> Option<u32> {
    let last = attempts.tries;
    for attempt in attempts.first.min(last)..=last {
        match job.fill_parts(ticket, row, attempt, out, meter) {
            Ok(()) => return Some(attempt),
            Err(fault) => failed(attempt, fault, (attempt < last).then_some(attempt + 1)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FaultKind;
    use crate::pool::ring::ticket::BatchKey;

    /// Fails at each attempt below a number, and records the attempts.
    struct FailsBelow(u32, Vec<u32>);

    impl Job for FailsBelow {
        fn row_range(&mut self, _: &Ticket, _: u32) -> std::ops::Range<usize> {
            unreachable!("not called")
        }

        fn fill(
            &mut self,
            _: &Ticket,
            _: u32,
            attempt: u32,
            out: &mut [u8],
            _: &mut StageMeter,
        ) -> Result<(), SampleFault> {
            self.1.push(attempt);
            out.fill(attempt as u8);
            if attempt < self.0 {
                return Err(SampleFault::new(FaultKind::Corrupt, attempt.to_string()));
            }
            Ok(())
        }

        fn memory_limit(&self) -> u64 {
            unreachable!("not called")
        }

        fn describe(&self, _: &Ticket, _: u32, _: u32) -> String {
            unreachable!("not called")
        }
    }

    #[test]
    fn every_attempt_is_made_once_in_order_and_none_behind_the_last() {
        let ticket = Ticket {
            sequence: 1,
            key: BatchKey([0, 0]),
            rows: 1,
        };
        for tries in [0, 1, 8] {
            for bad in 0..tries + 2 {
                for first in [0, 1, tries, 255] {
                    let mut job = FailsBelow(bad, Vec::new());
                    let mut out = [0; 1];
                    let mut notes = Vec::new();
                    let attempts = AttemptRange { first, tries };
                    let filled = fill_or_substitute(
                        &mut job,
                        &ticket,
                        0,
                        attempts,
                        &mut RowParts::whole(&mut out),
                        &mut StageMeter::default(),
                        |attempt, fault, next| notes.push((attempt, fault.reason, next)),
                    );
                    let from = first.min(tries);
                    let until = bad.max(from).min(tries);
                    assert_eq!(job.1, (from..=until).collect::<Vec<_>>());
                    let expected = (bad.max(from) <= tries).then_some(until);
                    assert_eq!(filled, expected, "{bad} bad of {tries} from {first}");
                    let failed = (from..bad.min(tries + 1)).map(|a| {
                        let next = (a < tries).then_some(a + 1);
                        (a, a.to_string(), next)
                    });
                    assert_eq!(notes, failed.collect::<Vec<_>>());
                    if let Some(attempt) = filled {
                        assert_eq!(out[0], attempt as u8);
                    }
                }
            }
        }
    }
}
