//! The stages of a sample, as names for the pool's counters.
//!
//! Used in workers, which count, and in the consumer, which reports.

use serde::Serialize;

use crate::pool::pool_report::PoolReport;
use crate::pool::worker::meter::JobStage;
use crate::recipe::Step;
use crate::recipe::move_unit::OperationPart;

/// Open, map, header.
pub(crate) const OPEN: JobStage = JobStage::of_job(0);
/// Entropy decoding, IDCT, colour.
pub(crate) const DECODE: JobStage = JobStage::of_job(1);
/// Crops, flips and resizes.
pub(crate) const RESAMPLE: JobStage = JobStage::of_job(2);
/// Flip, normalise, cast, layout.
pub(crate) const EMIT: JobStage = JobStage::of_job(3);
/// Every other operation: colour, blur, rotation, policies.
pub(crate) const AUGMENT: JobStage = JobStage::of_job(4);

/// Decompressing a page of a Parquet or Arrow file.
pub(crate) const UNPACK: JobStage = JobStage::of_job(5);

/// The stage of a step that runs by itself, after the decoding.
pub(crate) fn of_step(step: &Step) -> JobStage {
    match step.part() {
        OperationPart::Crop | OperationPart::Resize | OperationPart::Turn => RESAMPLE,
        OperationPart::Normalize | OperationPart::Cast => EMIT,
        _ => AUGMENT,
    }
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
    /// Decompressing pages of Parquet and Arrow files.
    pub unpack_s: f64,
    pub decode_s: f64,
    /// Crops, flips and resizes.
    pub resample_s: f64,
    /// Every other operation: colour, blur, rotation, policies.
    pub augment_s: f64,
    /// Flip, normalise, cast, layout.
    pub emit_s: f64,
}

impl StageTimes {
    pub(crate) fn of(pool: &PoolReport) -> Self {
        let seconds = |stage: JobStage| stage.seconds(&pool.stage_ns);
        Self {
            rows: pool.rows,
            input_bytes: pool.input_bytes,
            idle_s: seconds(JobStage::IDLE),
            open_s: seconds(OPEN),
            unpack_s: seconds(UNPACK),
            decode_s: seconds(DECODE),
            resample_s: seconds(RESAMPLE),
            augment_s: seconds(AUGMENT),
            emit_s: seconds(EMIT),
        }
    }

    /// Seconds spent on samples.
    pub fn busy_s(&self) -> f64 {
        let read = self.open_s + self.unpack_s;
        read + self.decode_s + self.resample_s + self.augment_s + self.emit_s
    }
}
