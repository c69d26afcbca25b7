//! What a step does to the buffers that hold a picture: the one place that says it. The
//! memory of a sample (`cut`) and the forecast of all draws (`forecast`) follow it; the
//! canvas (`pixels`) does it, and tests hold each to the others.

use super::geometry::pillow_quarter_turns;
use super::step::{AugmentStep, Step};
use super::tensor::DataType;
use super::values::{Padding, Size};

/// What becomes of the buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BufferEffect {
    /// Another part of the pixels counts, or it is turned. One resize of such a part is
    /// done with what is folded into it: it reads one buffer and writes the other.
    Folds,
    /// Pixels change where they lie.
    InPlace,
    /// It is turned by quarters, and no pixel moves.
    Turns(u8),
    /// One buffer is read, and the other of its type written.
    Copies {
        to: CopyShape,
        /// Floats that are held beside both.
        scratch: Option<FloatScratch>,
    },
    /// It is held in floats from here on, or in bytes.
    Converts { floats: bool },
    /// The picture is kept beside itself, and a sum begun.
    Keeps,
    /// It is written over itself, upright.
    Uprights,
}

/// Floats beside a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FloatScratch {
    /// The rows of a blur of this kernel.
    Blur(Size),
    /// Displacements that are smoothed by deviations of this.
    Elastic([f64; 2]),
}

/// How a copy lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CopyShape {
    /// As it was.
    Same,
    /// With this around, seen upright.
    Padded(Padding),
    /// Upright.
    Upright,
    /// Upright, by a copy of its own in front of the other where it is turned.
    UprightFirst,
    /// Upright, in this size.
    Sized(Size),
}

impl BufferEffect {
    fn copies(to: CopyShape) -> Self {
        Self::Copies { to, scratch: None }
    }
}

impl Step {
    /// The effect on a picture that is square, is not, or of which it is not known.
    pub(crate) fn effect(&self, is_square: Option<bool>) -> BufferEffect {
        match *self {
            Self::Crop(_)
            | Self::Mirror
            | Self::UpsideDown
            | Self::Turn(_)
            | Self::Resize { .. } => BufferEffect::Folds,
            Self::Pad { padding, .. } => BufferEffect::copies(CopyShape::Padded(padding)),
            Self::Rotate { size, .. } => BufferEffect::copies(CopyShape::Sized(size)),
            Self::Blur { kernel, .. } => BufferEffect::Copies {
                to: CopyShape::Same,
                scratch: Some(FloatScratch::Blur(kernel)),
            },
            Self::Elastic { sigma, .. } => BufferEffect::Copies {
                to: CopyShape::Upright,
                scratch: Some(FloatScratch::Elastic(sigma)),
            },
            Self::Convert(..) | Self::Normalize { .. } => BufferEffect::Converts { floats: true },
            Self::Cast(dtype) => BufferEffect::Converts {
                floats: dtype != DataType::U8,
            },
            Self::Augment(step) => step.effect(is_square),
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Shift(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Erase { .. } => BufferEffect::InPlace,
        }
    }
}

impl AugmentStep {
    fn effect(self, is_square: Option<bool>) -> BufferEffect {
        match self {
            Self::Rotate { degrees, .. } => {
                match is_square.and_then(|square| pillow_quarter_turns(degrees, square)) {
                    Some(half @ (0 | 2)) => BufferEffect::Turns(half),
                    _ => BufferEffect::copies(CopyShape::Upright),
                }
            }
            Self::Affine { .. } | Self::Perspective { .. } => {
                BufferEffect::copies(CopyShape::Upright)
            }
            Self::GaussianBlur { .. } | Self::MotionBlur { .. } => {
                BufferEffect::copies(CopyShape::UprightFirst)
            }
            Self::Resample { size, .. } => BufferEffect::copies(CopyShape::Sized(size)),
            Self::Sharpness(_) => BufferEffect::copies(CopyShape::Same),
            Self::Keep => BufferEffect::Keeps,
            Self::Add { .. } | Self::Blend { .. } => BufferEffect::Uprights,
            Self::AutoContrast
            | Self::Equalize
            | Self::Invert
            | Self::Posterize { .. }
            | Self::Solarize { .. }
            | Self::SolarizeAdd { .. }
            | Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Color(_)
            | Self::Hue(_)
            | Self::Fill { .. } => BufferEffect::InPlace,
        }
    }
}
