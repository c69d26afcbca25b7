//! The units that the planner moves: an operation, or a part of one.

use serde::Serialize;

/// A unit that the planner moves: an operation, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct MoveUnit {
    /// Index in `Recipe::ops`. `usize::MAX` for the decoder's conversion to grey.
    pub(crate) op: usize,
    pub(crate) part: OperationPart,
}

impl MoveUnit {
    /// `decode: {color: grey}`: runs directly after the decoding.
    pub(crate) const LUMA: Self = Self {
        op: usize::MAX,
        part: OperationPart::Color,
    };
}

/// Kinds of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationPart {
    Crop,
    Resize,
    Turn,
    Pad,
    Rotate,
    /// Changes each pixel independently.
    Color,
    Normalize,
    Cast,
    Blur,
    Erase,
    /// A policy's operations. They need the whole image and never move.
    Augment,
}
