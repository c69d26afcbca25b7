//! The report of a run over the images of a scene.
//!
//! Runs in the consumer.

use serde::Serialize;

use crate::device::DeviceMemory;
use crate::jobs::stages;
use crate::pool::pool_report::PoolReport;
use crate::pool::sandbox::SandboxStatus;
use crate::pool::worker::meter::JobStage;
use crate::scene::data::MissingFiles;

/// Report of a run so far. `work` is the part that only this kind of run has.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SceneReport<W> {
    /// Images that the steps use, and how many of them are decoded.
    pub images: u64,
    pub decoded: u64,
    /// JPEGs that the device decoded. They are not in the image store.
    pub decoded_on_device: u64,
    /// Files that the scene names but that are missing or unreadable.
    #[serde(flatten)]
    pub missing: MissingFiles,
    /// Bytes of all pixels in the image store.
    pub store_bytes: u64,
    /// Whether the image store is a file because the images do not fit in memory.
    pub in_file: bool,
    /// Bytes of the memory that holds the batches.
    pub ring_bytes: u64,
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped because no process read stderr.
    pub stderr_lost: u64,
    /// Restrictions that the workers run under.
    pub sandboxed: SandboxStatus,
    #[serde(flatten)]
    pub work: W,
    /// Seconds that this process waited for batches.
    pub wait_s: f64,
    /// Process ids of the living workers.
    pub workers: Vec<i32>,
    /// Process id; `None` with zero workers.
    pub coordinator: Option<i32>,
    /// Memory of the device; `None` on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceMemory>,
}

/// Seconds of a stage, summed over all workers.
pub(crate) fn seconds(pool: &PoolReport, stage: JobStage) -> f64 {
    stage.seconds(&pool.stage_ns)
}

/// Seconds of decoding, summed over all workers.
pub(crate) fn decode_seconds(pool: &PoolReport) -> f64 {
    let decoding = [stages::OPEN, stages::DECODE, stages::RESAMPLE, stages::EMIT];
    decoding.map(|stage| seconds(pool, stage)).iter().sum()
}
