//! Counters and times of a loader.
//!
//! In the consumer. The pool's numbers under the names of the job's stages, and the consumer's own
//! times.

use std::ops::Deref;

use serde::Serialize;

use crate::device::DeviceTimes;
use crate::jobs::stages::StageTimes;
use crate::pool::pool_report::ProcessReport;
use crate::remote::fetch::FetchReport;

/// Counters and times of a loader.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct LoaderReport {
    /// The processes of the pool. These fields are also readable as fields of this report.
    #[serde(flatten)]
    pub processes: ProcessReport,
    /// Rows whose crop did not fit, so that a worker resized it in `u8`
    /// ([`LoaderBuilder::device`](crate::loader::LoaderBuilder::device)). Only with a device.
    pub resized_by_workers: u64,
    /// Rows of truncated JPEG and PNG files, if the recipe keeps them
    /// ([`Recipe::with_truncated`](crate::Recipe::with_truncated)). Rows of batches that the
    /// consumer never received count too.
    pub truncated_rows: u64,
    /// Images that workers decoded, and those of failed attempts. One for all crops of a sample.
    pub decoded_images: u64,
    /// Rows committed, and the workers' time by stage.
    pub times: StageTimes,
    /// When the first row was committed, in milliseconds after the loader began to start processes.
    /// None before that, or without workers.
    pub first_row_ms: Option<f64>,
    /// Seconds for which the consumer waited for batches.
    pub consumer_wait_s: f64,
    /// Seconds for which the consumer mixed batches.
    pub mix_s: f64,
    /// Seconds between returning a batch and the call for the next.
    pub consumer_s: f64,
    /// The device's time by kind of work. None without a device.
    pub device: Option<DeviceTimes>,
    /// Downloads from an object store. None for a local data set.
    pub fetch: Option<FetchReport>,
}

impl Deref for LoaderReport {
    type Target = ProcessReport;

    fn deref(&self) -> &ProcessReport {
        &self.processes
    }
}
