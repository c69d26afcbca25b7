//! The part of the report that only rays have.
//!
//! Runs in the consumer.

use serde::Serialize;

use crate::scene::run::SceneReport;

/// Report of a run of rays.
pub type RaysReport = SceneReport<RayWork>;

/// Work of the workers, and the time it took.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RayWork {
    /// Steps that each worker completed.
    pub rows_by_worker: Vec<u64>,
    /// Seconds that `build` took.
    pub startup_s: f64,
    /// Seconds of all workers together: drawing pixels, decoding images, computing rays, reading
    /// colours, waiting for work.
    pub draw_s: f64,
    pub decode_s: f64,
    pub trace_s: f64,
    pub color_s: f64,
    pub idle_s: f64,
}
