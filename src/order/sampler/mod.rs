//! Orders of an epoch: which sample stands at which position.
//!
//! Pure, as all of `plan`. Each order answers for one position alone; what it
//! must know of the data lies in a [`SamplerTable`] that is made once.
//!
//! | order | a position costs | shared table, bytes |
//! |---|---|---|
//! | sequential, shuffle, shard shuffle, repeated augmentation | O(1) | none |
//! | weighted | O(log samples) | 8 a sample |
//! | largest first | O(log classes) | 4 a sample, 4 a class |
//! | identity | O(1); O(P^2) additions for the first row of a batch of P identities | 4 a sample, 4 an identity |
//!
//! Positions go over all ranks: rank r of w has r, r + w, r + 2w and so on, so
//! every rank has as many. Positions behind the last begin again at the first,
//! and their rows count as repeated. Identity deals out whole batches instead:
//! see `identity`.
//!
//! - `kind`: the orders by name; `order`: a position's sample, whichever the order;
//! - `identity`, `largest`, `shards`, `weighted`: one order each;
//! - `multi_scale`: output sizes that take turns.
//!
//! Never in here: the data set itself, batches and ranks.

mod identity;
mod kind;
mod largest_first;
mod multi_scale;
mod sample_order;
mod shuffled_shards;
#[cfg(test)]
mod tests;
mod weighted;

pub(crate) use identity::{DrawPosition, identity_table};
pub(crate) use kind::TableForm;
pub use kind::{IdentityProb, IdentityRatio, SampleWeights, Sampler};
pub(crate) use largest_first::size_table;
pub use multi_scale::MultiScale;
pub(crate) use multi_scale::{BatchScale, ScaleCycle};
pub(crate) use sample_order::SampleOrder;
pub(crate) use weighted::{inverse_class_frequency, weight_table};
