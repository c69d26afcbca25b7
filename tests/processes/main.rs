//! Processes: who ends them, what they leave behind, how much memory they take.

#[path = "../common/mod.rs"]
mod common;

mod big_caller;
mod limits;
mod namespaces;
mod rss;
mod scene_memory;
mod shutdown;
mod stderr;
mod surroundings;
mod ulimits;
mod worker_memory;
