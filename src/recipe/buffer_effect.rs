//! What a step does to the buffers that hold an image. This file is the only place that defines it.
//! The memory of a sample (`decode_plan`) and the memory plan of a run (`memory_plan`) are computed
//! from it. The canvas (`pixels`) carries it out. Tests compare all three.

use super::geometry::pillow_quarter_turns;
use super::step::{AugmentStep, Step};
use super::tensor::DataType;
use super::values::{AffineStyle, Padding, Size};

/// What a step does to the buffers of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BufferEffect {
    /// Only a part of the pixels stays, or the image is flipped or turned. No pixel moves until a
    /// resize: the resize reads one buffer, applies the crop and the flips, and writes the other
    /// buffer.
    Folds,
    /// Pixels change in place.
    InPlace,
    /// A turn by quarters that moves no pixel.
    Turns(u8),
    /// Reads one buffer and writes the other buffer of the same type.
    Copies {
        to: CopyShape,
        /// Memory needed in addition to both buffers.
        scratch: Option<StepScratch>,
    },
    /// The pixels become floats or bytes.
    Converts { floats: bool },
    /// Keeps a copy of the image and starts an empty sum.
    Keeps,
    /// Rewrites the image in place, upright.
    Uprights,
}

/// Memory that a step needs in addition to the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StepScratch {
    /// The rows of a blur with this kernel.
    Blur(Size),
    /// Displacements, smoothed with these deviations.
    Elastic([f64; 2]),
    /// Bytes: lines of Pillow's blur.
    BoxBlurs,
    /// Bytes: planes of a JPEG.
    Jpeg,
}

/// Size and orientation of the copy that a step writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CopyShape {
    /// Same size and orientation.
    Same,
    /// With this border, given for the upright image.
    Padded(Padding),
    /// Upright.
    Upright,
    /// Upright. An image that is turned is first copied upright by a separate copy.
    UprightFirst,
    /// Upright, with this size.
    Sized(Size),
}

impl BufferEffect {
    fn copies(to: CopyShape) -> Self {
        Self::Copies { to, scratch: None }
    }
}

impl Step {
    /// The effect on an image. `is_square` is `None` if the shape is unknown.
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
                scratch: Some(StepScratch::Blur(kernel)),
            },
            Self::Elastic { sigma, .. } => BufferEffect::Copies {
                to: CopyShape::Upright,
                scratch: Some(StepScratch::Elastic(sigma)),
            },
            Self::Convert(..) | Self::Normalize { .. } | Self::Standardize { .. } => {
                BufferEffect::Converts { floats: true }
            }
            Self::Cast(dtype) => BufferEffect::Converts {
                floats: dtype != DataType::U8,
            },
            Self::Augment(step) => step.effect(is_square),
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Shift(_)
            | Self::Permute(_)
            | Self::Noise { .. }
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
            Self::Affine {
                style: AffineStyle::Opencv,
                ..
            } => BufferEffect::copies(CopyShape::UprightFirst),
            Self::Affine { .. } | Self::Perspective { .. } | Self::TensorAffine { .. } => {
                BufferEffect::copies(CopyShape::Upright)
            }
            Self::BoxBlurs { .. } => BufferEffect::Copies {
                to: CopyShape::Upright,
                scratch: Some(StepScratch::BoxBlurs),
            },
            Self::Jpeg { .. } => BufferEffect::Copies {
                to: CopyShape::Upright,
                scratch: Some(StepScratch::Jpeg),
            },
            Self::GaussianBlur { .. } | Self::MotionBlur { .. } => {
                BufferEffect::copies(CopyShape::UprightFirst)
            }
            Self::Resample { size, .. } => BufferEffect::copies(CopyShape::Sized(size)),
            Self::Sharpness(_) | Self::TensorSharpness(_) => BufferEffect::copies(CopyShape::Same),
            Self::Keep => BufferEffect::Keeps,
            Self::Add { .. }
            | Self::AddSingle { .. }
            | Self::MixIn { .. }
            | Self::Total
            | Self::BlendTotal { .. }
            | Self::Blend { .. } => BufferEffect::Uprights,
            Self::AutoContrast
            | Self::TensorAutoContrast
            | Self::Equalize
            | Self::Invert
            | Self::Posterize { .. }
            | Self::Solarize { .. }
            | Self::SolarizeAdd { .. }
            | Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Color(_)
            | Self::Hue(_)
            | Self::Hsv { .. }
            | Self::Fill { .. } => BufferEffect::InPlace,
        }
    }
}
