//! What happened in a run, and where its time went.

use serde::Serialize;

use crate::coordinator::messages::{PoolTimes, Report};
use crate::device::DeviceTimes;

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
    /// Bytes of the ring: 0 with zero workers.
    pub ring_bytes: u64,
    /// Of the rows for a device, those whose crop had no room in its row: resized by
    /// workers, in `u8` ([`LoaderBuilder::device`](super::LoaderBuilder::device)).
    pub resized_by_workers: u64,
    /// Rows committed, and where the workers' time went.
    pub times: StageTimes,
    /// First row committed, milliseconds after the build began; none yet, or
    /// zero workers: none.
    pub first_row_ms: Option<f64>,
    /// Time that the consumer waited for batches, seconds.
    pub consumer_wait_s: f64,
    /// Time that the consumer took to mix batches, seconds.
    pub mix_s: f64,
    /// Time that the consumer took between a batch and its call for the next, seconds.
    pub consumer_s: f64,
    /// Where the device's time went; none without a device.
    pub device: Option<DeviceTimes>,
}

/// Seconds by stage, summed over workers.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[non_exhaustive]
pub struct StageTimes {
    pub rows: u64,
    /// Encoded bytes read.
    pub input_bytes: u64,
    /// Waiting for a ticket: the consumer is slower than the workers.
    pub idle_s: f64,
    /// Open, map and header.
    pub open_s: f64,
    pub decode_s: f64,
    pub resample_s: f64,
    /// Flip, normalise, cast, layout.
    pub emit_s: f64,
}

impl StageTimes {
    pub(crate) fn from_pool(t: &PoolTimes) -> Self {
        let s = |stage: usize| t.stage_ns[stage] as f64 * 1e-9;
        Self {
            rows: t.rows,
            input_bytes: t.input_bytes,
            idle_s: s(0),
            open_s: s(1),
            decode_s: s(2),
            resample_s: s(3),
            emit_s: s(4),
        }
    }

    /// Time spent on samples.
    pub fn busy_s(&self) -> f64 {
        self.open_s + self.decode_s + self.resample_s + self.emit_s
    }
}

impl LoaderReport {
    pub(crate) fn add_coordinator(&mut self, r: Report) {
        self.workers = r.workers;
        self.worker_deaths = r.deaths;
        self.ordered_deaths = r.ordered_deaths;
        self.events = r.events;
        self.events_lost = r.events_lost;
    }
}
