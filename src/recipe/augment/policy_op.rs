//! The operations that policies draw from, and the step of each for an amount.
//!
//! Pure. Knows no policy.

use crate::recipe::geometry::UniformSource;
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{AffineStyle, InterpolationMode, PerChannel};

/// An operation of a policy. The meaning of its amount is documented at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PolicyOp {
    /// Does nothing.
    Identity,
    AutoContrast,
    Equalize,
    Invert,
    /// The number of bits that stay.
    Posterize,
    /// The lowest level that is inverted.
    Solarize,
    /// Added to levels below 128.
    SolarizeAdd,
    /// Factors.
    Brightness,
    Contrast,
    Color,
    Sharpness,
    /// Degrees counter-clockwise.
    Rotate,
    /// Pixels along one side per pixel of the other.
    ShearX,
    ShearY,
    /// Pixels.
    TranslateX,
    TranslateY,
    /// A box, without an amount.
    Cutout,
}

/// Interpolation and fill colour of operations that move pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WarpOptions {
    pub(crate) interpolation: InterpolationMode,
    pub(crate) fill: [u8; 3],
}

impl WarpOptions {
    pub(crate) fn new(interpolation: InterpolationMode, fill: PerChannel) -> Self {
        Self {
            interpolation,
            fill: levels(fill),
        }
    }
}

/// Whole levels. `range` has checked them.
pub(crate) fn levels(color: PerChannel) -> [u8; 3] {
    color.0.map(|v| v as u8)
}

impl PolicyOp {
    /// The step. None for `Identity`, and for a box.
    pub(crate) fn step(self, amount: f64, look: WarpOptions) -> Option<AugmentStep> {
        let WarpOptions {
            interpolation,
            fill,
        } = look;
        let affine = |matrix| AugmentStep::Affine {
            matrix,
            interpolation,
            fill,
            style: AffineStyle::Pillow,
        };
        Some(match self {
            Self::Identity | Self::Cutout => return None,
            Self::AutoContrast => AugmentStep::AutoContrast,
            Self::Equalize => AugmentStep::Equalize,
            Self::Invert => AugmentStep::Invert,
            Self::Posterize => AugmentStep::Posterize { bits: amount as u8 },
            Self::Solarize => AugmentStep::Solarize {
                threshold: amount as f32,
            },
            Self::SolarizeAdd => AugmentStep::SolarizeAdd {
                add: amount as u8,
                threshold: 128,
            },
            Self::Brightness => AugmentStep::Brightness(amount as f32),
            Self::Contrast => AugmentStep::Contrast(amount as f32),
            Self::Color => AugmentStep::Color(amount as f32),
            Self::Sharpness => AugmentStep::Sharpness(amount as f32),
            Self::Rotate => AugmentStep::Rotate {
                degrees: amount,
                interpolation,
                fill,
            },
            Self::ShearX => affine([1.0, amount, 0.0, 0.0, 1.0, 0.0]),
            Self::ShearY => affine([1.0, 0.0, 0.0, amount, 1.0, 0.0]),
            Self::TranslateX => affine([1.0, 0.0, amount, 0.0, 1.0, 0.0]),
            Self::TranslateY => affine([1.0, 0.0, 0.0, 0.0, 1.0, amount]),
        })
    }

    /// The side along which a translation moves, in pixels.
    pub(crate) fn side(self, (height, width): (u32, u32)) -> f64 {
        f64::from(if self == Self::TranslateX {
            width
        } else {
            height
        })
    }
}

/// Draws one operation, all with the same probability.
pub(crate) fn draw_policy_op(kinds: &[PolicyOp], random: &mut impl UniformSource) -> PolicyOp {
    let last = kinds.len().saturating_sub(1) as u32;
    let at = random.next_up_to(last) as usize;
    kinds.get(at).copied().unwrap_or(PolicyOp::Identity)
}

/// Draws whether something of probability `p` happens.
pub(crate) fn draw_chance(p: f64, random: &mut impl UniformSource) -> bool {
    random.next_f64() < p || p >= 1.0
}

/// Pushes the steps that need the most memory for this number of operations. Two steps that read
/// one buffer and write another need the most.
pub(crate) fn push_largest_warps(times: u32, steps: &mut dyn StepSink) {
    let look = WarpOptions {
        interpolation: InterpolationMode::Bicubic,
        fill: [0; 3],
    };
    for _ in 0..times.min(2) {
        steps.augment(PolicyOp::ShearX.step(0.0, look));
    }
}
