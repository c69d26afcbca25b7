//! What is done to one sample: operations as data, and what follows from them.
//!
//! Pure: no I/O but the reading of recipe files (`file`), no clock, no processes;
//! the same in every process. A [`Recipe`] is what the user wrote; `SampleProgram`
//! is what runs, checked and in the one order that the stages have.

mod augment;
mod check;
pub(crate) mod draw;
mod fault;
pub mod file;
pub(crate) mod fold;
pub(crate) mod geometry;
mod hand_over;
mod mixing;
pub(crate) mod needs;
mod ops;
mod placement;
pub(crate) mod planner;
mod preset;
mod profile;
mod program;
mod sizes;
mod step;
mod tensor;
pub(crate) mod weights;
mod written;

pub use file::RecipeFormat;
pub(crate) use hand_over::{CropRoom, CropRule, MAX_COLOR_STEPS};
pub use mixing::{Choice as MixChoice, MixOp, Mixing};
pub use ops::{
    Alpha, Anchor, Aspect, AugMix, AutoAugment, AutoPolicy, Background, BoundedResizedCrop, Cast,
    CenterCrop, ChainDepth, ColorJitter, ColorOrder, ColorSpace, ConvertColor, CropWithPadding,
    Cutout, Decode, DecodeMode, Erasing, GaussianBlur, Grayscale, Interpolation, JitterStyle,
    Layout, Normalize, Op, Pad, PadTo, Padding, PaddingMode, PcaLighting, PerChannel, RandAugment,
    RandTable, RandomCrop, RandomErasing, RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop,
    RandomRotate90, RandomRotation, RandomVerticalFlip, Resize, ResizeTo, Rotate90, RotationStyle,
    Rounding, Size, Span, TimmAugment, TrivialAugment, Upright, WhitePoint,
};
#[doc(hidden)]
pub use placement::Placement;
pub use planner::Move;
pub use profile::NumericProfile;
#[doc(hidden)]
pub use program::Emission;
#[cfg(test)]
pub(crate) use program::OneStream;
pub(crate) use program::{RowExtent, SampleProgram};
pub use step::{Augment, Erased, Step};
pub use tensor::{Dtype, MemoryLayout};
pub use written::{Recipe, Reorder};
