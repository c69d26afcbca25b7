//! The result of a run of `bench`, as plain data. `text` prints it.

use std::collections::BTreeMap;

use featherload::index::ScanReport;
use featherload::loader::DecodeChoice;
use featherload::measure::TreeUsage;
use featherload::{Error, LoaderReport, NumericProfile};
use serde::Serialize;

use super::device::DeviceUse;
use super::failures::FailedSample;
use super::limit::{CpuCount, RateLimit, StageShares};
use super::pace::RateSpread;
use super::subject::BenchSubject;

/// Everything that `bench` reports. Field names are part of the `--json` format.
#[derive(Serialize)]
pub struct BenchReport {
    /// Images with pixels per second, after the first batch. None if the run is too short to
    /// measure; then `too_short` explains it.
    pub images_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short: Option<String>,
    /// How much epochs differ, or parts of a one-epoch run. None for a short run.
    pub spread: Option<RateSpread>,
    /// From the start of the process to the arrival of the first batch.
    pub first_batch_ms: f64,
    /// From the start of the process to running workers.
    pub startup_ms: f64,
    pub cpu_s_per_1k_images: f64,
    pub pss_total_mib: f64,
    /// The whole ring and the other memory of the processes, without the page cache of input.
    pub memory_mib: f64,
    /// The part of `memory_mib` outside the ring.
    pub processes_mib: f64,
    pub gpu_mib: f64,
    /// Which processor decodes JPEGs of a run on a device, and why.
    pub jpegs: Option<DecodeChoice>,
    /// The device's memory. Its times are in `loader.device`.
    pub device: Option<DeviceUse>,
    /// Rows that hold samples, including repeated ones, up to `--limit`.
    pub samples: u64,
    /// Rows whose own sample failed.
    pub failed: u64,
    /// Number of different samples in these rows: a sample fails again in each epoch.
    pub failed_samples: u64,
    /// Rows of `failed` that are masked.
    pub skipped: u64,
    /// Rows of `failed` that another sample filled.
    pub substituted: u64,
    /// Padding rows, including those whose sample failed.
    pub repeated: u64,
    pub batches: u64,
    /// Batches of the whole run, if nothing had ended it.
    pub batches_planned: u64,
    /// A signal ended the run: the figures cover the part before it.
    pub interrupted: bool,
    pub worker_deaths: u64,
    /// The first 1,000 failures and the first of each kind. `--failures` lists all.
    pub failures: Vec<FailedSample>,
    #[serde(skip)]
    pub failure_kinds: BTreeMap<&'static str, u64>,
    /// Error of writing a requested file.
    #[serde(skip)]
    pub unwritten: Option<Error>,
    /// Time for reading the columns of a batch, in the process that takes batches. None without
    /// columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_ms: Option<f64>,
    /// What makes columns faster, if they are slow to read here and there, as in Parquet files with
    /// large pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns_faster: Option<String>,
    /// Entries that the scan left out. None for a saved index or a cache.
    pub scan: Option<ScanReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub profile: NumericProfile,
    pub subject: BenchSubject,
    /// None if the run is too short to measure.
    pub bound_by: Option<&'static str>,
    pub limited_by: LimitedBy,
    pub processors: CpuCount,
    pub seconds: f64,
    pub workers: usize,
    /// The ring's size, all of it allocated. The mapped part is `memory.pss_ring_bytes`.
    pub ring_mib: f64,
    pub loader: LoaderReport,
    pub memory: TreeUsage,
}

/// What limits the run. `bound_by` has its name.
#[derive(Serialize)]
pub struct LimitedBy {
    #[serde(skip)]
    pub limit: RateLimit,
    pub text: String,
    /// Advice, if a known change would help.
    pub faster: Option<String>,
    /// The report's line on CPUs.
    pub processors: String,
    #[serde(flatten)]
    pub shares: StageShares,
}
