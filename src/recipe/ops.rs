//! The operations, as data.
//!
//! Names and parameters are torchvision's where it has them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::tensor::{Dtype, MemoryLayout};
use crate::error::Error;

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

/// The colour that shows through where a picture is transparent, 0 to 255 for
/// red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Background(pub [u8; 3]);

impl Background {
    pub const WHITE: Self = Self([255; 3]);
    pub const BLACK: Self = Self([0; 3]);
}

/// White, as browsers and nerfstudio show such pictures.
impl Default for Background {
    fn default() -> Self {
        Self::WHITE
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "{r:02x}{g:02x}{b:02x}")
    }
}

impl FromStr for Background {
    type Err = Error;

    /// `white`, `black`, or six hexadecimal digits as in `ff8000`.
    fn from_str(s: &str) -> Result<Self, Error> {
        let digits = match s {
            "white" => return Ok(Self::WHITE),
            "black" => return Ok(Self::BLACK),
            _ => s.strip_prefix('#').unwrap_or(s),
        };
        u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| digits.len() == 6 && !digits.starts_with('+'))
            .map(|rgb| Self([(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8]))
            .ok_or_else(|| {
                Error::config(format!(
                    "background '{s}' is neither white, black nor six hexadecimal digits such as \
                     ff8000"
                ))
            })
    }
}

/// One operation on one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Op {
    /// To RGB8, upright: EXIF orientation is applied, grey, CMYK, palettes and
    /// 16 bits are converted, alpha is composited on `background`.
    Decode {
        mode: DecodeMode,
        background: Background,
    },
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
    pub fn with_decode(self, to: DecodeMode) -> Self {
        let (_, background) = self.decode();
        self.with(to, background)
    }

    /// The same recipe with another colour behind transparent pictures.
    pub fn with_background(self, to: Background) -> Self {
        let (mode, _) = self.decode();
        self.with(mode, to)
    }

    fn with(mut self, mode: DecodeMode, background: Background) -> Self {
        self.ops.retain(|op| !matches!(op, Op::Decode { .. }));
        self.ops.insert(0, Op::Decode { mode, background });
        self
    }

    /// How pictures are decoded, where the recipe does not say too.
    pub(crate) fn decode(&self) -> (DecodeMode, Background) {
        self.ops
            .iter()
            .find_map(|op| match op {
                Op::Decode { mode, background } => Some((*mode, *background)),
                _ => None,
            })
            .unwrap_or((DecodeMode::Scaled, Background::default()))
    }

    /// A fingerprint of everything that the recipe says but its name: equal
    /// recipes give equal batches.
    pub fn hash(&self) -> u64 {
        // Debug prints floats with enough digits to tell any two apart, and
        // names every field, so distinct recipes give distinct text.
        twox_hash::XxHash3_128::oneshot(format!("{:?}", self.ops).as_bytes()) as u64
    }
}
