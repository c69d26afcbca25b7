//! What a run will do and take, said before it begins.
//!
//! In the consumer. Nothing here decodes a pixel, or allocates what it speaks of.
//!
//! - `most`: the most that any draw of a sample takes, `shrink` of its resizes;
//! - `outline`: a recipe's orders, moves and fusions, with bytes at every stage;
//! - `memory`: the memory of a run, and what to choose under a limit.

mod recipe_outline;
mod resize_bound;
pub(crate) mod run_memory;
mod scratch_bound;

pub use recipe_outline::{
    DrawnSteps, FusedOperations, NumericChoice, RecipeOutline, RecipeStages, StageLine,
};
pub use run_memory::{LargestSample, MemoryLimit, RunMemory, RunShape};
