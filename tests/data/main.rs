//! Data sets in tar shards, and caches of them; lists with box files.

#[path = "../common/mod.rs"]
mod common;

mod boxes;
mod cache;
mod shards;
