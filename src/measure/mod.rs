//! What a run costs: memory of processes, processor time, the decoder's ceiling;
//! and what the system gives to it.
//!
//! In the consumer (and, for the ceiling, in processes of its own). Result
//! structs only: who prints them is the binary's business.

#[cfg(feature = "codecs")]
pub mod ceiling;
pub mod processes;
pub mod system;

pub use processes::{ProcessUsage, TreeUsage};
