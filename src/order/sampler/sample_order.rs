//! A sampler with its table: which sample is at a position.
//!
//! Pure; used in consumer, coordinator and workers. Never in here: how a draw is made; see the file
//! of each order.

use std::sync::Arc;

use super::bucket_batches::BucketSampler;
use super::identity::IdentitySampler;
use super::kind::Sampler;
use super::largest_first::LargestFirst;
use super::shuffled_shards::ShuffledShards;
use super::weighted::WeightedSampler;
use crate::error::{Error, Result};
use crate::order::key::OrderKey;
use crate::order::options::OrderOptions;
use crate::order::table::SamplerTable;

/// A sampler with its table.
#[derive(Debug, Clone)]
pub(crate) enum SampleOrder {
    Sequential,
    Shuffle {
        samples: u64,
    },
    Shards(ShuffledShards),
    Identity(Arc<IdentitySampler>),
    Weighted(WeightedSampler),
    Repeated {
        samples: u64,
        repeats: u64,
    },
    Largest(LargestFirst),
    Buckets(Arc<BucketSampler>),
    Given {
        table: Arc<SamplerTable>,
        world: u64,
    },
}

impl SampleOrder {
    /// # Errors
    /// The table is missing, superfluous, of another form or number of samples, or cannot fill a
    /// batch.
    pub(crate) fn new(
        options: &OrderOptions,
        samples: u64,
        table: Option<Arc<SamplerTable>>,
    ) -> Result<Self> {
        let OrderOptions { batch, world, .. } = *options;
        let sampler = &options.sampler;
        let other = || {
            Error::protocol(format!(
                "the sampler {sampler} over {samples} samples came without its table, or with one \
                 of other samples"
            ))
        };
        let table = match (sampler.needs_table(), table) {
            (false, None) => {
                return Ok(match *sampler {
                    Sampler::Sequential => Self::Sequential,
                    Sampler::ShardShuffle { shard, window } => Self::Shards(ShuffledShards {
                        samples,
                        shard: shard.unwrap_or(Sampler::RUN),
                        window,
                    }),
                    Sampler::RepeatedAugmentation { repeats } => Self::Repeated {
                        samples,
                        repeats: u64::from(repeats),
                    },
                    _ => Self::Shuffle { samples },
                });
            }
            (true, Some(table)) => table,
            _ => return Err(other()),
        };
        let of_these = match &*table {
            SamplerTable::Groups(t) => t.samples() == samples,
            SamplerTable::Sums(t) => t.sums().len() as u64 == samples,
            SamplerTable::Orders(t) => {
                *sampler
                    == Sampler::Given {
                        num_samples: t.rows(),
                    }
            }
        };
        if !of_these {
            return Err(other());
        }
        match *sampler {
            Sampler::Identity { per_id, prob } => IdentitySampler::new(table, batch, per_id, prob)
                .map(|i| Self::Identity(Arc::new(i))),
            Sampler::Given { .. } => Ok(Self::Given {
                table,
                world: u64::from(world.max(1)),
            }),
            Sampler::LargestFirst { .. } => Ok(Self::Largest(LargestFirst { table })),
            Sampler::Buckets(_) | Sampler::PatchBudget { .. } => {
                let buckets = BucketSampler::new(table, sampler, (batch, world), options.tail);
                Ok(Self::Buckets(Arc::new(buckets.ok_or_else(other)?)))
            }
            _ => Ok(Self::Weighted(WeightedSampler { table })),
        }
    }

    /// The sample at a position below the number of positions. Not for identity and buckets, which
    /// have batches instead of positions: there it is a number of the index.
    pub(crate) fn id_at(&self, key: OrderKey, position: u64) -> u64 {
        match self {
            Self::Sequential | Self::Identity(_) | Self::Buckets(_) => position,
            Self::Shuffle { samples } => key.shuffle(*samples).at(position),
            Self::Shards(shards) => shards.id_at(key, position),
            Self::Weighted(weighted) => weighted.id_at(key, position),
            Self::Repeated { samples, repeats } => key.shuffle(*samples).at(position / repeats),
            Self::Largest(largest) => largest.id_at(key, position),
            // Each rank has the order of its own rows.
            Self::Given { table, world } => table
                .given_orders()
                .map_or(u64::MAX, |orders| orders.id_at(key.epoch, position / world)),
        }
    }

    /// Number of consecutive positions with the same sample.
    pub(crate) fn repeat_count(&self) -> u64 {
        match self {
            Self::Repeated { repeats, .. } => *repeats,
            _ => 1,
        }
    }
}
