//! What the planner moves as one: an operation, or a part of one.

use serde::Serialize;

/// An operation, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct MoveUnit {
    /// Place in `Recipe::ops`; the decoding's own conversion to grey has that of
    /// no operation.
    pub(crate) op: usize,
    pub(crate) part: OperationPart,
}

impl MoveUnit {
    /// `decode: {color: grey}`, behind the decoding.
    pub(crate) const LUMA: Self = Self {
        op: usize::MAX,
        part: OperationPart::Color,
    };
}

/// Kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationPart {
    Crop,
    Resize,
    Turn,
    Pad,
    Rotate,
    /// Changes each pixel by itself.
    Color,
    Normalize,
    Cast,
    Blur,
    Erase,
    /// Whatever a policy draws: sees the whole picture, and never moves.
    Augment,
}
