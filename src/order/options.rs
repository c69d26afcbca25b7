//! Options of an order, and checks for values that cannot work.

use serde::{Deserialize, Serialize};

use super::length::EpochLength;
use super::position::Rank;
use super::sampler::{IdentityRatio, MultiScale, Sampler};
use super::tail::EpochTail;
use crate::error::{Error, Result};

/// Options of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderOptions {
    /// Rows per batch.
    pub batch: u32,
    pub seed: u64,
    /// The order of an epoch.
    pub sampler: Sampler,
    /// Identities that are drawn more often, for [`Sampler::Identity`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity_ratios: Vec<IdentityRatio>,
    #[serde(default, skip_serializing_if = "EpochLength::is_samples")]
    pub length: EpochLength,
    /// Output sizes that alternate between batches; `None` = the recipe's.
    pub multi_scale: Option<MultiScale>,
    pub tail: EpochTail,
    /// Number of this process among `world` processes that train together.
    pub rank: u32,
    pub world: u32,
}

impl Default for OrderOptions {
    fn default() -> Self {
        Self {
            batch: 64,
            seed: 0,
            sampler: Sampler::Shuffle,
            identity_ratios: Vec::new(),
            length: EpochLength::Samples,
            multi_scale: None,
            tail: EpochTail::Short,
            rank: 0,
            world: 1,
        }
    }
}

impl OrderOptions {
    /// Fills in the defaults that depend on an index. `run`: samples per shard; `None` if samples
    /// are single files.
    pub(crate) fn with_shard_samples(&self, run: Option<u64>) -> Self {
        Self {
            sampler: self.sampler.with_shard_samples(run),
            ..self.clone()
        }
    }

    /// The option that sets the size of rows for each batch, if the recipe does not.
    pub fn size_setter(&self) -> Option<&'static str> {
        match (&self.multi_scale, &self.sampler) {
            (Some(_), _) => Some("multi_scale"),
            (None, Sampler::Buckets(_)) => Some("sampler"),
            (None, _) => None,
        }
    }

    /// Checks everything that needs no data except its size.
    ///
    /// # Errors
    /// A number is out of range.
    pub(crate) fn check(&self, samples: u64) -> Result<()> {
        if samples == 0 {
            return Err(Error::config(
                "there are 0 samples: give a data set with at least one",
            ));
        }
        if samples > u64::MAX >> 2 {
            return Err(Error::config(format!(
                "{samples} samples are more than 2^62"
            )));
        }
        if self.batch == 0 {
            return Err(Error::option(
                "batch_size",
                "`batch_size` is 0: use at least 1",
            ));
        }
        Rank::new(self.rank, self.world).check()?;
        // A size per epoch does not change the rows of batches.
        let scales = self.multi_scale.as_ref();
        let changes_rows = scales.is_some_and(|scales| scales.first_epochs.is_empty());
        let refuses = match self.sampler {
            Sampler::Identity { .. } => changes_rows.then_some("changes the rows of batches"),
            Sampler::Buckets(_) | Sampler::PatchBudget { .. } => {
                scales.map(|_| "sets the size of batches")
            }
            _ => None,
        };
        if let Some(what) = refuses {
            return Err(Error::option(
                "multi_scale",
                format!(
                    "multi_scale {what}, and the sampler {} needs them unchanged: use one of them",
                    self.sampler
                ),
            ));
        }
        if matches!(self.sampler, Sampler::PatchBudget { .. }) && self.tail == EpochTail::Pad {
            return Err(Error::option(
                "pad_last",
                "a budget of patches has batches of different numbers of rows, and padding would \
                 fill all of them: remove it",
            ));
        }
        self.check_identities()?;
        self.sampler.check(samples, self.batch)
    }

    /// Checks the options for the identity sampler.
    fn check_identities(&self) -> Result<()> {
        let sampler = &self.sampler;
        let draws_identities = matches!(sampler, Sampler::Identity { .. });
        if !self.identity_ratios.is_empty() && !draws_identities {
            return Err(Error::config(format!(
                "identity_ratios need Sampler::Identity, and the sampler is {sampler}: remove \
                 them, or use it"
            )));
        }
        if let Some(wrong) =
            (self.identity_ratios.iter()).find(|r| r.ratio == 0 || r.first > r.last)
        {
            return Err(Error::config(format!(
                "the identities {} to {} have the ratio {}: use a first number up to the last, \
                 and a ratio of at least 1",
                wrong.first, wrong.last, wrong.ratio
            )));
        }
        let length = self.length;
        let (fits, fix) = match length {
            EpochLength::Samples => (true, ""),
            EpochLength::Batches(n) => {
                if n == 0
                    || n.checked_mul(u64::from(self.batch))
                        .is_none_or(|n| n > u64::MAX >> 2)
                {
                    return Err(Error::config(format!(
                        "an epoch has {n} batches of {}: use 1 or more, and at most 2^62 rows",
                        self.batch
                    )));
                }
                (draws_identities, "needs Sampler::Identity")
            }
            EpochLength::MultipleOf(0) => {
                return Err(Error::config(
                    "an epoch is a multiple of 0 samples: use at least 1",
                ));
            }
            EpochLength::MultipleOf(_) => (
                !draws_identities && !sampler.has_bucket_batches(),
                "does not fit Sampler::Identity, Sampler::Buckets and Sampler::PatchBudget",
            ),
            EpochLength::IdentityGroups => (draws_identities, "needs Sampler::Identity"),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::config(format!(
                "an epoch of {length} {fix}, and the sampler is {sampler}: use another sampler, or \
                 remove the length"
            ))),
        }
    }
}
