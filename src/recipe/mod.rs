//! What is done to one sample: operations as data, and what follows from them.
//!
//! The same in every process. Pure: no I/O but the reading of recipe files (`file`), no
//! clock, no processes. A [`Recipe`] is what the user wrote; `SampleProgram` is what
//! runs, checked and in the one order that the stages have. Never in here: pixels, files
//! of pictures, where random numbers come from.
//!
//! What is written:
//! - `written`: a recipe; `preset`: those that have a name; `file`: recipes as text;
//! - `ops`: the operations, a file each; `op`: the list of them; `operation`: what one is;
//!   `described`: what each says of itself; `catalogue`: that as data for a user;
//! - `values`, `tensor`: the types of parameters; `defaults`: what serde asks of them;
//! - `mixing`: what is done to batches.
//!
//! What is checked and planned:
//! - `check`: the walk over all operations; `known`: what is known between them;
//!   `meant`: what a text was meant as where a number belongs;
//!   `ranges`: numbers in their ranges; `extent`: how large rows are;
//! - `planner`: which operation may move behind which; `unit`: what moves as one;
//! - `program`: the result; `hand_over`: what a device does of it; `profile`: what shows
//!   in the pixels.
//!
//! What is drawn:
//! - `drawn`: an operation at its place; `random`: its numbers; `steps`: where it puts its
//!   steps; `step`: what one is; `effect`: what one does to buffers; `reach`: sizes over
//!   all draws;
//! - `augment`: what policies share; `sizes`: what operations on sizes share; `inner`:
//!   what operations that hold operations share;
//! - `geometry`: boxes; `placement`: how a picture is turned; `weights`: those of resizes.

pub(crate) mod augment;
pub(crate) mod buffer_effect;
mod catalogue;
mod check;
mod crop_rule;
mod crop_sizes;
mod defaults;
pub mod file;
pub(crate) mod geometry;
mod mixing;
pub(crate) mod move_unit;
mod nested_ops;
mod op;
mod operation;
mod operation_docs;
mod ops;
mod pixel_state;
mod placement;
pub(crate) mod planner;
mod preset;
mod profile;
mod program;
mod program_op;
pub(crate) mod random;
mod ranges;
mod recipe_spec;
mod row_extent;
pub(crate) mod size_bounds;
mod step;
pub(crate) mod steps;
mod suggestion;
mod tensor;
mod values;
pub(crate) mod weights;

pub use catalogue::{OperationInfo, ParameterInfo};
pub(crate) use crop_rule::{CropRowBytes, CropRule, MAX_COLOR_STEPS};
pub use file::RecipeFormat;
pub use geometry::PixelRect;
pub use mixing::{MixChoice, MixOp, Mixing};
pub use op::*;
pub use ops::auto_augment::AutoPolicy;
pub use ops::pad_to::PadAnchor;
pub use ops::rand_augment::RandTable;
#[doc(hidden)]
pub use placement::PixelPlacement;
pub use planner::OperationMove;
pub use profile::NumericProfile;
#[doc(hidden)]
pub use program::OutputFormat;
pub(crate) use program::SampleProgram;
#[cfg(test)]
pub(crate) use random::OneStream;
pub use recipe_spec::{Recipe, ReorderMode};
pub(crate) use row_extent::RowExtent;
pub use step::{AugmentStep, BoxFill, OpencvFilter, Step};
pub use tensor::{DataType, MemoryLayout};
pub use values::{
    AlphaMode, AspectDistribution, BackgroundColor, ChainDepth, ColorOrder, ColorSpace, DecodeMode,
    EraseFill, InterpolationMode, JitterStyle, LengthRounding, OrientationMode, Padding,
    PaddingMode, PerChannel, ResizeTo, RotationStyle, Shear, Size, Span, TruncationPolicy,
    WhitePoint,
};
