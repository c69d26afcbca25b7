//! What happened in a pool, and where its workers' time went.
//!
//! In the consumer. Numbers by stage: what a stage is called is the job's to say.

use serde::{Deserialize, Serialize};

use crate::pool::sandbox::SandboxStatus;
use crate::pool::worker::meter::STAGES;

/// The processes of a pool, and what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessReport {
    /// Process id of the coordinator; none with zero workers.
    pub coordinator: Option<i32>,
    /// Process ids of the workers.
    pub workers: Vec<i32>,
    /// Rows committed in each worker's place, by all processes that had it; one
    /// entry, of this process, with zero workers.
    pub rows_by_worker: Vec<u64>,
    /// Workers that ended without being told to.
    pub worker_deaths: u64,
    /// Of these, killed by order.
    pub ordered_deaths: u64,
    /// Crashes, kills and time-outs since the last report, oldest first.
    pub events: Vec<String>,
    /// Events that were dropped for want of a report.
    pub events_lost: u64,
    /// Lines of coordinator and workers that were dropped, because nobody read stderr.
    pub stderr_lost: u64,
    /// What workers are kept to, by the option `sandbox`; nothing with zero workers.
    pub sandboxed: SandboxStatus,
    /// Bytes of the ring: 0 with zero workers.
    pub ring_bytes: u64,
}

/// What a pool reports.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PoolReport {
    pub processes: ProcessReport,
    /// Rows committed.
    pub rows: u64,
    /// Bytes of input read.
    pub input_bytes: u64,
    /// What the job counts beside.
    pub counted: u64,
    /// Rows of files that end too early, where such are kept.
    pub truncated: u64,
    /// Nanoseconds by stage, summed over workers.
    pub stage_ns: [u64; STAGES],
    /// First row committed, milliseconds after the launch began; none yet, or
    /// zero workers: none.
    pub first_row_ms: Option<f64>,
    /// Time that the consumer waited for batches, seconds.
    pub consumer_wait_s: f64,
}
