//! Measures the cost of a run: memory of processes, processor time, the decoder's maximum rate.
//! Also reads what the system offers to a run.
//!
//! Runs in the consumer, in a process that watches it, or (for the decoder's rate) in separate
//! processes. Returns structs only; the command line prints them.
//!
//! - `processes`: one process, from /proc;
//! - `tree`: a pool's processes, sampled, and their medians;
//! - `system`: what the system offers to a run; `cpu_clocks`: its unused processors;
//! - `page_cache`: cached files, which belong to no process;
//! - `statistics`: median, slope, growth;
//! - `ceiling`: the rate of the decoder alone.

#[cfg(feature = "codecs")]
pub mod ceiling;
mod cpu_clocks;
mod page_cache;
pub mod processes;
pub mod statistics;
pub mod system;
mod tree;

pub use cpu_clocks::CpuClocks;
pub use page_cache::PageCache;
pub use processes::{ProcessMemory, ProcessUsage, TreeUsage};
pub use tree::{PoolProcess, ProcessRole, SteadyMemory, SteadyProcess, TreeSample};
