//! The length of an epoch, if it is not the number of samples.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Length of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochLength {
    /// Determined by sampler and number of samples.
    #[default]
    Samples,
    /// This number of batches on every rank: PaddleClas' `max_iters`. Only for
    /// [`Sampler::Identity`](crate::order::Sampler::Identity), whose draws do not run out.
    Batches(u64),
    /// The number of samples rounded down to a multiple of this. Every rank has the same rows:
    /// DeiT's RASampler, with 256.
    MultipleOf(u64),
    /// The samples of each identity are rounded up to whole groups. The epoch has one batch less
    /// than these fill, for any number of ranks. This is PaddleClas' NaiveIdentityBatchSampler,
    /// only for [`Sampler::Identity`](crate::order::Sampler::Identity).
    IdentityGroups,
}

impl EpochLength {
    /// Whether this is the default, which is not written to states.
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
