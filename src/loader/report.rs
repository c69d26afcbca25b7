//! What a loader can tell about itself.
//!
//! In the consumer. The pool's numbers under the names of the job's stages, and what
//! the consumer itself did.

use serde::Serialize;

use crate::device::DeviceTimes;
use crate::jobs::stages::StageTimes;
use crate::pool::report::PoolReport;
use crate::pool::sandbox::Sandboxed;
use crate::remote::fetch::FetchReport;

/// What a loader can tell about itself.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct LoaderReport {
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
    /// What workers were kept to
    /// ([`LoaderBuilder::sandbox`](crate::loader::LoaderBuilder::sandbox)).
    pub sandboxed: Sandboxed,
    /// Bytes of the ring: 0 with zero workers.
    pub ring_bytes: u64,
    /// Of the rows for a device, those whose crop had no room in its row: resized by
    /// workers, in `u8` ([`LoaderBuilder::device`](crate::loader::LoaderBuilder::device)).
    pub resized_by_workers: u64,
    /// Rows of JPEG and PNG files that end too early, where such are kept
    /// ([`Recipe::with_truncated`](crate::Recipe::with_truncated)). Rows of batches that were
    /// made and not taken count too.
    pub truncated_rows: u64,
    /// Rows committed, and where the workers' time went.
    pub times: StageTimes,
    /// First row committed, milliseconds after the loader began to start processes;
    /// none yet, or zero workers: none.
    pub first_row_ms: Option<f64>,
    /// Time that the consumer waited for batches, seconds.
    pub consumer_wait_s: f64,
    /// Time that the consumer took to mix batches, seconds.
    pub mix_s: f64,
    /// Time that the consumer took between a batch and its call for the next, seconds.
    pub consumer_s: f64,
    /// Where the device's time went; none without a device.
    pub device: Option<DeviceTimes>,
    /// What was fetched from an object store; none where the data set lies here.
    pub fetch: Option<FetchReport>,
}

impl LoaderReport {
    /// The pool's part.
    pub(super) fn of(pool: PoolReport) -> Self {
        Self {
            times: StageTimes::of(&pool),
            coordinator: pool.coordinator,
            workers: pool.workers,
            rows_by_worker: pool.rows_by_worker,
            worker_deaths: pool.worker_deaths,
            ordered_deaths: pool.ordered_deaths,
            events: pool.events,
            events_lost: pool.events_lost,
            stderr_lost: pool.stderr_lost,
            sandboxed: pool.sandboxed,
            ring_bytes: pool.ring_bytes,
            resized_by_workers: pool.counted,
            truncated_rows: pool.truncated,
            first_row_ms: pool.first_row_ms,
            consumer_wait_s: pool.consumer_wait_s,
            ..Self::default()
        }
    }
}
