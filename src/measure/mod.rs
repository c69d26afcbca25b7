//! What a run costs: memory of processes, processor time, the decoder's ceiling;
//! and what the system gives to it.
//!
//! In the consumer, in a process that watches it, or (for the ceiling) in processes of
//! their own. Result structs only: who prints them is the binary's business.
//!
//! - `processes`: one process, from /proc;
//! - `tree`: a pool's processes, sampled, and their medians;
//! - `system`: what the system gives to a run; `idle`: what nobody used of its processors;
//! - `page_cache`: cached files, which belong to no process;
//! - `statistics`: median, slope, growth;
//! - `ceiling`: the decoder alone.

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
