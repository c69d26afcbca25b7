//! What a row of a batch is.

use serde::{Deserialize, Serialize};

/// What a row of a batch is.
///
/// A row is planned as `Ok`, `DuplicateImages` or `Padding`; `Failed` and `Substituted`
/// take the place of the first two. Whether such a row was a repeat says
/// [`Batch::repeated`](crate::Batch::repeated).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
pub enum RowStatus {
    /// A sample, counted once in the epoch, unless the
    /// [`Sampler`](crate::plan::Sampler) lets samples come again.
    Ok = 0,
    /// A sample that another rank, or an earlier row, has too: it fills this
    /// rank up to the batch count of the others. Leave it out of evaluations,
    /// and with it the repeats whose samples gave no pixels.
    Repeated = 1,
    /// No sample: fills a last batch up to full size. Zero pixels.
    Padding = 2,
    /// The sample gave no pixels; the row is zero and the batch says why.
    Failed = 3,
    /// The sample gave no pixels; pixels, id and label are those of a sample
    /// behind it in the epoch's order, which has a row of its own as well, or of
    /// another of its identity ([`Plan::attempt_at`](crate::plan::Plan::attempt_at)). The batch
    /// says which sample failed, and why.
    Substituted = 4,
}

impl RowStatus {
    /// True when the row has no pixels of its own.
    pub fn is_masked(self) -> bool {
        matches!(self, Self::Padding | Self::Failed)
    }
}
