//! The operations, as data: what a user writes, in Rust or in a file.
//!
//! Names, parameters and defaults are torchvision's where it has them
//! (`transforms.v2`); sizes are height, width; colours are levels 0 to 255. One
//! struct an operation, each with its defaults; the derived text form is the
//! file format, so there is no second list of names. Checked by `program`.
//!
//! - `shape`, `color`, `augment`, `ends`: the operations;
//! - `values`: the types of parameters, and the short forms that files may use.

mod augment;
mod color;
mod ends;
mod shape;
mod values;

use serde::{Deserialize, Serialize};

pub use augment::{
    AugMix, AutoAugment, AutoPolicy, Cutout, RandAugment, RandTable, TimmAugment, TrivialAugment,
};
pub use color::{
    ColorJitter, ConvertColor, CropWithPadding, GaussianBlur, Grayscale, PcaLighting,
    RandomErasing, RandomGrayscale,
};
pub use ends::{Cast, Decode, Layout, Normalize};
pub use shape::{
    Anchor, BoundedResizedCrop, CenterCrop, Pad, PadTo, RandomCrop, RandomHorizontalFlip,
    RandomResizedCrop, RandomRotate90, RandomRotation, RandomVerticalFlip, Resize, Rotate90,
};
pub use values::{
    Alpha, Aspect, Background, ChainDepth, ColorOrder, ColorSpace, DecodeMode, Erasing,
    Interpolation, JitterStyle, Padding, PaddingMode, PerChannel, ResizeTo, RotationStyle,
    Rounding, Size, Span, Upright, WhitePoint,
};

/// One operation on one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Op {
    Decode(Decode),
    Resize(Resize),
    RandomResizedCrop(RandomResizedCrop),
    BoundedResizedCrop(BoundedResizedCrop),
    RandomCrop(RandomCrop),
    CenterCrop(CenterCrop),
    RandomHorizontalFlip(RandomHorizontalFlip),
    RandomVerticalFlip(RandomVerticalFlip),
    RandomRotation(RandomRotation),
    Rotate90(Rotate90),
    RandomRotate90(RandomRotate90),
    Pad(Pad),
    PadTo(PadTo),
    ColorJitter(ColorJitter),
    Grayscale(Grayscale),
    RandomGrayscale(RandomGrayscale),
    ConvertColor(ConvertColor),
    PcaLighting(PcaLighting),
    GaussianBlur(GaussianBlur),
    AutoAugment(AutoAugment),
    RandAugment(RandAugment),
    TrivialAugment(TrivialAugment),
    AugMix(AugMix),
    TimmAugment(TimmAugment),
    Cutout(Cutout),
    RandomErasing(RandomErasing),
    CropWithPadding(CropWithPadding),
    Normalize(Normalize),
    Cast(Cast),
    Layout(Layout),
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
    BoundedResizedCrop => "bounded_resized_crop",
    RandomCrop => "random_crop",
    CenterCrop => "center_crop",
    RandomHorizontalFlip => "random_horizontal_flip",
    RandomVerticalFlip => "random_vertical_flip",
    RandomRotation => "random_rotation",
    Rotate90 => "rotate90",
    RandomRotate90 => "random_rotate90",
    Pad => "pad",
    PadTo => "pad_to",
    ColorJitter => "color_jitter",
    Grayscale => "grayscale",
    RandomGrayscale => "random_grayscale",
    ConvertColor => "convert_color",
    PcaLighting => "pca_lighting",
    GaussianBlur => "gaussian_blur",
    AutoAugment => "auto_augment",
    RandAugment => "rand_augment",
    TrivialAugment => "trivial_augment",
    AugMix => "aug_mix",
    TimmAugment => "timm_augment",
    Cutout => "cutout",
    RandomErasing => "random_erasing",
    CropWithPadding => "crop_with_padding",
    Normalize => "normalize",
    Cast => "cast",
    Layout => "layout",
}
