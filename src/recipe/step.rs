//! What is done to one sample, with every number drawn.

use serde::Serialize;

use super::geometry::Rect;
use super::ops::{ColorSpace, Interpolation, Padding, PaddingMode, Size, WhitePoint};
use super::tensor::Dtype;

/// One thing that is done to one picture. Boxes and sizes are those of the
/// picture as it is to be looked at, at that place of the order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The part that stays.
    Crop(Rect),
    Resize {
        size: Size,
        interpolation: Interpolation,
        antialias: bool,
    },
    Pad {
        padding: Padding,
        mode: PaddingMode,
        fill: [f32; 3],
    },
    /// Left becomes right.
    Mirror,
    /// Top becomes bottom.
    UpsideDown,
    /// Quarter turns counter-clockwise, 1 to 3.
    Turn(u8),
    /// About the middle, counter-clockwise; `size` is that of the output.
    Rotate {
        degrees: f64,
        interpolation: Interpolation,
        size: Size,
        fill: [f32; 3],
    },
    Brightness(f32),
    Contrast(f32),
    Saturation(f32),
    /// By a part of the colour circle, -0.5 to 0.5.
    Hue(f32),
    /// Pillow's `L` in three equal channels: what `decode: {color: grey}` gives.
    Luma,
    /// Three equal channels.
    Grayscale,
    /// To another colour space, in `f32`.
    Convert(ColorSpace, WhitePoint),
    Blur {
        kernel: Size,
        sigma: f64,
    },
    Erase {
        rect: Rect,
        with: Erased,
        /// The three channels are one.
        grey: bool,
    },
    /// `(v / unit - mean) / std`, in `f32`.
    Normalize {
        unit: f32,
        mean: [f32; 3],
        std: [f32; 3],
    },
    /// Levels rounded to the type, and held in it from here on.
    Cast(Dtype),
}

impl Step {
    /// The same step where the first channel is the last.
    pub(crate) fn with_channels_reversed(mut self) -> Self {
        match &mut self {
            Self::Pad { fill: v, .. }
            | Self::Rotate { fill: v, .. }
            | Self::Erase {
                with: Erased::Value(v),
                ..
            } => v.reverse(),
            Self::Normalize { mean, std, .. } => {
                mean.reverse();
                std.reverse();
            }
            _ => {}
        }
        self
    }
}

/// What an erased box is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Erased {
    Value([f32; 3]),
    /// Uniform levels from this key.
    Levels(u64),
    /// Normal numbers, mean 0 and deviation 1, from this key.
    Normal(u64),
}
