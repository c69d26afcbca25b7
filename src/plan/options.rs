//! What a plan follows from, and which of it cannot work.

use serde::{Deserialize, Serialize};

use super::sampler::{MultiScale, Sampler};
use crate::error::{Error, Result};

/// What happens to the samples that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// The last batch is short.
    #[default]
    Short,
    /// The last batch has full size; the rows behind the samples are zero and
    /// their status is [`RowStatus::Padding`](super::RowStatus::Padding).
    Pad,
    /// The last batch is left out when it would be short.
    Drop,
}

/// What a plan follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// Rows of a batch.
    pub batch: u32,
    pub seed: u64,
    /// The order of an epoch.
    pub sampler: Sampler,
    /// Output sizes that take turns from batch to batch; none = the recipe's.
    pub multi_scale: Option<MultiScale>,
    pub tail: Tail,
    /// This process's place among `world` processes that train together.
    pub rank: u32,
    pub world: u32,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            batch: 64,
            seed: 0,
            sampler: Sampler::Shuffle,
            multi_scale: None,
            tail: Tail::Short,
            rank: 0,
            world: 1,
        }
    }
}

impl PlanOptions {
    /// The same with the numbers that follow from an index of so many samples and
    /// shards (0 = samples are files).
    pub(crate) fn settled(&self, samples: u64, shards: u64) -> Self {
        Self {
            sampler: self.sampler.settled(samples, shards),
            ..self.clone()
        }
    }

    /// Checks everything that needs no data but its size, before any is read.
    ///
    /// # Errors
    /// When a number is out of range.
    pub(crate) fn check(&self, samples: u64) -> Result<()> {
        if samples == 0 {
            return Err(Error::config("there are 0 samples to make batches of"));
        }
        if samples > u64::MAX >> 2 {
            return Err(Error::config(format!(
                "{samples} samples are more than 2^62"
            )));
        }
        if self.batch == 0 {
            return Err(Error::config("batch is 0, it must be at least 1"));
        }
        if self.world == 0 || self.rank >= self.world {
            return Err(Error::config(format!(
                "rank is {} of world {}, it must be below it",
                self.rank, self.world
            )));
        }
        if self.multi_scale.is_some() && matches!(self.sampler, Sampler::Identity { .. }) {
            return Err(Error::config(format!(
                "multi_scale changes the rows of batches, and the sampler {} needs them as they \
                 are: choose one of them",
                self.sampler
            )));
        }
        self.sampler.check(samples, self.batch)
    }
}
