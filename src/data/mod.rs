//! What there is: the samples of a data set, where they lie, and how large they are.
//!
//! - [`index`]: paths, labels and class names, sealed for all processes;
//! - [`shard`]: tar shards as bytes;
//! - [`survey`]: the headers of all samples;
//! - [`packed_page`]: compressed pages of Parquet files;
//! - [`sample_sizes`]: the upright size of every sample, in shared memory;
//! - `linked_folders`: folders that are reached again through links.
//!
//! Made in the consumer; coordinator and workers map what is sealed. Never in here:
//! pixels, recipes, an order of samples, a thread that outlives a call.

pub mod index;
mod linked_folders;
pub(crate) mod packed_page;
pub(crate) mod sample_sizes;
pub(crate) mod shard;
pub mod survey;
