//! Counts of batches and rows, up to `--limit`.

use std::time::Instant;

use featherload::{Batch, RowStatus};

use super::failures::{FailedSample, FailureLog};
use super::pace::RunPace;

/// Counts of a run.
pub struct RunCounts {
    limit: u64,
    pub batches: u64,
    /// Rows that hold samples, repeated ones included.
    pub samples: u64,
    /// Padding rows, which fill a rank up.
    pub repeated: u64,
    pub failures: FailureLog,
    /// Counts of whole batches, including a last batch that the limit cuts: it took its full time.
    pub pace: RunPace,
}

impl RunCounts {
    pub fn new(limit: Option<u64>, failures: FailureLog) -> Self {
        Self {
            limit: limit.unwrap_or(u64::MAX),
            batches: 0,
            samples: 0,
            repeated: 0,
            failures,
            pace: RunPace::default(),
        }
    }

    /// Counts a batch. Returns the number of its rows within the limit: all of them, except in the
    /// last batch.
    pub fn add(&mut self, batch: &Batch, arrived: Instant) -> usize {
        let status = batch.status();
        let left = self.limit - self.samples;
        let rows = rows_within(status, left);
        self.batches += 1;
        self.samples += holding_samples(&status[..rows]);
        let repeated = batch.repeated().iter().take(rows).filter(|r| **r);
        self.repeated += repeated.count() as u64;
        let faults = batch.faults().iter().filter(|fault| fault.row < rows);
        faults.for_each(|fault| self.failures.add(FailedSample::of(fault)));
        let good = status.iter().filter(|s| !s.is_masked()).count() as u64;
        self.pace.add(batch.epoch(), good, arrived);
        rows
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.samples >= self.limit
    }
}

fn holding_samples(status: &[RowStatus]) -> u64 {
    let padding = status.iter().filter(|s| **s == RowStatus::Padding);
    (status.len() - padding.count()) as u64
}

/// The first rows that hold at most `most` samples.
fn rows_within(status: &[RowStatus], most: u64) -> usize {
    let mut seen = 0;
    let past = status.iter().position(|s| {
        seen += u64::from(*s != RowStatus::Padding);
        seen > most
    });
    past.unwrap_or(status.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_samples_and_no_padding() {
        use RowStatus::{Failed, Ok, Padding, Repeated};
        let rows = [Ok, Failed, Repeated, Ok, Padding, Padding];
        for (most, within) in [(0, 0), (1, 1), (3, 3), (4, 6), (9, 6)] {
            assert_eq!(rows_within(&rows, most), within, "{most}");
        }
        assert_eq!(holding_samples(&rows), 4);
    }
}
