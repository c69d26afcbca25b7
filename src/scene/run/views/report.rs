//! The part of the report that only views have.
//!
//! Runs in the consumer.

use serde::Serialize;

use crate::scene::run::SceneReport;

/// Report of a run of views.
pub type ViewsReport = SceneReport<ViewWork>;

/// Time that the workers took.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ViewWork {
    /// Seconds that `build` took.
    pub startup_s: f64,
    /// Seconds of all workers together: decoding images, making views from the image store, waiting
    /// for work.
    pub decode_s: f64,
    pub show_s: f64,
    pub idle_s: f64,
}
