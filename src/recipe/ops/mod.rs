//! The operations, as data: what a user writes, in Rust or in a file.
//!
//! Names, parameters and defaults are torchvision's where it has them
//! (`transforms.v2`); sizes are height, width; colours are levels 0 to 255. One
//! struct an operation, each with its defaults; the derived text form is the
//! file format, so there is no second list of names. Checked by `program`.
//!
//! - `values`: the types of parameters, and the short forms that files may use.

mod values;

use serde::{Deserialize, Serialize};

pub use values::{
    Background, ColorOrder, ColorSpace, DecodeMode, Erasing, Interpolation, Padding, PaddingMode,
    PerChannel, ResizeTo, Size, Span, WhitePoint,
};

use super::tensor::{Dtype, MemoryLayout};

/// One operation on one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Op {
    Decode(Decode),
    Resize(Resize),
    RandomResizedCrop(RandomResizedCrop),
    RandomCrop(RandomCrop),
    CenterCrop(CenterCrop),
    RandomHorizontalFlip(RandomHorizontalFlip),
    RandomVerticalFlip(RandomVerticalFlip),
    RandomRotation(RandomRotation),
    Rotate90(Rotate90),
    RandomRotate90(RandomRotate90),
    Pad(Pad),
    ColorJitter(ColorJitter),
    Grayscale(Grayscale),
    RandomGrayscale(RandomGrayscale),
    ConvertColor(ConvertColor),
    GaussianBlur(GaussianBlur),
    RandomErasing(RandomErasing),
    Normalize(Normalize),
    Cast(Cast),
    Layout(Layout),
}

/// To 8 bits a channel, upright: EXIF orientation is applied, grey, CMYK,
/// palettes and 16 bits are converted, alpha is composited on `background`.
/// Always the first operation; a recipe that does not write it gets the default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decode {
    /// Channels and their order: `rgb`, `bgr`, or `grey` (one channel, Pillow's
    /// `L`).
    pub color: ColorOrder,
    /// None: `scaled`, or `full` where the recipe says `reorder: exact` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DecodeMode>,
    pub background: Background,
}

/// torchvision's `Resize`: `size` a number: the shorter side becomes that, the
/// longer one keeps the aspect ratio (cut to a whole number) and is at most
/// `max_size`; `[height, width]`: exactly that; none: the longer side becomes
/// `max_size`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ResizeTo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
    #[serde(default)]
    pub interpolation: Interpolation,
    #[serde(default = "yes")]
    pub antialias: bool,
}

/// A crop of random area and aspect ratio, resized to `size`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomResizedCrop {
    pub size: Size,
    /// Range of the crop's area as a part of the image's.
    #[serde(default = "RandomResizedCrop::default_scale")]
    pub scale: Span,
    /// Range of the crop's width divided by its height.
    #[serde(default = "RandomResizedCrop::default_ratio")]
    pub ratio: Span,
    #[serde(default)]
    pub interpolation: Interpolation,
    #[serde(default = "yes")]
    pub antialias: bool,
}

/// A crop of `size` at a uniform place, of the picture with `padding` around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomCrop {
    pub size: Size,
    #[serde(default)]
    pub padding: Padding,
    /// Pads pictures that are smaller than `size`, on both sides by what is
    /// missing, as torchvision does. False: such a picture is a failed sample.
    #[serde(default)]
    pub pad_if_needed: bool,
    #[serde(default)]
    pub fill: PerChannel,
    #[serde(default)]
    pub padding_mode: PaddingMode,
}

/// The middle `size` pixels. A picture that is smaller is a failed sample:
/// put a pad in front of it, where torchvision pads with 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    pub size: Size,
}

/// Left becomes right with probability `p`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomHorizontalFlip {
    pub p: f64,
}

/// Top becomes bottom with probability `p`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomVerticalFlip {
    pub p: f64,
}

/// A turn about the middle by an angle uniform in `degrees`, counter-clockwise,
/// as in torchvision. `degrees: d` is -d to d; for a fixed angle write it twice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRotation {
    #[serde(deserialize_with = "Span::around_zero")]
    pub degrees: Span,
    /// `nearest` (torchvision's default) or `bilinear`.
    #[serde(default = "Interpolation::nearest")]
    pub interpolation: Interpolation,
    /// The output is as large as the turned picture; otherwise as the picture.
    #[serde(default)]
    pub expand: bool,
    #[serde(default)]
    pub fill: PerChannel,
}

/// `times` quarter turns, counter-clockwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotate90 {
    pub times: i32,
}

/// No, one, two or three quarter turns, each as likely.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomRotate90 {}

/// Pixels around the picture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    pub padding: Padding,
    /// For `padding_mode: constant`.
    #[serde(default)]
    pub fill: PerChannel,
    #[serde(default)]
    pub padding_mode: PaddingMode,
}

/// With probability `p`: brightness, contrast, saturation and hue, each by a
/// factor uniform in its range, in random order (or in this one). A number b
/// is the range max(0, 1 - b) to 1 + b, for hue -b to b.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColorJitter {
    #[serde(deserialize_with = "Span::around_one")]
    pub brightness: Span,
    #[serde(deserialize_with = "Span::around_one")]
    pub contrast: Span,
    #[serde(deserialize_with = "Span::around_one")]
    pub saturation: Span,
    /// As a part of the colour circle, -0.5 to 0.5.
    #[serde(deserialize_with = "Span::around_zero")]
    pub hue: Span,
    pub p: f64,
    pub random_order: bool,
}

/// To grey: 0.2989 R + 0.587 G + 0.114 B, in one channel or three equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grayscale {
    pub num_output_channels: u8,
}

/// To grey with probability `p`; the number of channels stays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomGrayscale {
    pub p: f64,
}

/// To another colour space, in `f32`. Ranges are those of [`ColorSpace`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvertColor {
    pub to: ColorSpace,
    /// Of `lab`.
    #[serde(default)]
    pub white_point: WhitePoint,
}

/// A Gaussian of `kernel_size` (odd; height, width) with a deviation uniform in
/// `sigma`, pixels; edges are reflected, as in torchvision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaussianBlur {
    pub kernel_size: Size,
    #[serde(default = "GaussianBlur::default_sigma")]
    pub sigma: Span,
}

/// With probability `p` a box of random area (part of the image's) and aspect
/// ratio (height by width), at a random place, becomes `value`. Behind
/// `normalize` the value is one of the normalised pixels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomErasing {
    pub p: f64,
    pub scale: Span,
    pub ratio: Span,
    pub value: Erasing,
}

/// `(x - mean) / std` for each channel, where x is value / 255 for levels (rgb,
/// bgr, grey, ycbcr) and the value itself in `lab` and `hsv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalize {
    pub mean: PerChannel,
    pub std: PerChannel,
}

/// The element type from here on, and of the batch if it is the last cast.
/// Levels stay 0 to 255 on the way; a batch of floats is divided by 255 at its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cast {
    pub dtype: Dtype,
}

/// The order of the batch's axes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    pub layout: MemoryLayout,
}

fn yes() -> bool {
    true
}

impl Resize {
    fn new(size: Option<ResizeTo>, max_size: Option<u32>) -> Self {
        Self {
            size,
            max_size,
            interpolation: Interpolation::Bilinear,
            antialias: true,
        }
    }

    /// The shorter side becomes `side` pixels.
    pub fn shorter(side: u32) -> Self {
        Self::new(Some(ResizeTo::Shorter(side)), None)
    }

    /// The longer side becomes `side` pixels.
    pub fn longer(side: u32) -> Self {
        Self::new(None, Some(side))
    }

    /// To `height` by `width`, whatever the aspect ratio.
    pub fn exact(height: u32, width: u32) -> Self {
        Self::new(Some(ResizeTo::Exact(Size { height, width })), None)
    }
}

impl RandomResizedCrop {
    fn default_scale() -> Span {
        Span(0.08, 1.0)
    }

    fn default_ratio() -> Span {
        Span(3.0 / 4.0, 4.0 / 3.0)
    }

    /// Bilinear, antialiased, scale 0.08 to 1, ratio 3/4 to 4/3.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale: Self::default_scale(),
            ratio: Self::default_ratio(),
            interpolation: Interpolation::Bilinear,
            antialias: true,
        }
    }
}

impl RandomCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            padding: Padding::default(),
            pad_if_needed: false,
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }
}

impl CenterCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self { size: size.into() }
    }
}

impl Default for RandomHorizontalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Default for RandomVerticalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl RandomRotation {
    /// Nearest neighbour, size kept, black corners.
    pub fn new(degrees: Span) -> Self {
        Self {
            degrees,
            interpolation: Interpolation::Nearest,
            expand: false,
            fill: PerChannel::default(),
        }
    }
}

impl Pad {
    pub fn new(padding: impl Into<Padding>) -> Self {
        Self {
            padding: padding.into(),
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }
}

/// Changes nothing.
impl Default for ColorJitter {
    fn default() -> Self {
        Self {
            brightness: Span(1.0, 1.0),
            contrast: Span(1.0, 1.0),
            saturation: Span(1.0, 1.0),
            hue: Span(0.0, 0.0),
            p: 1.0,
            random_order: true,
        }
    }
}

/// One channel.
impl Default for Grayscale {
    fn default() -> Self {
        Self {
            num_output_channels: 1,
        }
    }
}

impl Default for RandomGrayscale {
    fn default() -> Self {
        Self { p: 0.1 }
    }
}

impl ConvertColor {
    pub fn new(to: ColorSpace) -> Self {
        Self {
            to,
            white_point: WhitePoint::default(),
        }
    }
}

impl GaussianBlur {
    fn default_sigma() -> Span {
        Span(0.1, 2.0)
    }

    pub fn new(kernel_size: impl Into<Size>) -> Self {
        Self {
            kernel_size: kernel_size.into(),
            sigma: Self::default_sigma(),
        }
    }
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self {
            p: 0.5,
            scale: Span(0.02, 0.33),
            ratio: Span(0.3, 3.3),
            value: Erasing::default(),
        }
    }
}

impl Normalize {
    pub fn new(mean: impl Into<PerChannel>, std: impl Into<PerChannel>) -> Self {
        Self {
            mean: mean.into(),
            std: std.into(),
        }
    }

    /// Mean and deviation of ImageNet's RGB.
    pub fn imagenet() -> Self {
        Self::new([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    }
}

macro_rules! ops {
    ($($name:ident => $text:literal),* $(,)?) => {
        $(impl From<$name> for Op {
            fn from(op: $name) -> Self {
                Self::$name(op)
            }
        })*

        impl Op {
            /// As in a recipe file.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $text,)*
                }
            }
        }
    };
}

ops! {
    Decode => "decode",
    Resize => "resize",
    RandomResizedCrop => "random_resized_crop",
    RandomCrop => "random_crop",
    CenterCrop => "center_crop",
    RandomHorizontalFlip => "random_horizontal_flip",
    RandomVerticalFlip => "random_vertical_flip",
    RandomRotation => "random_rotation",
    Rotate90 => "rotate90",
    RandomRotate90 => "random_rotate90",
    Pad => "pad",
    ColorJitter => "color_jitter",
    Grayscale => "grayscale",
    RandomGrayscale => "random_grayscale",
    ConvertColor => "convert_color",
    GaussianBlur => "gaussian_blur",
    RandomErasing => "random_erasing",
    Normalize => "normalize",
    Cast => "cast",
    Layout => "layout",
}
