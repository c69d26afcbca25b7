//! What happens to a row whose sample fails.
//!
//! In the consumer.

use serde::Deserialize;

use crate::order::EpochPlan;

/// What happens when a sample cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops at the first failed sample in delivery order.
    #[default]
    Stop,
    /// The row is masked: zero pixels, status `Failed`, listed in the batch.
    Skip,
    /// The row gets the next usable sample of the epoch's order, of at most 8. Each is tried with
    /// the random parameters of its own position. Status `Substituted`, and the batch lists both
    /// samples. If all of them fail, the row is masked.
    Substitute,
}

impl OnError {
    /// Number of substitutes to try.
    pub(crate) fn substitute_limit(self, plan: &EpochPlan) -> u32 {
        match self {
            Self::Stop | Self::Skip => 0,
            Self::Substitute => plan.substitutes(),
        }
    }
}
