//! Operations that decide which pixels there are: sizes, crops, flips, turns and
//! what stands around a picture.

use serde::{Deserialize, Serialize};

use super::values::{
    Aspect, Interpolation, Padding, PaddingMode, PerChannel, ResizeTo, RotationStyle, Rounding,
    Size, Span,
};

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
    /// Of the longer side: `down` as torchvision, `nearest` as PaddleClas.
    #[serde(default = "down", skip_serializing_if = "is_down")]
    pub rounding: Rounding,
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

/// A crop of random area and aspect ratio, resized to `size`, by PaddleClas' law
/// (`RandCropImage`): the aspect ratio is drawn first, and the area from what such
/// a box can have at most, so that one draw is always enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundedResizedCrop {
    pub size: Size,
    /// Range of the crop's area as a part of the image's.
    #[serde(default = "RandomResizedCrop::default_scale")]
    pub scale: Span,
    /// Range of the crop's width divided by its height.
    #[serde(default = "RandomResizedCrop::default_ratio")]
    pub ratio: Span,
    #[serde(default = "Aspect::uniform")]
    pub aspect: Aspect,
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

/// The middle of a picture: `size` pixels, of which a picture that is smaller is a
/// failed sample (where torchvision pads it with 0): put a resize or a `pad` in
/// front. Or, with `ratio` instead, a square with that part of the shorter side, to
/// be resized behind it: 0.875 for 224 of 256, as PaddleClas' `CropImageAtRatio`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Above 0, at most 1. The side is cut to a whole number, and at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Of half of an odd margin: `nearest` as torchvision, `down` as PaddleClas.
    #[serde(default = "nearest", skip_serializing_if = "is_nearest")]
    pub rounding: Rounding,
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

/// With probability `p` a turn about the middle by an angle uniform in `degrees`,
/// counter-clockwise. `degrees: d` is -d to d; for a fixed angle write it twice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRotation {
    #[serde(deserialize_with = "Span::around_zero")]
    pub degrees: Span,
    /// `nearest` (torchvision's default) or `bilinear`; with `style: opencv` also
    /// `bicubic`.
    #[serde(default = "Interpolation::nearest")]
    pub interpolation: Interpolation,
    /// The output is as large as the turned picture; otherwise as the picture.
    #[serde(default)]
    pub expand: bool,
    #[serde(default)]
    pub fill: PerChannel,
    #[serde(default = "always", skip_serializing_if = "is_always")]
    pub p: f64,
    #[serde(default, skip_serializing_if = "is_tensor")]
    pub style: RotationStyle,
}

/// `times` quarter turns, counter-clockwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotate90 {
    pub times: i32,
}

/// No, one, two or three quarter turns counter-clockwise, each as likely.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomRotate90 {
    /// The number of turns, 0 to 3, is the sample's label, whatever the data set
    /// says. One operation of a recipe may give labels.
    #[serde(skip_serializing_if = "is_false")]
    pub label: bool,
}

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

/// Pixels around the picture up to a size: `size` itself, of which a larger picture
/// is a failed sample, or with `multiple_of` instead the next multiple of that on
/// each side (PaddleClas' `Padv2`, albumentations' `PadIfNeeded`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PadTo {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Size>,
    /// Where in it the picture lies.
    #[serde(default)]
    pub anchor: Anchor,
    /// Pixels at the left and at the top, with `anchor: top_left`. A picture that has
    /// the size already stays as it is; one that leaves less room for it is a failed
    /// sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<[u32; 2]>,
    /// For `padding_mode: constant`.
    #[serde(default)]
    pub fill: PerChannel,
    #[serde(default)]
    pub padding_mode: PaddingMode,
}

/// Where a picture lies in a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// All padding is at the right and at the bottom.
    #[default]
    TopLeft,
    /// The odd pixel of an odd padding is at the right or at the bottom.
    Center,
    /// All padding is at the left and at the top.
    BottomRight,
}

impl Resize {
    fn new(size: Option<ResizeTo>, max_size: Option<u32>) -> Self {
        Self {
            size,
            max_size,
            interpolation: Interpolation::Bilinear,
            antialias: true,
            rounding: Rounding::Down,
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

impl BoundedResizedCrop {
    /// Bilinear without antialias, as OpenCV; scale 0.08 to 1, ratio 3/4 to 4/3.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale: RandomResizedCrop::default_scale(),
            ratio: RandomResizedCrop::default_ratio(),
            aspect: Aspect::Uniform,
            interpolation: Interpolation::Bilinear,
            antialias: false,
        }
    }
}

impl CenterCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: Some(size.into()),
            ratio: None,
            rounding: Rounding::Nearest,
        }
    }

    /// A square with this part of the shorter side.
    pub fn at_ratio(ratio: f64) -> Self {
        Self {
            size: None,
            ratio: Some(ratio),
            rounding: Rounding::Nearest,
        }
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
            p: 1.0,
            style: RotationStyle::Tensor,
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

impl PadTo {
    fn new(size: Option<Size>, multiple_of: Option<Size>) -> Self {
        Self {
            size,
            multiple_of,
            anchor: Anchor::TopLeft,
            offset: None,
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }

    /// To a size, black at the right and at the bottom.
    pub fn size(size: impl Into<Size>) -> Self {
        Self::new(Some(size.into()), None)
    }

    /// To the next multiples, black at the right and at the bottom.
    pub fn multiple_of(of: impl Into<Size>) -> Self {
        Self::new(None, Some(of.into()))
    }
}

fn yes() -> bool {
    true
}

fn down() -> Rounding {
    Rounding::Down
}

fn nearest() -> Rounding {
    Rounding::Nearest
}

fn always() -> f64 {
    1.0
}

fn is_always(p: &f64) -> bool {
    *p == 1.0
}

fn is_tensor(style: &RotationStyle) -> bool {
    *style == RotationStyle::Tensor
}

fn is_false(v: &bool) -> bool {
    !*v
}

fn is_down(rounding: &Rounding) -> bool {
    *rounding == Rounding::Down
}

fn is_nearest(rounding: &Rounding) -> bool {
    *rounding == Rounding::Nearest
}
