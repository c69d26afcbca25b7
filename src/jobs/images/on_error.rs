//! What becomes of a row whose sample gives no pixels.
//!
//! In the consumer.

use serde::Deserialize;

use crate::order::EpochPlan;

/// What happens when a sample gives no pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops with the first failed sample in delivery order.
    #[default]
    Stop,
    /// The row is masked: zero pixels, status `Failed`, listed in the batch.
    Skip,
    /// The row takes the next sample of the epoch's order that gives pixels,
    /// out of at most 8, each with the random parameters of its own place;
    /// status `Substituted`, both samples listed in the batch. The row is
    /// masked when all of them fail.
    Substitute,
}

impl OnError {
    /// Samples that are tried in the place of one that gives no pixels.
    pub(crate) fn tries(self, plan: &EpochPlan) -> u32 {
        match self {
            Self::Stop | Self::Skip => 0,
            Self::Substitute => plan.substitutes(),
        }
    }
}
