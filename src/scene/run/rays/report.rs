//! What rays report that views do not.
//!
//! In the consumer.

use serde::Serialize;

use crate::scene::run::SceneReport;

/// What happened so far in a run of rays.
pub type RaysReport = SceneReport<RayWork>;

/// What workers did, and for how long.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RayWork {
    /// Steps that each worker made.
    pub rows_by_worker: Vec<u64>,
    /// Seconds from the beginning of the build to its end.
    pub startup_s: f64,
    /// Seconds of all workers together: drawing pixels, decoding images, from pixels to
    /// rays, their colours, waiting for work.
    pub draw_s: f64,
    pub decode_s: f64,
    pub trace_s: f64,
    pub color_s: f64,
    pub idle_s: f64,
}
