//! The memory plan: what a run will do and use, computed before it starts.
//!
//! In the consumer. Nothing here decodes a pixel, or allocates the memory that it counts.
//!
//! - `scratch_bound`: upper bound of the memory of a sample over all random values; `resize_bound`:
//!   its resizes; `joined_bound`: rows of several samples;
//! - `batch_sizes`: the sizes of rows that an image may get;
//! - `recipe_outline`: a recipe's orders, moves and fusions, with bytes at every stage;
//! - `run_memory`: the memory of a run, and what to change to fit a limit.

pub(crate) mod batch_sizes;
mod joined_bound;
mod recipe_outline;
mod resize_bound;
pub(crate) mod run_memory;
mod scratch_bound;

pub use recipe_outline::{
    CropOutline, DrawnSteps, FusedOperations, JointOutline, NumericChoice, RecipeOutline,
    RecipeStages, StageLine,
};
pub use run_memory::{LargestSample, MemoryLimit, RunMemory, RunShape};
