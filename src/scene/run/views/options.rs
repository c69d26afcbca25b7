//! Options of views alone.
//!
//! In the consumer.

use crate::order::Rank;

/// See the module.
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
