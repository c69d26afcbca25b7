//! The operations, as data.
//!
//! Names and parameters are torchvision's where it has them.

use serde::{Deserialize, Serialize};

use super::tensor::{Dtype, MemoryLayout};

/// How JPEG data are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecodeMode {
    /// Every pixel of the crop at full size.
    Full,
    /// At 1/2, 1/4 or 1/8 when the crop is at least that many times larger
    /// than the target on both axes. Changes values a little; faster.
    Scaled,
}

impl DecodeMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Scaled => "scaled",
        }
    }
}

/// One operation on one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Op {
    /// To RGB8, upright: EXIF orientation is applied.
    Decode { mode: DecodeMode },
    /// A crop of random area and aspect ratio, resized to `size`: torchvision's
    /// `RandomResizedCrop`, bilinear and antialiased.
    RandomResizedCrop {
        /// Height and width of the output, pixels.
        size: (u32, u32),
        /// Range of the crop's area as a part of the image's.
        scale: (f64, f64),
        /// Range of the crop's width divided by its height.
        ratio: (f64, f64),
    },
    /// The shorter side becomes `size` pixels, the aspect ratio stays:
    /// torchvision's `Resize(int)`, bilinear and antialiased.
    ResizeShorter { size: u32 },
    /// The middle `size` (height, width) pixels: torchvision's `CenterCrop`.
    CenterCrop { size: (u32, u32) },
    /// Left becomes right with probability `p`.
    HorizontalFlip { p: f64 },
    /// `(value / 255 - mean) / std` for each channel.
    Normalize { mean: [f32; 3], std: [f32; 3] },
    /// The element type of the batch.
    Cast { dtype: Dtype },
    /// The order of the batch's axes.
    Layout { layout: MemoryLayout },
}

impl Op {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Decode { .. } => "decode",
            Self::RandomResizedCrop { .. } => "random_resized_crop",
            Self::ResizeShorter { .. } => "resize_shorter",
            Self::CenterCrop { .. } => "center_crop",
            Self::HorizontalFlip { .. } => "horizontal_flip",
            Self::Normalize { .. } => "normalize",
            Self::Cast { .. } => "cast",
            Self::Layout { .. } => "layout",
        }
    }
}

/// What is done to one sample, in the order in which it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    pub name: String,
    pub ops: Vec<Op>,
}

impl Recipe {
    pub fn new(name: impl Into<String>, ops: Vec<Op>) -> Self {
        Self {
            name: name.into(),
            ops,
        }
    }

    /// The same recipe with batches of another element type.
    pub fn with_dtype(mut self, to: Dtype) -> Self {
        self.ops.retain(|op| !matches!(op, Op::Cast { .. }));
        self.ops.push(Op::Cast { dtype: to });
        self
    }

    /// The same recipe with the axes of a batch in another order.
    pub fn with_layout(mut self, to: MemoryLayout) -> Self {
        self.ops.retain(|op| !matches!(op, Op::Layout { .. }));
        self.ops.push(Op::Layout { layout: to });
        self
    }

    /// The same recipe with another way to decode.
    pub fn with_decode(mut self, to: DecodeMode) -> Self {
        self.ops.retain(|op| !matches!(op, Op::Decode { .. }));
        self.ops.insert(0, Op::Decode { mode: to });
        self
    }

    /// A fingerprint of everything that the recipe says but its name: equal
    /// recipes give equal batches.
    pub fn hash(&self) -> u64 {
        // Debug prints floats with enough digits to tell any two apart, and
        // names every field, so distinct recipes give distinct text.
        twox_hash::XxHash3_128::oneshot(format!("{:?}", self.ops).as_bytes()) as u64
    }
}
