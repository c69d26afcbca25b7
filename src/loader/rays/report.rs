//! What rays report that views do not.
//!
//! In the consumer.

use std::time::Duration;

use serde::Serialize;

use crate::jobs::rays::spec;
use crate::loader::scene::{SceneReport, decode_seconds, seconds};
use crate::pool::report::PoolReport;
use crate::pool::worker::meter::Stage;

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

impl RayWork {
    pub(super) fn new(pool: &PoolReport, startup: Duration) -> Self {
        Self {
            rows_by_worker: pool.rows_by_worker.clone(),
            startup_s: startup.as_secs_f64(),
            draw_s: seconds(pool, spec::DRAW),
            decode_s: decode_seconds(pool),
            trace_s: seconds(pool, spec::TRACE),
            color_s: seconds(pool, spec::COLOR),
            idle_s: seconds(pool, Stage::IDLE),
        }
    }
}
