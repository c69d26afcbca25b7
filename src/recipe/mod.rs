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
mod catalogue;
mod check;
mod defaults;
mod described;
mod drawn;
pub(crate) mod effect;
mod extent;
pub mod file;
pub(crate) mod geometry;
mod hand_over;
mod inner;
mod known;
mod meant;
mod mixing;
mod op;
mod operation;
mod ops;
mod placement;
pub(crate) mod planner;
mod preset;
mod profile;
mod program;
pub(crate) mod random;
mod ranges;
pub(crate) mod reach;
mod sizes;
mod step;
pub(crate) mod steps;
mod tensor;
pub(crate) mod unit;
mod values;
pub(crate) mod weights;
mod written;

pub use catalogue::{OperationInfo, ParameterInfo};
pub(crate) use extent::RowExtent;
pub use file::RecipeFormat;
pub use geometry::Rect;
pub(crate) use hand_over::{CropRoom, CropRule, MAX_COLOR_STEPS};
pub use mixing::{Choice as MixChoice, MixOp, Mixing};
pub use op::*;
pub use ops::auto_augment::AutoPolicy;
pub use ops::pad_to::Anchor;
pub use ops::rand_augment::RandTable;
#[doc(hidden)]
pub use placement::Placement;
pub use planner::Move;
pub use profile::NumericProfile;
#[doc(hidden)]
pub use program::Emission;
pub(crate) use program::SampleProgram;
#[cfg(test)]
pub(crate) use random::OneStream;
pub use step::{Augment, Erased, OpencvFilter, Step};
pub use tensor::{Dtype, MemoryLayout};
pub use values::{
    Alpha, Aspect, Background, ChainDepth, ColorOrder, ColorSpace, DecodeMode, Erasing,
    Interpolation, JitterStyle, Padding, PaddingMode, PerChannel, ResizeTo, RotationStyle,
    Rounding, Shear, Size, Span, Truncated, Upright, WhitePoint,
};
pub use written::{Recipe, Reorder};
