//! Augmentation policies: several operations drawn from a table, with strengths
//! that are drawn or given. Their arithmetic is Pillow's, bit by bit, on 8-bit RGB.

use serde::{Deserialize, Serialize};

use super::values::{ChainDepth, Interpolation, PerChannel};

/// AutoAugment: one of 25 pairs of operations, each with its probability and
/// strength (Cubuk et al. 2019), as PaddleClas' `AutoAugment` draws and applies them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoAugment {
    pub policy: AutoPolicy,
}

/// A table of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoPolicy {
    #[default]
    Imagenet,
}

/// RandAugment: `num_ops` operations out of a table, with replacement, all of
/// strength `magnitude` (Cubuk et al. 2020).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandAugment {
    /// 1 to 16.
    pub num_ops: u32,
    pub magnitude: f64,
    pub table: RandTable,
    pub interpolation: Interpolation,
    pub fill: PerChannel,
}

/// Which operations, and what a strength means to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RandTable {
    /// torchvision's `RandAugment`, of 31 strengths.
    #[default]
    Torchvision,
    /// PaddleClas' `RandAugment`, of strengths 0 to 10, whose interpolations are its
    /// own: bicubic shears, the rest nearest. Rotations have grey corners.
    Paddle,
    /// PaddleClas' `RandAugmentV3`, of strengths 0 to 10.
    Paddle3,
    /// PaddleClas' `RandAugmentV4`: two of 15, each with probability 0.5 and a drawn
    /// strength; `num_ops`, `magnitude`, `interpolation` and `fill` mean nothing.
    Paddle4,
}

/// TrivialAugment: one operation with a strength that is drawn (Mueller and Hutter
/// 2021), as torchvision's `TrivialAugmentWide` with 31 strengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrivialAugment {
    pub interpolation: Interpolation,
    pub fill: PerChannel,
}

/// AugMix: `width` chains of `depth` operations, mixed with the picture (Hendrycks
/// et al. 2020), as PaddleClas'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugMix {
    pub p: f64,
    /// Of the Dirichlet and beta distributions of the weights, 0.01 to 100.
    pub alpha: f64,
    /// 1 to 8.
    pub width: u32,
    pub depth: ChainDepth,
    /// 0.1 to 10; levels are uniform from 0.1 to it.
    pub severity: f64,
}

/// A policy as timm writes it: `rand-m9-mstd0.5-inc1`. Served are `rand` with the
/// parts m (0 to 10), n (1 to 16), mstd, inc1 and w0, in any order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimmAugment {
    pub config: String,
    #[serde(default = "TimmAugment::always")]
    pub p: f64,
    /// One, or several of which each operation draws one.
    #[serde(default = "TimmAugment::bicubic")]
    pub interpolation: Vec<Interpolation>,
    #[serde(default = "TimmAugment::imagenet_mean")]
    pub fill: PerChannel,
}

/// With probability `p`, `holes` squares of `length` pixels at random places become
/// `value`; their centres lie in the picture, their corners may not (DeVries and
/// Taylor 2017). The centre of an even length is the pixel behind the middle. 1 to
/// 64 holes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cutout {
    pub p: f64,
    pub holes: u32,
    pub length: u32,
    /// Levels; none: a colour that is drawn for each hole, in a file `random`.
    #[serde(with = "drawn")]
    pub value: Option<PerChannel>,
}

/// A colour, or that it is drawn: what is left out is the default, which is black,
/// so that none needs a word.
mod drawn {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::super::values::{Erasing, PerChannel};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<PerChannel>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value.map_or(Erasing::Random, Erasing::Value).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<PerChannel>, D::Error> {
        Ok(match Erasing::deserialize(d)? {
            Erasing::Value(value) => Some(value),
            Erasing::Random => None,
        })
    }
}

impl Default for RandAugment {
    fn default() -> Self {
        Self {
            num_ops: 2,
            magnitude: 9.0,
            table: RandTable::Torchvision,
            interpolation: Interpolation::Nearest,
            fill: PerChannel::default(),
        }
    }
}

impl Default for TrivialAugment {
    fn default() -> Self {
        Self {
            interpolation: Interpolation::Nearest,
            fill: PerChannel::default(),
        }
    }
}

impl Default for AugMix {
    fn default() -> Self {
        Self {
            p: 0.5,
            alpha: 0.1,
            width: 3,
            depth: ChainDepth::Fixed(1),
            severity: 1.0,
        }
    }
}

impl TimmAugment {
    fn always() -> f64 {
        1.0
    }

    fn bicubic() -> Vec<Interpolation> {
        vec![Interpolation::Bicubic]
    }

    fn imagenet_mean() -> PerChannel {
        PerChannel([124.0, 116.0, 104.0])
    }

    /// Bicubic, the corners of ImageNet's mean colour.
    pub fn new(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            p: Self::always(),
            interpolation: Self::bicubic(),
            fill: Self::imagenet_mean(),
        }
    }
}

/// One square of 112 pixels, black.
impl Default for Cutout {
    fn default() -> Self {
        Self {
            p: 1.0,
            holes: 1,
            length: 112,
            value: Some(PerChannel::default()),
        }
    }
}
