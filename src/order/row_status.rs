//! The status of a row of a batch.

use serde::{Deserialize, Serialize};

/// The status of a row of a batch.
///
/// A row is planned as `Ok`, `Repeated` or `Padding`. `Failed` and `Substituted` replace the first
/// two. [`Batch::repeated`](crate::Batch::repeated) tells whether such a row was a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
pub enum RowStatus {
    /// A sample. It comes once per epoch, unless the [`Sampler`](crate::order::Sampler) repeats
    /// samples.
    Ok = 0,
    /// A sample that another rank or an earlier row also has. It fills this rank up to the batch
    /// count of the others. Leave it out of evaluations, including failed and substituted repeats.
    Repeated = 1,
    /// No sample: fills a last batch up to full size. The pixels are zero.
    Padding = 2,
    /// The sample failed. The row is zero, and the batch has the reason.
    Failed = 3,
    /// The sample failed, and the row has the pixels, id and label of a substitute. That is a later
    /// sample of the epoch, which also has its own row, or another one of the same identity
    /// ([`EpochPlan::attempt_at`](crate::order::EpochPlan::attempt_at)). The batch has the failed
    /// sample and the reason.
    Substituted = 4,
}

impl RowStatus {
    /// Whether the row has no pixels of its own sample.
    pub fn is_masked(self) -> bool {
        matches!(self, Self::Padding | Self::Failed)
    }
}
