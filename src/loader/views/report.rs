//! What views report that rays do not.
//!
//! In the consumer.

use std::time::Duration;

use serde::Serialize;

use crate::jobs::views::spec;
use crate::loader::scene::{SceneReport, decode_seconds, seconds};
use crate::pool::report::PoolReport;
use crate::pool::worker::meter::Stage;

/// What happened so far in a run of views.
pub type ViewsReport = SceneReport<ViewWork>;

/// How long workers worked.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ViewWork {
    /// Seconds from the beginning of the build to its end.
    pub startup_s: f64,
    /// Seconds of all workers together: decoding images, from the store to the view,
    /// waiting for work.
    pub decode_s: f64,
    pub show_s: f64,
    pub idle_s: f64,
}

impl ViewWork {
    pub(super) fn new(pool: &PoolReport, startup: Duration) -> Self {
        Self {
            startup_s: startup.as_secs_f64(),
            decode_s: decode_seconds(pool),
            show_s: seconds(pool, spec::SHOW),
            idle_s: seconds(pool, Stage::IDLE),
        }
    }
}
