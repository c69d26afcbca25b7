//! The samplers that a user can choose: names, parameters, and checks that need no data.
//!
//! Used in every process. Never in here: which sample is where; see `sample_order`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::recipe::BucketRule;

/// The order of samples in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Sampler {
    /// The order of the index.
    Sequential,
    /// Another random order in each epoch.
    #[default]
    Shuffle,
    /// Shuffles shards, then samples within windows. A run of `shard` consecutive samples of the
    /// index counts as a shard; the last run may be shorter. Samples are shuffled within each
    /// `window` positions of that order. So reads stay close together: a window opens at most
    /// `window / shard + 2` runs.
    ///
    /// Without `shard`, a run is a shard of the index. If shards differ in size, it has their
    /// average size. If samples are single files, it has [`Sampler::RUN`] samples. A loader's state
    /// stores the number.
    ShardShuffle { shard: Option<u64>, window: u64 },
    /// Batches of `per_id` samples of each of batch / `per_id` identities, which are the classes of
    /// the index: PaddleClas's PKSampler.
    ///
    /// Identities of a batch are drawn without replacement. So are the samples of an identity,
    /// unless it has fewer than `per_id`. Each batch on each rank is an independent draw, so a
    /// sample may come several times per epoch or never. The number of batches is the usual one;
    /// all are full.
    Identity { per_id: u32, prob: IdentityProb },
    /// Draws a sample for each position by its weight, with replacement, like torch's
    /// WeightedRandomSampler. An epoch has `num_samples` positions; by default the number of
    /// samples.
    Weighted {
        weights: SampleWeights,
        num_samples: Option<u64>,
    },
    /// Repeats each sample of a random order at `repeats` consecutive positions, so that ranks get
    /// different augmentations of the same image: DeiT's RASampler. An epoch has the usual number
    /// of rows, so it shows one in `repeats` samples.
    RepeatedAugmentation { repeats: u32 },
    /// Sorts samples into up to `classes` size classes, the largest first, with a random order in
    /// each. So memory that grows with image size reaches its maximum in the first batches. Reads
    /// all headers when the loader is built.
    LargestFirst { classes: u32 },
    /// Batches of one size each, chosen from the sizes of images: aspect-ratio buckets. Each sample
    /// comes once an epoch over all ranks. The last batch of a bucket has the samples that are
    /// left, over all ranks, and [`EpochTail`](crate::order::EpochTail) applies to each bucket. An
    /// image whose header cannot be read, or that has no bucket, is in the one with most images.
    /// Reads all headers when the loader is built.
    Buckets(BucketRule),
    /// Batches of images with at most `patches` patches on each rank, and at most the batch size of
    /// rows. For recipes with [`Tiles`](crate::recipe::Tiles), or with
    /// [`Patches`](crate::recipe::Patches) of style `qwen`. Images of a batch, on all ranks, have
    /// about the same number of patches. Each sample comes once an epoch over all ranks. Reads all
    /// headers when the loader is built.
    PatchBudget { patches: u64 },
    /// The order that the caller gives before each epoch
    /// ([`Loader::set_order`](crate::Loader::set_order)), for each rank its own. An epoch has
    /// `num_samples` rows on each rank.
    Given { num_samples: u64 },
}

/// How likely an identity is drawn into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityProb {
    /// In proportion to its number of samples: `sample_avg_prob`.
    #[default]
    SampleAvg,
    /// All equally: `id_avg_prob`.
    IdAvg,
}

/// Identities that are drawn more often: PaddleClas' `id_list` and `ratio`.
///
/// `first` and `last` are inclusive. They number identities from 0 by first occurrence in the
/// index. If ranges overlap, the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdentityRatio {
    pub first: u64,
    pub last: u64,
    /// Factor on the probability by [`IdentityProb`].
    pub ratio: u32,
}

/// The source of sample weights.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleWeights {
    /// One for each sample, from
    /// [`LoaderBuilder::sample_weights`](crate::LoaderBuilder::sample_weights).
    Given,
    /// 1 / number of samples of the class: every class comes equally often.
    #[default]
    InverseClassFrequency,
    /// Samples with objects of rare categories come more often.
    ObjectFrequency(ObjectFrequency),
}

/// Weights by the categories of objects: the repeat factors of LVIS.
///
/// A category that a share f of the samples has, has the factor max(1, sqrt(threshold / f)). A
/// sample has the largest factor of its categories.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectFrequency {
    /// The share of samples, 0 to 1, below which a category is rare.
    pub threshold: f64,
    /// The weight of a sample without objects, 0 or more. 0: it never comes.
    pub empty: f64,
}

impl ObjectFrequency {
    /// The share in the sampler of LVIS.
    pub const THRESHOLD: f64 = 0.001;
}

impl Default for ObjectFrequency {
    fn default() -> Self {
        Self {
            threshold: Self::THRESHOLD,
            empty: 1.0,
        }
    }
}

/// The forms of a [`SamplerTable`](crate::order::table::SamplerTable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableForm {
    Groups,
    Buckets,
    Sums,
    Orders,
}

impl Sampler {
    /// The form of the table that the sampler needs, if any.
    pub(crate) fn table_form(&self) -> Option<TableForm> {
        match self {
            Self::Identity { .. } | Self::LargestFirst { .. } => Some(TableForm::Groups),
            Self::Weighted { .. } => Some(TableForm::Sums),
            Self::Given { .. } => Some(TableForm::Orders),
            Self::Buckets(_) | Self::PatchBudget { .. } => Some(TableForm::Buckets),
            _ => None,
        }
    }

    /// Whether the order depends on more than the number of samples.
    pub(crate) fn needs_table(&self) -> bool {
        self.table_form().is_some()
    }

    /// Whether the order depends on the sizes of images.
    pub(crate) fn reads_sizes(&self) -> bool {
        self.has_bucket_batches() || matches!(self, Self::LargestFirst { .. })
    }

    /// Whether batches are those of buckets.
    pub(crate) fn has_bucket_batches(&self) -> bool {
        matches!(self, Self::Buckets(_) | Self::PatchBudget { .. })
    }

    /// Whether the order depends on the classes of samples.
    pub(crate) fn reads_classes(&self) -> bool {
        let inverse = SampleWeights::InverseClassFrequency;
        match self {
            Self::Identity { .. } => true,
            Self::Weighted { weights, .. } => *weights == inverse,
            _ => false,
        }
    }

    /// Positions of an epoch over all ranks. Buckets have positions of their own.
    pub(crate) fn positions(&self, samples: u64, world: u32) -> u64 {
        match self {
            // Below 2^62, as `check` requires of a product with any number of ranks.
            Self::Given { num_samples } => num_samples.saturating_mul(u64::from(world)),
            Self::Weighted {
                num_samples: Some(n),
                ..
            } => *n,
            _ => samples,
        }
    }

    /// Default number of consecutive samples that stay together: 150 MB of ImageNet photos.
    pub const RUN: u64 = 1024;

    /// Fills in the defaults that depend on an index. `run`: samples per shard; `None` if samples
    /// are single files.
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

    /// Checks the parameters that need no data.
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
                        "`batch_size` is {batch}, which is not a multiple of per_id = {per_id}: \
                         the identity sampler takes {per_id} samples of each identity"
                    )));
                }
            }
            Self::Weighted {
                num_samples,
                weights,
            } => {
                if let SampleWeights::ObjectFrequency(ObjectFrequency { threshold, empty }) =
                    weights
                {
                    if !(0.0..=1.0).contains(&threshold) {
                        return Err(Error::config(format!(
                            "threshold is {threshold}: use a share of the samples, 0 to 1, such as \
                             {}",
                            ObjectFrequency::THRESHOLD
                        )));
                    }
                    if !(empty >= 0.0 && empty.is_finite()) {
                        return Err(Error::config(format!(
                            "empty is {empty}: use a weight of 0 or more, such as 1"
                        )));
                    }
                }
                let n = num_samples.unwrap_or(1);
                at_least_one("num_samples", n)?;
                if n > u64::MAX >> 2 {
                    return Err(Error::config(format!(
                        "num_samples is {n}: use at most 2^62"
                    )));
                }
            }
            Self::Given { num_samples } => {
                at_least_one("num_samples", num_samples)?;
                if num_samples > u64::from(u32::MAX) {
                    return Err(Error::config(format!(
                        "num_samples is {num_samples}: use at most {}",
                        u32::MAX
                    )));
                }
            }
            Self::RepeatedAugmentation { repeats } => {
                at_least_one("repeats", u64::from(repeats))?;
            }
            Self::LargestFirst { classes } => at_least_one("classes", u64::from(classes))?,
            Self::Buckets(rule) => drop(rule.fitter()?),
            Self::PatchBudget { patches } => {
                at_least_one("patches", patches)?;
                if patches > u64::from(u32::MAX) {
                    return Err(Error::config(format!(
                        "patches is {patches}: use at most {} (sampler {self})",
                        u32::MAX
                    )));
                }
            }
        }
        let in_groups = matches!(
            self.table_form(),
            Some(TableForm::Groups | TableForm::Buckets)
        );
        if in_groups && samples > u64::from(u32::MAX) {
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
                f.write_str("weighted (")?;
                match weights {
                    SampleWeights::Given => f.write_str("given weights")?,
                    SampleWeights::InverseClassFrequency => {
                        f.write_str("inverse class frequency")?
                    }
                    SampleWeights::ObjectFrequency(ObjectFrequency { threshold, empty }) => {
                        write!(f, "object frequency, threshold {threshold}, empty {empty}")?;
                    }
                }
                match num_samples {
                    Some(n) => write!(f, ", num_samples {n})"),
                    None => f.write_str(")"),
                }
            }
            Self::Given { num_samples } => write!(f, "given (num_samples {num_samples})"),
            Self::RepeatedAugmentation { repeats } => write!(f, "repeated (repeats {repeats})"),
            Self::LargestFirst { classes } => write!(f, "largest-first (classes {classes})"),
            Self::Buckets(rule) => write!(f, "buckets ({rule})"),
            Self::PatchBudget { patches } => write!(f, "patch-budget (patches {patches})"),
        }
    }
}
