//! Time that a worker spends by stage.
//!
//! Runs in workers, in the consumer with zero workers, and in the consumer for rows that a device
//! reports as failed. These are plain counters; the worker's loop copies them into shared memory.
//! The job names its stages.

use crate::sys::clock::monotonic_ns;

/// Number of stages: idle, and those of the job.
pub const STAGES: usize = 10;

/// A stage of the work on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStage(usize);

impl JobStage {
    /// No row to claim: the consumer is slower.
    pub(crate) const IDLE: Self = Self(0);

    /// The job's stage `n`, from 0 to 8. In a constant, the compiler checks the range.
    pub const fn of_job(n: usize) -> Self {
        assert!(n + 1 < STAGES, "a job has at most 9 stages");
        Self(n + 1)
    }

    /// Seconds spent in this stage.
    pub fn seconds(self, ns: &[u64; STAGES]) -> f64 {
        ns[self.0] as f64 * 1e-9
    }
}

/// Counters of one worker.
#[derive(Debug, Clone, Default)]
pub struct StageMeter {
    pub(crate) ns: [u64; STAGES],
    /// Bytes of input read.
    pub bytes: u64,
    pub(crate) rows: u64,
    /// Rows that the job counts separately.
    pub counted: u64,
    /// Rows of truncated files that were kept.
    pub truncated: u64,
    /// Images that were decoded: one for all crops of a sample.
    pub decoded: u64,
    mark: u64,
}

impl StageMeter {
    /// Starts the clock of the first stage.
    pub(crate) fn start(&mut self) {
        self.mark = monotonic_ns();
    }

    /// Ends a stage and starts the next.
    pub fn lap(&mut self, stage: JobStage) {
        let now = monotonic_ns();
        self.ns[stage.0] += now.saturating_sub(self.mark);
        self.mark = now;
    }
}
