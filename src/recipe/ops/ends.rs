//! What stands at the ends of a recipe: decoding, and the way from levels to the
//! elements of a batch.

use serde::{Deserialize, Serialize};

use super::values::{Alpha, Background, ColorOrder, DecodeMode, PerChannel, Upright};
use crate::recipe::tensor::{Dtype, MemoryLayout};

/// To 8 bits a channel: EXIF orientation is applied or not, grey, CMYK, palettes
/// and 16 bits are converted, alpha is composited on `background` or left out.
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
    /// `exif`, or `stored`: as torchvision's `ImageFolder` and Pillow's `open`.
    #[serde(skip_serializing_if = "is_default")]
    pub orientation: Upright,
    /// `composite` on the background, or `drop`, as OpenCV.
    #[serde(skip_serializing_if = "is_default")]
    pub alpha: Alpha,
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

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
