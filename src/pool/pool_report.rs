//! Counters of a pool, and the time that workers spent by stage.
//!
//! Runs in the consumer. Stages are numbers here; the job names them.

use serde::{Deserialize, Serialize};

use crate::pool::sandbox::SandboxStatus;
use crate::pool::worker::meter::STAGES;

/// The processes of a pool, and their failures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessReport {
    /// Process id of the coordinator; `None` with zero workers.
    pub coordinator: Option<i32>,
    /// Process ids of the workers.
    pub workers: Vec<i32>,
    /// Committed rows by lane, over all processes that used the lane. With zero workers there is
    /// one entry, for this process.
    pub rows_by_worker: Vec<u64>,
    /// Workers that ended unexpectedly.
    pub worker_deaths: u64,
    /// Part of these: workers killed by `--kill-workers-every`.
    pub ordered_deaths: u64,
    /// Crashes, kills and timeouts since the last report, oldest first.
    pub events: Vec<String>,
    /// Events that were dropped because no report was requested in time.
    pub events_lost: u64,
    /// Lines of coordinator and workers that were dropped because stderr was not read.
    pub stderr_lost: u64,
    /// The parts of the sandbox that are in effect; none with zero workers.
    pub sandboxed: SandboxStatus,
    /// Size of the ring in bytes; 0 with zero workers.
    pub ring_bytes: u64,
}

/// Counters of a pool.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PoolReport {
    pub processes: ProcessReport,
    /// Committed rows.
    pub rows: u64,
    /// Bytes of input read.
    pub input_bytes: u64,
    /// Rows that the job counts separately.
    pub counted: u64,
    /// Rows of truncated files that were kept.
    pub truncated: u64,
    /// Images that were decoded.
    pub decoded: u64,
    /// Nanoseconds by stage, summed over workers.
    pub stage_ns: [u64; STAGES],
    /// Milliseconds from the launch to the first committed row; `None` before that, and with zero
    /// workers.
    pub first_row_ms: Option<f64>,
    /// Seconds that the consumer waited for batches.
    pub consumer_wait_s: f64,
}
