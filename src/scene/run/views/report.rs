//! What views report that rays do not.
//!
//! In the consumer.

use serde::Serialize;

use crate::scene::run::SceneReport;

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
