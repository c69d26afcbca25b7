//! Steps: operations whose random values have been drawn.

use serde::Serialize;

use super::defaults::is_default;
use super::geometry::PixelRect;
use super::move_unit::OperationPart;
use super::permutation;
use super::tensor::DataType;
use super::values::{
    AffineStyle, ColorSpace, InterpolationMode, Padding, PaddingMode, RotationStyle, Size,
    WhitePoint,
};

/// One change of one image. Boxes and sizes refer to the upright image at this point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Keeps this box.
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
    /// Left to right.
    Mirror,
    /// Top to bottom.
    UpsideDown,
    /// Quarter turns counter-clockwise, 1 to 3.
    Turn(u8),
    /// Around the centre, counter-clockwise. `size`: size of the output.
    Rotate {
        degrees: f64,
        interpolation: InterpolationMode,
        size: Size,
        fill: [f32; 3],
        style: RotationStyle,
    },
    /// Moves every pixel by random displacements: noise from this key, blurred with `sigma` pixels,
    /// times `alpha`. Both have one value along the width and one along the height.
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
    /// As a share of the colour circle, -0.5 to 0.5.
    Hue(f32),
    /// Added to each channel.
    Shift([f32; 3]),
    /// Channel `i` becomes the former channel `order[i]`.
    Permute([u8; 3]),
    /// Adds normal numbers from this key, times `sigma`, plus `mean`. Bytes get whole numbers.
    Noise {
        key: u64,
        mean: f32,
        sigma: f32,
        /// Keeps values in 0 to 255.
        clip: bool,
        /// True if all three channels are equal.
        grey: bool,
    },
    /// Pillow's `L` in three equal channels, as `decode: {color: grey}`.
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
        /// True if all three channels are equal.
        grey: bool,
    },
    /// `(v / unit - mean) / std`, in `f32`.
    Normalize {
        unit: f32,
        mean: [f32; 3],
        std: [f32; 3],
    },
    /// `(v - mean) / max(std, 1 / sqrt(n))`, with the mean and deviation of all n values, in `f32`.
    Standardize {
        /// True if all three channels are equal, so that only one counts.
        grey: bool,
    },
    /// Rounds to the element type. The pixels keep that type from here on.
    Cast(DataType),
    /// One operation of a policy, on 8-bit RGB.
    Augment(AugmentStep),
}

impl Step {
    /// The part of an operation to which this step belongs.
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
            | Self::Permute(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Convert(..) => OperationPart::Color,
            Self::Blur { .. } => OperationPart::Blur,
            Self::Erase { .. } => OperationPart::Erase,
            Self::Normalize { .. } => OperationPart::Normalize,
            Self::Cast(_) => OperationPart::Cast,
            Self::Elastic { .. }
            | Self::Noise { .. }
            | Self::Standardize { .. }
            | Self::Augment(_) => OperationPart::Augment,
        }
    }

    /// The same step for pixels whose channels are reversed.
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
            Self::Permute(order) => *order = permutation::reversed(*order),
            Self::Augment(augment) => augment.reverse_channels(),
            // No values per channel.
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
            | Self::Noise { .. }
            | Self::Standardize { .. }
            | Self::Erase { .. }
            | Self::Cast(_) => {}
        }
        self
    }

    /// torchvision's step of brightness (0), contrast (1), saturation (2) or hue (3).
    pub(crate) fn of_jitter(which: usize, factor: f64) -> Self {
        let factor = factor as f32;
        match which {
            0 => Self::Brightness(factor),
            1 => Self::Contrast(factor),
            2 => Self::Saturation(factor),
            _ => Self::Hue(factor),
        }
    }
}

/// An operation on 8-bit RGB. The result equals Pillow's bit by bit, unless its comment names
/// another library.
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
    /// `ImageOps.solarize`: inverts levels of at least `threshold`.
    Solarize {
        threshold: f32,
    },
    /// Adds `add` to levels below `threshold`, at most to 255.
    SolarizeAdd {
        add: u8,
        threshold: u8,
    },
    /// `ImageEnhance.Brightness`, `Contrast`, `Color` and `Sharpness`, with a factor.
    Brightness(f32),
    Contrast(f32),
    Color(f32),
    Sharpness(f32),
    /// Added to the hue in Pillow's `HSV`, in 256ths of the colour circle.
    Hue(u8),
    /// OpenCV's 8-bit `HSV`: adds a share of the circle to the hue, and multiplies saturation and
    /// value by 1 plus their gains.
    Hsv {
        gains: [f64; 3],
    },
    /// `Image.transform(AFFINE)`, or OpenCV's `warpAffine`: maps output pixels to input pixels.
    Affine {
        matrix: [f64; 6],
        interpolation: InterpolationMode,
        fill: [u8; 3],
        #[serde(default, skip_serializing_if = "is_default")]
        style: AffineStyle,
    },
    /// `Image.transform(PERSPECTIVE)`: maps output pixels to input pixels.
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
    /// Fills a box with one colour.
    Fill {
        rect: PixelRect,
        color: [u8; 3],
    },
    /// `ImageFilter.GaussianBlur`: three boxes along each axis.
    BoxBlurs {
        radius: f32,
    },
    /// Encodes as JPEG with this quality, and decodes it again: libjpeg-turbo's pixels.
    Jpeg {
        quality: u8,
    },
    /// torchvision's `affine` of a tensor. Places are relative to the image's middle.
    TensorAffine {
        matrix: [f64; 6],
        interpolation: InterpolationMode,
        /// None: outside is black.
        fill: Option<[u8; 3]>,
    },
    /// torchvision's `autocontrast` of a tensor.
    TensorAutoContrast,
    /// torchvision's `adjust_sharpness` of a tensor.
    TensorSharpness(f32),
    /// OpenCV's `GaussianBlur` with the deviations that follow from the kernel size.
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
    /// Keeps a copy of the image and starts an empty sum.
    Keep,
    /// Adds the image to the sum with this weight, and restores the kept copy.
    Add {
        weight: f32,
    },
    /// As `Add`, with sums in single precision.
    AddSingle {
        weight: f32,
    },
    /// Mixes the image into the sum by Pillow's `Image.blend`, and restores the kept copy.
    MixIn {
        by: f32,
    },
    /// The sum, truncated to whole levels.
    Total,
    /// `Image.blend` of the kept copy (0) and the sum, truncated to whole levels (1).
    BlendTotal {
        by: f32,
    },
    /// `(1 - by) * kept + by * sum`, truncated to whole levels.
    Blend {
        by: f32,
    },
}

impl AugmentStep {
    /// Pillow's step of a jitter: `ImageEnhance`'s brightness (0), contrast (1) and saturation (2),
    /// and hue (3).
    pub(crate) fn of_jitter(which: usize, factor: f64) -> Self {
        match which {
            0 => Self::Brightness(factor as f32),
            1 => Self::Contrast(factor as f32),
            2 => Self::Color(factor as f32),
            // Pillow's hue is a byte: truncated towards zero, modulo 256.
            _ => Self::Hue(((factor * 255.0) as i32).rem_euclid(256) as u8),
        }
    }

    /// The same step for pixels whose channels are reversed.
    fn reverse_channels(&mut self) {
        match self {
            Self::Affine { fill: v, .. }
            | Self::Perspective { fill: v, .. }
            | Self::Rotate { fill: v, .. }
            | Self::Fill { color: v, .. }
            | Self::TensorAffine { fill: Some(v), .. } => v.reverse(),
            // No values per channel.
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
            | Self::Hsv { .. }
            | Self::BoxBlurs { .. }
            | Self::Jpeg { .. }
            | Self::TensorAffine { fill: None, .. }
            | Self::TensorAutoContrast
            | Self::TensorSharpness(_)
            | Self::GaussianBlur { .. }
            | Self::MotionBlur { .. }
            | Self::Resample { .. }
            | Self::Keep
            | Self::Add { .. }
            | Self::AddSingle { .. }
            | Self::MixIn { .. }
            | Self::Total
            | Self::BlendTotal { .. }
            | Self::Blend { .. } => {}
        }
    }
}

/// OpenCV's interpolation methods.
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

/// The content of an erased box.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxFill {
    Value([f32; 3]),
    /// Uniform levels, drawn from this key.
    Levels(u64),
    /// Normal numbers with mean 0 and deviation 1, drawn from this key.
    Normal(u64),
}
