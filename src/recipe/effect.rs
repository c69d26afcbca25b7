//! What a step does to the buffers that hold a picture: the one place that says it. The
//! memory of a sample (`cut`) and the forecast of all draws (`forecast`) follow it; the
//! canvas (`pixels`) does it, and tests hold each to the others.

use super::geometry::plain_quarters;
use super::step::{Augment, Step};
use super::tensor::Dtype;
use super::values::{Padding, Size};

/// What becomes of the buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    /// Another part of the pixels counts, or it is turned. One resize of such a part is
    /// done with what is folded into it: it reads one buffer and writes the other.
    Folds,
    /// Pixels change where they lie.
    InPlace,
    /// It is turned by quarters, and no pixel moves.
    Turns(u8),
    /// One buffer is read, and the other of its type written.
    Copies {
        to: Copied,
        /// Floats that are held beside both.
        beside: Option<Beside>,
    },
    /// It is held in floats from here on, or in bytes.
    Becomes { floats: bool },
    /// The picture is kept beside itself, and a sum begun.
    Keeps,
    /// It is written over itself, upright.
    Uprights,
}

/// Floats beside a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Beside {
    /// The rows of a blur of this kernel.
    Blur(Size),
    /// Displacements that are smoothed by deviations of this.
    Elastic([f64; 2]),
}

/// How a copy lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Copied {
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

impl Effect {
    fn copies(to: Copied) -> Self {
        Self::Copies { to, beside: None }
    }
}

impl Step {
    /// The effect on a picture that is square, is not, or of which it is not known.
    pub(crate) fn effect(&self, is_square: Option<bool>) -> Effect {
        match *self {
            Self::Crop(_)
            | Self::Mirror
            | Self::UpsideDown
            | Self::Turn(_)
            | Self::Resize { .. } => Effect::Folds,
            Self::Pad { padding, .. } => Effect::copies(Copied::Padded(padding)),
            Self::Rotate { size, .. } => Effect::copies(Copied::Sized(size)),
            Self::Blur { kernel, .. } => Effect::Copies {
                to: Copied::Same,
                beside: Some(Beside::Blur(kernel)),
            },
            Self::Elastic { sigma, .. } => Effect::Copies {
                to: Copied::Upright,
                beside: Some(Beside::Elastic(sigma)),
            },
            Self::Convert(..) | Self::Normalize { .. } => Effect::Becomes { floats: true },
            Self::Cast(dtype) => Effect::Becomes {
                floats: dtype != Dtype::U8,
            },
            Self::Augment(step) => step.effect(is_square),
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Shift(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Erase { .. } => Effect::InPlace,
        }
    }
}

impl Augment {
    fn effect(self, is_square: Option<bool>) -> Effect {
        match self {
            Self::Rotate { degrees, .. } => {
                match is_square.and_then(|square| plain_quarters(degrees, square)) {
                    Some(half @ (0 | 2)) => Effect::Turns(half),
                    _ => Effect::copies(Copied::Upright),
                }
            }
            Self::Affine { .. } | Self::Perspective { .. } => Effect::copies(Copied::Upright),
            Self::GaussianBlur { .. } | Self::MotionBlur { .. } => {
                Effect::copies(Copied::UprightFirst)
            }
            Self::Resample { size, .. } => Effect::copies(Copied::Sized(size)),
            Self::Sharpness(_) => Effect::copies(Copied::Same),
            Self::Keep => Effect::Keeps,
            Self::Add { .. } | Self::Blend { .. } => Effect::Uprights,
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
            | Self::Fill { .. } => Effect::InPlace,
        }
    }
}
