//! Where a worker's time goes.
//!
//! Runs in workers, and in the consumer with zero workers or for what a device flags. Plain
//! counters, no shared memory: the worker's loop copies them into its record. What a stage is
//! called is its job's to say.

use crate::sys::clock::monotonic_ns;

/// Stages whose time is counted: waiting, and those of the job.
pub const STAGES: usize = 10;

/// A part of the work on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStage(usize);

impl JobStage {
    /// Nothing to claim: the consumer is slower.
    pub(crate) const IDLE: Self = Self(0);

    /// The job's stage `n`, counted from 0; at most 9 of them, which the compiler
    /// checks where it is a constant.
    pub const fn of_job(n: usize) -> Self {
        assert!(n + 1 < STAGES, "a job has at most 9 stages");
        Self(n + 1)
    }

    /// Seconds that were spent in it.
    pub fn seconds(self, ns: &[u64; STAGES]) -> f64 {
        ns[self.0] as f64 * 1e-9
    }
}

/// Counters of one worker.
#[derive(Debug, Clone, Default)]
pub struct StageMeter {
    pub(crate) ns: [u64; STAGES],
    /// Bytes of input that rows were made from.
    pub bytes: u64,
    pub(crate) rows: u64,
    /// What the job counts beside: rows of a kind of its own.
    pub counted: u64,
    /// Rows of files that end too early, where such are kept.
    pub truncated: u64,
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
