//! How long an epoch is, where its samples alone do not say so.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How long an epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochLength {
    /// As the sampler and the number of samples say.
    #[default]
    Samples,
    /// So many batches on every rank: PaddleClas' `max_iters`. Of
    /// [`Sampler::Identity`](crate::plan::Sampler::Identity) alone, whose draws do not
    /// run out.
    Batches(u64),
    /// Samples rounded down to a multiple of this, and every rank has the rows that
    /// all of them have: DeiT's RASampler, with 256.
    MultipleOf(u64),
    /// One batch less than the samples of all identities fill when each identity's
    /// number is rounded up to whole groups, whatever the number of ranks: PaddleClas'
    /// NaiveIdentityBatchSampler. Of [`Sampler::Identity`](crate::plan::Sampler::Identity).
    IdentityGroups,
}

impl EpochLength {
    /// The default, which is not written: as before there were others.
    pub(super) fn is_samples(&self) -> bool {
        *self == Self::Samples
    }
}

impl fmt::Display for EpochLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples => f.write_str("all samples"),
            Self::Batches(n) => write!(f, "{n} batches"),
            Self::MultipleOf(n) => write!(f, "a multiple of {n} samples"),
            Self::IdentityGroups => f.write_str("groups of all identities"),
        }
    }
}
