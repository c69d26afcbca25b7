//! Orders of an epoch: which sample is at which position.
//!
//! Pure, like all of `order`. The sample of a position is computed by itself. Data that an
//! order needs is in a [`SamplerTable`](super::table::SamplerTable), which is made once.
//!
//! | order | cost of a position | bytes of shared table |
//! |---|---|---|
//! | sequential, shuffle, shard shuffle, repeated augmentation | O(1) | none |
//! | weighted | O(log samples) | 8 per sample |
//! | largest first | O(log classes) | 4 per sample, 4 per class |
//! | buckets | O(log buckets) | 4 per sample, 12 per bucket |
//! | identity | O(1); O(P^2) additions for the first row of a batch of P identities | 4 per sample, 4 per identity |
//!
//! Positions count over all ranks: rank r of w has r, r + w, r + 2w and so on, so every rank has
//! the same number. After the last position the order starts again, and such rows count as
//! repeated. Identity and buckets draw whole batches instead, see `identity` and `bucket_batches`.
//!
//! - `kind`: the samplers by name; `sample_order`: the sample of a position for any sampler;
//! - `bucket_batches`, `identity`, `largest_first`, `shuffled_shards`, `weighted`: one order each;
//! - `multi_scale`: alternating output sizes.
//!
//! Never in here: the data set itself, batches and ranks.

mod bucket_batches;
#[cfg(test)]
mod bucket_tests;
mod identity;
mod kind;
mod largest_first;
mod multi_scale;
mod sample_order;
mod shuffled_shards;
#[cfg(test)]
mod tests;
mod weighted;

pub(crate) use bucket_batches::{
    BucketBatch, BucketBatches, BucketSampler, PatchTableFault, bucket_table, patch_table,
};
pub(crate) use identity::{DrawPosition, identity_table};
pub(crate) use kind::TableForm;
pub use kind::{IdentityProb, IdentityRatio, ObjectFrequency, SampleWeights, Sampler};
pub(crate) use largest_first::size_table;
pub use multi_scale::MultiScale;
pub(crate) use multi_scale::{BatchScale, ScaleCycle};
pub(crate) use sample_order::SampleOrder;
pub(crate) use weighted::{inverse_class_frequency, weight_table};
