//! Data sets in tar shards, and caches of them.

#[path = "../common/mod.rs"]
mod common;

mod cache;
mod shards;
