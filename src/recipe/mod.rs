//! Recipes: the operations on each sample, as data, and the program compiled from them.
//!
//! The same in every process. Pure: no clock, no processes, and no I/O except reading recipe files
//! (`file`). A [`Recipe`] is what the user wrote. A `SampleProgram` is what runs: checked, and in
//! the planned order. Never in here: pixels, image files, the source of random numbers.
//!
//! Definition:
//! - `recipe_spec`: a recipe; `preset`: recipes with a name; `file`: recipe files;
//! - `ops`: the operations, one file each; `op`: the list of them; `operation`: their trait;
//! - `operation_docs`: the documentation of an operation; `catalogue`: its description for users;
//! - `values`, `tensor`: the types of parameters; `defaults`: default values for serde;
//! - `mixing`: operations on batches.
//!
//! Checks and planning:
//! - `check`: the checks of a recipe; `pixel_state`: the state of the pixels between operations;
//! - `suggestion`: fixes for text where a number is expected; `ranges`: range checks;
//! - `row_extent`: the size of rows;
//! - `planner`: which operation may move after which; `move_unit`: the units that it moves;
//! - `program`: the compiled recipe, and that of joined samples in `program/`; `crop_check`: the
//!   checks of several crops of an image;
//! - `crop_rule`, `hull_rule`: what a device does of a program, with one crop and with several;
//! - `profile`: the numeric profile; `channel_scaling`: the values of elements.
//!
//! Draws:
//! - `program_op`: an operation at its place in a recipe; `random`: its random numbers;
//! - `drawn_picture`: what draws read of a picture;
//! - `step`: an operation with drawn values; `steps`: lists of steps, drawn or of the largest case;
//! - `joints`: operations that join pictures of several samples, and what they draw;
//! - `buffer_effect`: what a step does to buffers; `size_bounds`: image sizes over all draws;
//! - `label_steps`: what steps do to the labels of pixels; `pair_steps`: to another image;
//! - `augment`: code shared by policies; `crop_sizes`: code shared by operations on sizes;
//! - `nested_ops`: code shared by operations that contain operations; `permutation`: an order of
//!   the channels;
//! - `buckets`: aspect-ratio buckets: the size of an image's row; `patches`: rows of patches and
//!   tiles;
//! - `geometry`: boxes; `placement`: flips and quarter turns; `weights`: the weights of resizes;
//!   `fixed_weights`: the same in integers.

pub(crate) mod augment;
mod buckets;
pub(crate) mod buffer_effect;
mod catalogue;
mod channel_scaling;
mod check;
mod crop_check;
mod crop_rule;
mod crop_sizes;
pub(crate) mod defaults;
mod drawn_picture;
pub mod file;
pub(crate) mod fixed_weights;
pub(crate) mod geometry;
mod hull_rule;
pub(crate) mod joints;
mod label_steps;
mod mixing;
pub(crate) mod move_unit;
mod nested_ops;
mod op;
mod operation;
mod operation_docs;
mod ops;
mod pair_steps;
mod patches;
mod permutation;
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
pub(crate) mod values;
pub(crate) mod weights;

pub(crate) use buckets::BucketFitter;
pub use buckets::{BucketRule, BucketStyle};
pub use catalogue::{OperationInfo, ParameterInfo};
pub(crate) use channel_scaling::ChannelScaling;
pub(crate) use crop_rule::{CropRowBytes, CropRule, MAX_COLOR_STEPS};
#[cfg(test)]
pub(crate) use drawn_picture::FixedBoxes;
pub(crate) use drawn_picture::{BoxSource, DrawnPicture};
pub use file::RecipeFormat;
pub use geometry::PixelRect;
pub(crate) use hull_rule::{HullCropRoom, HullRule, MAX_BLUR_RADIUS, MAX_LEVEL_STEPS};
pub use joints::JointDraw;
pub(crate) use label_steps::{LabelMoves, RasterMoves};
pub use mixing::{MixChoice, MixOp, Mixing};
pub use op::*;
pub use ops::auto_augment::AutoPolicy;
pub use ops::corner_crop::ImageCorner;
pub use ops::cover_crop::CropPlace;
pub use ops::pad_to::PadAnchor;
pub use ops::rand_augment::RandTable;
pub(crate) use pair_steps::PairSteps;
pub(crate) use patches::OverviewPlace;
pub use patches::{
    CutRule, GridPinpoints, PatchGrid, PatchOrder, PatchRule, PatchStyle, TileCanvases, TileRule,
    TileStyle,
};
#[doc(hidden)]
pub use placement::PixelPlacement;
pub use planner::OperationMove;
pub use profile::NumericProfile;
#[doc(hidden)]
pub use program::OutputFormat;
pub(crate) use program::{JoinedStage, SampleProgram};
#[cfg(test)]
pub(crate) use random::OneStream;
pub use recipe_spec::{Recipe, RecipeCrop, ReorderMode};
pub(crate) use row_extent::RowExtent;
pub use step::{AugmentStep, BoxFill, OpencvFilter, Step};
pub use tensor::{DataType, MemoryLayout};
pub use values::{
    AffineStyle, AlphaMode, AspectDistribution, BackgroundColor, ChainDepth, ColorOrder,
    ColorSpace, DecodeMode, EraseFill, InterpolationMode, JitterStyle, LabelFilter, LengthRounding,
    OrientationMode, Padding, PaddingMode, PerChannel, ResizeTo, RotationStyle, Shear, Size, Span,
    TruncationPolicy, WhitePoint,
};
