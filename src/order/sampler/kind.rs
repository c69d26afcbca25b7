//! The orders that a caller may ask for, as data: their names, numbers, and what
//! can be checked without a data set.
//!
//! In every process. Never in here: which sample stands where; that is `order`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The order of an epoch's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Sampler {
    /// That of the index.
    Sequential,
    /// Another random order in each epoch.
    #[default]
    Shuffle,
    /// Runs of `shard` neighbours in the index in a random order, and samples
    /// in a random order within each `window` positions of that. Reads stay
    /// close together: a window opens `window / shard + 2` runs at most. The
    /// last run may be shorter. Without `shard` a run is a shard of the index; where
    /// shards have unlike numbers of samples it is as long as they are on average.
    /// Where samples are files it has [`Sampler::RUN`]. A loader's state has the number.
    ShardShuffle { shard: Option<u64>, window: u64 },
    /// Batches of `per_id` samples of each of batch / `per_id` identities, which
    /// are the classes of the index: PaddleClas's PKSampler.
    ///
    /// Identities of a batch are drawn without replacement, and so are the
    /// samples of one, unless it has fewer than `per_id`. Each batch, on each
    /// rank, is a draw of its own, so a sample may come several times in an
    /// epoch or never. An epoch has as many batches as otherwise; all are full.
    Identity { per_id: u32, prob: IdentityProb },
    /// Each position draws a sample by its weight, with replacement, as torch's
    /// WeightedRandomSampler. An epoch has `num_samples` positions, or as many
    /// as there are samples.
    Weighted {
        weights: SampleWeights,
        num_samples: Option<u64>,
    },
    /// Each sample of a random choice stands at `repeats` positions in a row, so
    /// that ranks get different augmentations of the same picture: DeiT's
    /// RASampler. An epoch has as many rows as otherwise, and thus one of
    /// `repeats` samples.
    RepeatedAugmentation { repeats: u32 },
    /// Samples in up to `classes` classes of size, the largest first; in a random
    /// order within each. Memory that grows with the pictures grows once, in
    /// the first batches. Reads all headers when the loader is built.
    LargestFirst { classes: u32 },
}

/// How likely an identity comes into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityProb {
    /// In proportion to its number of samples: `sample_avg_prob`.
    #[default]
    SampleAvg,
    /// All alike: `id_avg_prob`.
    IdAvg,
}

/// Identities that come more often: PaddleClas' `id_list` and `ratio`.
///
/// `first` and `last` count identities from 0 in the order in which they come up in
/// the index, both included. Of ranges that overlap the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdentityRatio {
    pub first: u64,
    pub last: u64,
    /// How much likelier an identity is than by [`IdentityProb`] alone.
    pub ratio: u32,
}

/// Where weights come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleWeights {
    /// One for each sample, by
    /// [`LoaderBuilder::sample_weights`](crate::LoaderBuilder::sample_weights).
    Given,
    /// 1 / number of samples of the class: every class comes equally often.
    #[default]
    InverseClassFrequency,
}

/// The forms of a [`SamplerTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableForm {
    Groups,
    Sums,
}

impl Sampler {
    /// The form of the table that the order needs, if it needs one.
    pub(crate) fn table_form(&self) -> Option<TableForm> {
        match self {
            Self::Identity { .. } | Self::LargestFirst { .. } => Some(TableForm::Groups),
            Self::Weighted { .. } => Some(TableForm::Sums),
            _ => None,
        }
    }

    /// True when the order follows from more than the number of samples.
    pub(crate) fn needs_table(&self) -> bool {
        self.table_form().is_some()
    }

    /// True when the order follows from the sizes of the pictures.
    pub(crate) fn reads_sizes(&self) -> bool {
        matches!(self, Self::LargestFirst { .. })
    }

    /// True when the order follows from the classes of the samples.
    pub(crate) fn reads_classes(&self) -> bool {
        let inverse = SampleWeights::InverseClassFrequency;
        match self {
            Self::Identity { .. } => true,
            Self::Weighted { weights, .. } => *weights == inverse,
            _ => false,
        }
    }

    /// Positions of an epoch over all ranks.
    pub(crate) fn positions(&self, samples: u64) -> u64 {
        match self {
            Self::Weighted {
                num_samples: Some(n),
                ..
            } => *n,
            _ => samples,
        }
    }

    /// Neighbours that stay together where nobody said how many: 150 MB of photos of
    /// ImageNet.
    pub const RUN: u64 = 1024;

    /// The same with the numbers that follow from an index. `run`: samples of a shard, none where
    /// samples are files.
    pub(crate) fn with_shard_samples(self, run: Option<u64>) -> Self {
        match self {
            Self::ShardShuffle {
                shard: None,
                window,
            } => Self::ShardShuffle {
                shard: Some(run.unwrap_or(Self::RUN)),
                window,
            },
            other => other,
        }
    }

    /// Checks the numbers that need no data.
    pub(crate) fn check(&self, samples: u64, batch: u32) -> Result<()> {
        let at_least_one = |name: &str, n: u64| match n {
            0 => Err(Error::config(format!(
                "{name} is 0: use at least 1 (sampler {self})"
            ))),
            _ => Ok(()),
        };
        match *self {
            Self::Sequential | Self::Shuffle => {}
            Self::ShardShuffle { shard, window } => {
                at_least_one("shard", shard.unwrap_or(1))?;
                at_least_one("window", window)?;
            }
            Self::Identity { per_id, .. } => {
                at_least_one("per_id", u64::from(per_id))?;
                if !batch.is_multiple_of(per_id) {
                    return Err(Error::config(format!(
                        "`batch_size` is {batch}, which is no multiple of per_id = {per_id}: the \
                         identity sampler takes {per_id} samples of each identity"
                    )));
                }
            }
            Self::Weighted { num_samples, .. } => {
                let n = num_samples.unwrap_or(1);
                at_least_one("num_samples", n)?;
                if n > u64::MAX >> 2 {
                    return Err(Error::config(format!(
                        "num_samples is {n}: use at most 2^62"
                    )));
                }
            }
            Self::RepeatedAugmentation { repeats } => {
                at_least_one("repeats", u64::from(repeats))?;
            }
            Self::LargestFirst { classes } => at_least_one("classes", u64::from(classes))?,
        }
        if self.table_form() == Some(TableForm::Groups) && samples > u64::from(u32::MAX) {
            return Err(Error::config(format!(
                "{samples} samples are more than {}, the most for the sampler {self}: use \
                 another sampler",
                u32::MAX
            )));
        }
        Ok(())
    }
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Shuffle => f.write_str("shuffle"),
            Self::ShardShuffle { shard, window } => {
                f.write_str("shard-shuffle (")?;
                if let Some(shard) = shard {
                    write!(f, "shard {shard}, ")?;
                }
                write!(f, "window {window})")
            }
            Self::Identity { per_id, prob } => {
                let prob = match prob {
                    IdentityProb::SampleAvg => "sample-avg",
                    IdentityProb::IdAvg => "id-avg",
                };
                write!(f, "identity (per_id {per_id}, prob {prob})")
            }
            Self::Weighted {
                weights,
                num_samples,
            } => {
                let weights = match weights {
                    SampleWeights::Given => "given weights",
                    SampleWeights::InverseClassFrequency => "inverse class frequency",
                };
                write!(f, "weighted ({weights}")?;
                match num_samples {
                    Some(n) => write!(f, ", num_samples {n})"),
                    None => f.write_str(")"),
                }
            }
            Self::RepeatedAugmentation { repeats } => write!(f, "repeated (repeats {repeats})"),
            Self::LargestFirst { classes } => write!(f, "largest-first (classes {classes})"),
        }
    }
}
