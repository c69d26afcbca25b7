//! Tar shards as bytes: members written, and what a cache says of its shards.
//!
//! Runs in the consumer. Never in here: pictures, indexes, recipes, threads.
//!
//! - `append`: a shard written, member by member;
//! - `manifest`: the checksummed manifests of a cache and of each shard.

pub(crate) mod append;
pub(crate) mod manifest;
