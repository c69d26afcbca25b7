//! What a run will do and take, said before it begins.
//!
//! In the consumer. Nothing here decodes a pixel, or allocates what it speaks of.
//!
//! - `most`: the most that any draw of a sample takes, `shrink` of its resizes;
//! - `outline`: a recipe's orders, moves and fusions, with bytes at every stage;
//! - `memory`: the memory of a run, and what to choose under a limit.

pub(crate) mod memory;
mod most;
mod outline;
mod shrink;

pub use memory::{LargestSample, MemoryForecast, MemoryLimit, RunShape};
pub use outline::{Choice, DrawnSteps, Fusion, Order, Outline, StageLine};
