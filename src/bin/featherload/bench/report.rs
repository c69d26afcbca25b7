//! What a run of `bench` found: plain data. How it is printed is `text`'s.

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

/// Everything that `bench` reports; the names are the contract of `--json`.
#[derive(Serialize)]
pub struct BenchReport {
    /// Images with pixels a second, behind the first batch. None of a run that is too short to
    /// measure; then `too_short` says so.
    pub images_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short: Option<String>,
    /// How far epochs, or parts of a run of one epoch, differ; none of a short run.
    pub spread: Option<RateSpread>,
    /// From the start of the process to the first batch in hand.
    pub first_batch_ms: f64,
    /// From the start of the process to workers that run.
    pub startup_ms: f64,
    pub cpu_s_per_1k_images: f64,
    pub pss_total_mib: f64,
    /// All of the ring and what the processes have beside it; page cache of input is
    /// left out.
    pub memory_mib: f64,
    /// The part of `memory_mib` beside the ring.
    pub processes_mib: f64,
    pub gpu_mib: f64,
    /// Who decodes JPEGs of a run on a device, and why.
    pub jpegs: Option<DecodeChoice>,
    /// Of the device's memory; times are in `loader.device`.
    pub device: Option<DeviceUse>,
    /// Rows that hold samples, repeated ones included; up to `--limit`.
    pub samples: u64,
    /// Rows whose own sample gave no pixels.
    pub failed: u64,
    /// Samples that these rows are of: a sample has a row in each epoch.
    pub failed_samples: u64,
    /// Of these, masked.
    pub skipped: u64,
    /// Of these, filled by another sample.
    pub substituted: u64,
    /// Rows that fill a rank up, those included whose sample gave no pixels.
    pub repeated: u64,
    pub batches: u64,
    /// Batches of the whole run, had nothing ended it.
    pub batches_planned: u64,
    /// A signal ended the run: the figures are of what ran until then.
    pub interrupted: bool,
    pub worker_deaths: u64,
    /// The first 1,000, and the first of each kind; `--failures` has all.
    pub failures: Vec<FailedSample>,
    #[serde(skip)]
    pub failure_kinds: BTreeMap<&'static str, u64>,
    /// A file that was asked for could not be written.
    #[serde(skip)]
    pub unwritten: Option<Error>,
    /// What reading the names left out; none for a saved index and a cache.
    pub scan: Option<ScanReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digests: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub profile: NumericProfile,
    pub subject: BenchSubject,
    /// None of a run that is too short to measure.
    pub bound_by: Option<&'static str>,
    pub limited_by: LimitedBy,
    pub processors: CpuCount,
    pub seconds: f64,
    pub workers: usize,
    /// The ring's size, all of it allocated; what is mapped of it is
    /// `memory.pss_ring_bytes`.
    pub ring_mib: f64,
    pub loader: LoaderReport,
    pub memory: TreeUsage,
}

/// What keeps the run from being faster; `bound_by` has its name.
#[derive(Serialize)]
pub struct LimitedBy {
    #[serde(skip)]
    pub limit: RateLimit,
    pub text: String,
    /// What to do, where something is known to help.
    pub faster: Option<String>,
    /// The line on processors.
    pub processors: String,
    #[serde(flatten)]
    pub shares: StageShares,
}
