//! What a loader can tell about itself.
//!
//! In the consumer. The pool's numbers under the names of the job's stages, and what
//! the consumer itself did.

use std::ops::Deref;

use serde::Serialize;

use crate::device::DeviceTimes;
use crate::jobs::stages::StageTimes;
use crate::pool::pool_report::ProcessReport;
use crate::remote::fetch::FetchReport;

/// What a loader can tell about itself.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct LoaderReport {
    /// The processes of the pool. Its fields are read as this report's own.
    #[serde(flatten)]
    pub processes: ProcessReport,
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

impl Deref for LoaderReport {
    type Target = ProcessReport;

    fn deref(&self) -> &ProcessReport {
        &self.processes
    }
}
