//! What happened in a run over the images of a scene.
//!
//! In the consumer.

use serde::Serialize;

use crate::device::DeviceMemory;
use crate::jobs::stages;
use crate::pool::pool_report::PoolReport;
use crate::pool::sandbox::SandboxStatus;
use crate::pool::worker::meter::JobStage;
use crate::scene::data::MissingFiles;

/// What happened so far. `work` is what this kind of run reports alone.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SceneReport<W> {
    /// Images that steps need, and those of them that are decoded.
    pub images: u64,
    pub decoded: u64,
    /// JPEGs that the device decoded. They are not in the store.
    pub decoded_on_device: u64,
    /// What the scene's files name and is not there.
    #[serde(flatten)]
    pub missing: MissingFiles,
    /// Bytes of all pixels in the store.
    pub store_bytes: u64,
    /// Whether those are in a file, since they do not fit in memory.
    pub in_file: bool,
    /// Of the memory that the batches lie in.
    pub ring_bytes: u64,
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped, because nobody read stderr.
    pub stderr_lost: u64,
    /// What workers were kept to.
    pub sandboxed: SandboxStatus,
    #[serde(flatten)]
    pub work: W,
    /// Seconds that this process waited for batches.
    pub wait_s: f64,
    /// Processes of the workers that are alive.
    pub workers: Vec<i32>,
    /// None with zero workers.
    pub coordinator: Option<i32>,
    /// Where batches are made on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceMemory>,
}

/// Seconds of a stage, all workers together.
pub(crate) fn seconds(pool: &PoolReport, stage: JobStage) -> f64 {
    stage.seconds(&pool.stage_ns)
}

/// Seconds that all workers together decoded.
pub(crate) fn decode_seconds(pool: &PoolReport) -> f64 {
    let decoding = [stages::OPEN, stages::DECODE, stages::RESAMPLE, stages::EMIT];
    decoding.map(|stage| seconds(pool, stage)).iter().sum()
}
