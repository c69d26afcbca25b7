//! Arguments for the order of an epoch.

use clap::{Args, ValueEnum};
use featherload::options::cli;
use featherload::order::{IdentityProb, MultiScale, ObjectFrequency, SampleWeights};
use featherload::recipe::{BucketRule, BucketStyle};
use featherload::{Error, Result, Sampler};

/// The order of the samples.
#[derive(Args)]
pub struct SamplerArgs {
    /// The order of an epoch [shuffle].
    #[arg(long, value_enum, value_name = "ORDER", help_heading = cli::ORDER)]
    sampler: Option<Order>,

    /// Keep the order of the index, as --sampler sequential.
    #[arg(long, conflicts_with = "sampler", help_heading = cli::ORDER)]
    no_shuffle: bool,

    /// shard-shuffle: consecutive samples of the index that stay together [a shard, or the mean
    /// samples of a shard; 1024 where samples are files].
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    shard: Option<u64>,

    /// shard-shuffle: samples are shuffled within windows of N positions [16384].
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    shuffle_window: Option<u64>,

    /// identity: samples of each class in a batch [4].
    #[arg(long, value_name = "K", help_heading = cli::ORDER)]
    per_id: Option<u32>,

    /// identity: probability of each class [sample-avg].
    #[arg(long, value_enum, value_name = "PROB", help_heading = cli::ORDER)]
    prob: Option<Prob>,

    /// rare-objects: the share of images, 0 to 1, below which a category is rare [0.001].
    #[arg(long, value_name = "SHARE", help_heading = cli::ORDER)]
    rare_threshold: Option<f64>,

    /// rare-objects: the weight of images without objects; 0 leaves them out [1].
    #[arg(long, value_name = "WEIGHT", help_heading = cli::ORDER)]
    empty_weight: Option<f64>,

    /// weighted, rare-objects: draws of an epoch [the number of samples].
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    num_samples: Option<u64>,

    /// repeated: consecutive rows for each sample [3].
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    repeats: Option<u32>,

    /// largest-first: number of size classes [16].
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    size_classes: Option<u32>,

    /// buckets: the trainer whose buckets these are [sd-scripts].
    #[arg(long, value_enum, value_name = "STYLE", help_heading = cli::ORDER)]
    bucket_style: Option<Style>,

    /// buckets: most pixels of a row [1048576].
    #[arg(long, value_name = "PIXELS", help_heading = cli::ORDER)]
    bucket_area: Option<u64>,

    /// buckets: sides are multiples of this [64 for sd-scripts and simpletuner, 16 for diffusers, 8
    /// for ai-toolkit].
    #[arg(long, value_name = "PIXELS", help_heading = cli::ORDER)]
    bucket_step: Option<u32>,

    /// buckets, sd-scripts: the least and the largest side [256,1024].
    #[arg(long, value_name = "MIN,MAX", value_parser = parse_sides, help_heading = cli::ORDER)]
    bucket_sides: Option<(u32, u32)>,

    /// buckets, sd-scripts: keep the sizes of small images, as its bucket_no_upscale.
    #[arg(long, help_heading = cli::ORDER)]
    bucket_no_upscale: bool,

    /// patch-budget: most patches of a batch. A batch has at most --batch-size rows.
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    patch_budget: Option<u64>,

    /// Output sizes, HEIGHTxWIDTH each, in multiples of 32. Batches cycle through them.
    /// --batch-size is the number of rows at the first size. Not for identity.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_size, help_heading = cli::ORDER)]
    multi_scale: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The order of the index.
    Sequential,
    /// A new random order in each epoch.
    Shuffle,
    /// Groups of consecutive samples in a random order, then shuffled within windows.
    ShardShuffle,
    /// A few samples of each of a few classes in a batch.
    Identity,
    /// Random draws, with probability 1 / number of samples of the class.
    Weighted,
    /// Random draws. Images with objects of rare categories come more often.
    RareObjects,
    /// Each sample several times in succession, spread over the ranks.
    Repeated,
    /// Large images first.
    LargestFirst,
    /// Batches of one size each, by the aspect ratios of images. For recipes with cover_crop.
    Buckets,
    /// Batches with at most --patch-budget patches. For recipes with patches of style qwen, or
    /// tiles.
    PatchBudget,
}

#[derive(Clone, Copy, ValueEnum)]
enum Style {
    /// kohya's sd-scripts.
    SdScripts,
    Diffusers,
    /// ostris' ai-toolkit.
    AiToolkit,
    #[value(name = "simpletuner")]
    SimpleTuner,
}

#[derive(Clone, Copy, ValueEnum)]
enum Prob {
    /// In proportion to its samples.
    SampleAvg,
    /// Equal for all classes.
    IdAvg,
}

impl SamplerArgs {
    /// Whether a flag sets the order.
    pub fn is_given(&self) -> bool {
        self.sampler.is_some() || self.no_shuffle || !self.multi_scale.is_empty()
    }

    /// The output sizes of the flags, if given.
    ///
    /// # Errors
    /// The order needs batches of fixed size.
    pub fn multi_scale(&self, sampler: Sampler) -> Result<Option<MultiScale>> {
        if self.multi_scale.is_empty() {
            return Ok(None);
        }
        let name = match sampler {
            Sampler::Identity { .. } => Some("identity"),
            Sampler::Buckets(_) => Some("buckets"),
            Sampler::PatchBudget { .. } => Some("patch-budget"),
            _ => None,
        };
        if let Some(name) = name {
            return Err(Error::config(format!(
                "--multi-scale changes the rows of batches, and --sampler {name} needs them \
                 unchanged: use one of them"
            )));
        }
        Ok(Some(MultiScale::new(self.multi_scale.clone())))
    }

    /// The order of the flags. Without a flag that names one, the config's order with the flags
    /// applied, or shuffled.
    ///
    /// # Errors
    /// A flag belongs to another order.
    pub fn sampler(&self, of_config: Option<Sampler>) -> Result<Sampler> {
        let named = match self.no_shuffle {
            true => Some(Order::Sequential),
            false => self.sampler,
        };
        let order = match (named, of_config) {
            (Some(order), _) => order,
            (None, Some(Sampler::Sequential)) => Order::Sequential,
            (None, Some(Sampler::Identity { .. })) => Order::Identity,
            (None, _) => Order::Shuffle,
        };
        let (config_per_id, config_prob) = match of_config {
            Some(Sampler::Identity { per_id, prob }) => (per_id, prob),
            _ => (4, IdentityProb::SampleAvg),
        };
        // Values that are not numbers count as 1.
        for (flag, given, of) in [
            ("--shard", self.shard, Order::ShardShuffle),
            ("--shuffle-window", self.shuffle_window, Order::ShardShuffle),
            ("--per-id", self.per_id.map(u64::from), Order::Identity),
            ("--prob", self.prob.map(|_| 1), Order::Identity),
            (
                "--rare-threshold",
                self.rare_threshold.map(|_| 1),
                Order::RareObjects,
            ),
            (
                "--empty-weight",
                self.empty_weight.map(|_| 1),
                Order::RareObjects,
            ),
            (
                "--num-samples",
                self.num_samples,
                match order {
                    Order::RareObjects => order,
                    _ => Order::Weighted,
                },
            ),
            ("--repeats", self.repeats.map(u64::from), Order::Repeated),
            (
                "--size-classes",
                self.size_classes.map(u64::from),
                Order::LargestFirst,
            ),
            (
                "--bucket-style",
                self.bucket_style.map(|_| 1),
                Order::Buckets,
            ),
            ("--bucket-area", self.bucket_area, Order::Buckets),
            ("--patch-budget", self.patch_budget, Order::PatchBudget),
            (
                "--bucket-sides",
                self.bucket_sides.map(|_| 1),
                Order::Buckets,
            ),
            (
                "--bucket-no-upscale",
                self.bucket_no_upscale.then_some(1),
                Order::Buckets,
            ),
            (
                "--bucket-step",
                self.bucket_step.map(u64::from),
                Order::Buckets,
            ),
        ] {
            let name = |order: Order| {
                let value = order.to_possible_value();
                value.map_or_else(String::new, |value| value.get_name().to_owned())
            };
            match given {
                Some(_) if order != of => {
                    return Err(Error::config(format!(
                        "{flag} needs --sampler {}, and the sampler is {}: remove it",
                        name(of),
                        name(order)
                    )));
                }
                Some(0) => return Err(Error::config(format!("{flag} is 0: use at least 1"))),
                _ => {}
            }
        }
        Ok(match order {
            Order::Sequential => Sampler::Sequential,
            Order::Shuffle => Sampler::Shuffle,
            Order::ShardShuffle => Sampler::ShardShuffle {
                shard: self.shard,
                window: self.shuffle_window.unwrap_or(16_384),
            },
            Order::Identity => Sampler::Identity {
                per_id: self.per_id.unwrap_or(config_per_id),
                prob: match self.prob {
                    Some(Prob::IdAvg) => IdentityProb::IdAvg,
                    Some(Prob::SampleAvg) => IdentityProb::SampleAvg,
                    None => config_prob,
                },
            },
            Order::Weighted => Sampler::Weighted {
                weights: SampleWeights::InverseClassFrequency,
                num_samples: self.num_samples,
            },
            Order::RareObjects => Sampler::Weighted {
                weights: SampleWeights::ObjectFrequency(ObjectFrequency {
                    threshold: self.rare_threshold.unwrap_or(ObjectFrequency::THRESHOLD),
                    empty: self.empty_weight.unwrap_or(1.0),
                }),
                num_samples: self.num_samples,
            },
            Order::Repeated => Sampler::RepeatedAugmentation {
                repeats: self.repeats.unwrap_or(3),
            },
            Order::LargestFirst => Sampler::LargestFirst {
                classes: self.size_classes.unwrap_or(16),
            },
            Order::Buckets => Sampler::Buckets(self.bucket_rule()),
            Order::PatchBudget => Sampler::PatchBudget {
                patches: self.patch_budget.ok_or_else(|| {
                    Error::config(
                        "--sampler patch-budget needs --patch-budget, the most patches of a batch: \
                         give it",
                    )
                })?,
            },
        })
    }
}

impl SamplerArgs {
    fn bucket_rule(&self) -> BucketRule {
        let usual = BucketRule::default();
        BucketRule {
            area: self.bucket_area.unwrap_or(usual.area),
            step: self.bucket_step,
            style: match self.bucket_style {
                None => usual.style,
                Some(Style::SdScripts) => BucketStyle::SdScripts,
                Some(Style::Diffusers) => BucketStyle::Diffusers,
                Some(Style::AiToolkit) => BucketStyle::AiToolkit,
                Some(Style::SimpleTuner) => BucketStyle::SimpleTuner,
            },
            sides: self.bucket_sides,
            upscale: !self.bucket_no_upscale,
        }
    }
}

fn parse_sides(text: &str) -> std::result::Result<(u32, u32), String> {
    let (least, most) = text
        .split_once(',')
        .ok_or("use MIN,MAX, such as 256,1024")?;
    let number = |s: &str| s.parse::<u32>().map_err(|e| format!("'{s}': {e}"));
    Ok((number(least)?, number(most)?))
}

fn parse_size(text: &str) -> std::result::Result<(u32, u32), String> {
    let (height, width) = text
        .split_once('x')
        .ok_or("use HEIGHTxWIDTH, such as 224x224")?;
    let number = |s: &str| match s.parse::<u32>() {
        Ok(n) if n < 32 => Err(format!("'{s}' is below 32: use at least 32")),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("'{s}': {e}")),
    };
    Ok((number(height)?, number(width)?))
}
