//! Options that only views have.
//!
//! Runs in the consumer.

use crate::order::Rank;

/// Options that only views have.
#[derive(Debug)]
pub struct ViewKindOptions {
    pub(super) shuffles: bool,
    pub(super) rank: Rank,
    pub(super) float: bool,
    pub(super) undistort: bool,
}

impl Default for ViewKindOptions {
    fn default() -> Self {
        Self {
            shuffles: true,
            rank: Rank::default(),
            float: false,
            undistort: false,
        }
    }
}
