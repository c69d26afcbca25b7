//! What is done to one sample, with every number drawn.

use serde::Serialize;

use super::geometry::PixelRect;
use super::move_unit::OperationPart;
use super::tensor::DataType;
use super::values::{
    ColorSpace, InterpolationMode, Padding, PaddingMode, RotationStyle, Size, WhitePoint,
};

/// One thing that is done to one picture. Boxes and sizes are those of the
/// picture as it is to be looked at, at that place of the order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The part that stays.
    Crop(PixelRect),
    Resize {
        size: Size,
        interpolation: InterpolationMode,
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
        interpolation: InterpolationMode,
        size: Size,
        fill: [f32; 3],
        style: RotationStyle,
    },
    /// Every pixel from a place near it: noise of this key, blurred by `sigma` pixels,
    /// times `alpha`; each along the width, along the height.
    Elastic {
        key: u64,
        alpha: [f64; 2],
        sigma: [f64; 2],
        interpolation: InterpolationMode,
        fill: [f32; 3],
    },
    Brightness(f32),
    Contrast(f32),
    Saturation(f32),
    /// By a part of the colour circle, -0.5 to 0.5.
    Hue(f32),
    /// Added to each channel.
    Shift([f32; 3]),
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
        rect: PixelRect,
        with: BoxFill,
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
    Cast(DataType),
    /// One operation of a policy, on 8-bit RGB.
    Augment(AugmentStep),
}

impl Step {
    /// The kind of unit that it is of.
    pub(crate) fn part(&self) -> OperationPart {
        match self {
            Self::Crop(_) => OperationPart::Crop,
            Self::Resize { .. } => OperationPart::Resize,
            Self::Pad { .. } => OperationPart::Pad,
            Self::Mirror | Self::UpsideDown | Self::Turn(_) => OperationPart::Turn,
            Self::Rotate { .. } => OperationPart::Rotate,
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Shift(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Convert(..) => OperationPart::Color,
            Self::Blur { .. } => OperationPart::Blur,
            Self::Erase { .. } => OperationPart::Erase,
            Self::Normalize { .. } => OperationPart::Normalize,
            Self::Cast(_) => OperationPart::Cast,
            Self::Elastic { .. } | Self::Augment(_) => OperationPart::Augment,
        }
    }

    /// The same step where the first channel is the last.
    pub(crate) fn with_channels_reversed(mut self) -> Self {
        match &mut self {
            Self::Shift(v)
            | Self::Pad { fill: v, .. }
            | Self::Rotate { fill: v, .. }
            | Self::Elastic { fill: v, .. }
            | Self::Erase {
                with: BoxFill::Value(v),
                ..
            } => v.reverse(),
            Self::Normalize { mean, std, .. } => {
                mean.reverse();
                std.reverse();
            }
            Self::Augment(augment) => augment.reverse_channels(),
            // No number of a channel.
            Self::Crop(_)
            | Self::Resize { .. }
            | Self::Mirror
            | Self::UpsideDown
            | Self::Turn(_)
            | Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Convert(..)
            | Self::Blur { .. }
            | Self::Erase { .. }
            | Self::Cast(_) => {}
        }
        self
    }
}

/// An operation on 8-bit RGB as Pillow does it, bit by bit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(rename_all = "snake_case")]
pub enum AugmentStep {
    /// `ImageOps.autocontrast`.
    AutoContrast,
    /// `ImageOps.equalize`.
    Equalize,
    /// `ImageOps.invert`.
    Invert,
    /// `ImageOps.posterize`; 0 bits: black.
    Posterize {
        bits: u8,
    },
    /// `ImageOps.solarize`: levels of this and more are inverted.
    Solarize {
        threshold: f32,
    },
    /// `add` to levels below `threshold`, at most 255.
    SolarizeAdd {
        add: u8,
        threshold: u8,
    },
    /// `ImageEnhance.Brightness` and the like, by a factor.
    Brightness(f32),
    Contrast(f32),
    Color(f32),
    Sharpness(f32),
    /// Added to the hue, in 256ths of the colour circle, in Pillow's `HSV`.
    Hue(u8),
    /// `Image.transform(AFFINE)`: where each output pixel comes from.
    Affine {
        matrix: [f64; 6],
        interpolation: InterpolationMode,
        fill: [u8; 3],
    },
    /// `Image.transform(PERSPECTIVE)`: where each output pixel comes from.
    Perspective {
        coefficients: [f64; 8],
        interpolation: InterpolationMode,
        fill: [u8; 3],
    },
    /// `Image.rotate`, degrees counter-clockwise.
    Rotate {
        degrees: f64,
        interpolation: InterpolationMode,
        fill: [u8; 3],
    },
    /// One colour in a box.
    Fill {
        rect: PixelRect,
        color: [u8; 3],
    },
    /// OpenCV's `GaussianBlur`, with the deviations that the sides give.
    GaussianBlur {
        width: u32,
        height: u32,
    },
    /// PaddleClas' blur along a line.
    MotionBlur {
        length: u32,
        degrees: i32,
    },
    /// OpenCV's `resize`.
    Resample {
        size: Size,
        filter: OpencvFilter,
    },
    /// The picture is kept, and an empty sum begun.
    Keep,
    /// The picture is added to the sum with this weight, and is the kept one again.
    Add {
        weight: f32,
    },
    /// `(1 - by) * kept + by * sum`, cut to whole levels.
    Blend {
        by: f32,
    },
}

impl AugmentStep {
    /// The same where the first channel is the last.
    fn reverse_channels(&mut self) {
        match self {
            Self::Affine { fill: v, .. }
            | Self::Perspective { fill: v, .. }
            | Self::Rotate { fill: v, .. }
            | Self::Fill { color: v, .. } => v.reverse(),
            // No number of a channel.
            Self::AutoContrast
            | Self::Equalize
            | Self::Invert
            | Self::Posterize { .. }
            | Self::Solarize { .. }
            | Self::SolarizeAdd { .. }
            | Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Color(_)
            | Self::Sharpness(_)
            | Self::Hue(_)
            | Self::GaussianBlur { .. }
            | Self::MotionBlur { .. }
            | Self::Resample { .. }
            | Self::Keep
            | Self::Add { .. }
            | Self::Blend { .. } => {}
        }
    }
}

/// OpenCV's ways to resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(rename_all = "snake_case")]
pub enum OpencvFilter {
    Nearest,
    Linear,
    Area,
    Cubic,
    Lanczos4,
}

/// What an erased box is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxFill {
    Value([f32; 3]),
    /// Uniform levels from this key.
    Levels(u64),
    /// Normal numbers, mean 0 and deviation 1, from this key.
    Normal(u64),
}
