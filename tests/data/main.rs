//! Data sets in tar shards and Parquet files, and caches of them, here and in object stores; lists
//! with box files.

#[path = "../common/mod.rs"]
mod common;

mod address_lists;
mod answers;
mod boxes;
mod cache;
mod from_stores;
mod hostile_stores;
mod objects_in_stores;
mod parquet;
mod sent;
mod shards;
mod stores;
mod tars_in_stores;
mod web_servers;
