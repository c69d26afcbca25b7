//! Operations, levels, amounts and tables of timm's policies (`timm.data.auto_augment`).

use super::distribution::gauss;
use super::policy_op::PolicyOp;
use crate::recipe::geometry::UniformSource;

/// The highest level: `_LEVEL_DENOM`.
const HIGHEST: f64 = 10.0;

/// The operations of `rand`, also with `inc1`, where a level means something else for some.
pub(crate) const KINDS: [PolicyOp; 15] = [
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
    PolicyOp::Invert,
    PolicyOp::Rotate,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::SolarizeAdd,
    PolicyOp::Color,
    PolicyOp::Contrast,
    PolicyOp::Brightness,
    PolicyOp::Sharpness,
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
];

/// The weights of `KINDS`, with `w0`.
pub(crate) const WEIGHTS: [f64; 15] = [
    0.025, 0.005, 0.0, 0.3, 0.0, 0.005, 0.005, 0.025, 0.005, 0.005, 0.025, 0.2, 0.2, 0.1, 0.1,
];

/// The operations of `augmix`: `_AUGMIX_TRANSFORMS`.
pub(crate) const CHAIN_KINDS: [PolicyOp; 13] = [
    PolicyOp::AutoContrast,
    PolicyOp::Color,
    PolicyOp::Contrast,
    PolicyOp::Brightness,
    PolicyOp::Sharpness,
    PolicyOp::Equalize,
    PolicyOp::Rotate,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
];

/// How the level of an operation is drawn around the magnitude of its policy. Levels are clipped to
/// 0 to 10.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LevelSpread {
    /// Normal, with this deviation. With 0 the level is the magnitude.
    Normal(f64),
    /// Uniform from 0 to the magnitude.
    Uniform,
}

impl LevelSpread {
    pub(crate) fn draw(self, magnitude: f64, random: &mut impl UniformSource) -> f64 {
        let level = match self {
            Self::Normal(deviation) => magnitude + deviation * gauss(random),
            Self::Uniform => magnitude * random.next_f64(),
        };
        level.clamp(0.0, HIGHEST)
    }
}

/// The levels of a policy with one magnitude.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelLaw {
    pub(crate) magnitude: f64,
    pub(crate) spread: LevelSpread,
    pub(crate) rules: LevelRules,
}

/// How many bits posterize keeps at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PosterizeBits {
    /// 0 to 4.
    Rising,
    /// 4 to 0: `PosterizeIncreasing`.
    Falling,
    /// 4 to 8: `PosterizeOriginal`.
    Original,
}

/// The meaning of levels in a policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelRules {
    /// Solarize and changes of colours become stronger with the level.
    pub(crate) increasing: bool,
    pub(crate) posterize: PosterizeBits,
    /// The part of a side that the highest level moves.
    pub(crate) translate: f64,
}

impl LevelRules {
    pub(crate) const PLAIN: Self = Self {
        increasing: false,
        posterize: PosterizeBits::Rising,
        translate: 0.45,
    };
    pub(crate) const INCREASING: Self = Self {
        increasing: true,
        posterize: PosterizeBits::Falling,
        translate: 0.45,
    };
    /// `translate_pct` of `create_transform` for `augmix`.
    pub(crate) const CHAINS: Self = Self {
        translate: 0.3,
        ..Self::INCREASING
    };

    /// The amount for a level of 0 to 10. Equals timm's `LEVEL_TO_ARG` bit by bit.
    pub(crate) fn amount(self, kind: PolicyOp, level: f64, sign: f64, size: (u32, u32)) -> f64 {
        let part = level / HIGHEST;
        match kind {
            PolicyOp::Rotate => part * 30.0 * sign,
            PolicyOp::Posterize => {
                let bits = (part * 4.0).trunc();
                match self.posterize {
                    PosterizeBits::Rising => bits,
                    PosterizeBits::Falling => 4.0 - bits,
                    PosterizeBits::Original => bits + 4.0,
                }
            }
            PolicyOp::Solarize if self.increasing => 256.0 - (part * 256.0).trunc(),
            PolicyOp::Solarize => (part * 256.0).trunc(),
            PolicyOp::SolarizeAdd => (part * 110.0).trunc(),
            PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Brightness | PolicyOp::Sharpness => {
                match self.increasing {
                    true => 1.0 + part * 0.9 * sign,
                    false => part * 1.8 + 0.1,
                }
            }
            PolicyOp::ShearX | PolicyOp::ShearY => part * 0.3 * sign,
            PolicyOp::TranslateX | PolicyOp::TranslateY => {
                part * self.translate * sign * kind.side(size)
            }
            _ => 0.0,
        }
    }
}

/// The part of each chain when chains are mixed into the image one after the other, so that chain
/// `i` has `weights[i] * by` in the end: `_calc_blended_weights`.
pub(crate) fn blended_parts<const N: usize>(weights: [f32; N], by: f32) -> [f32; N] {
    let mut left = 1.0f32;
    let mut parts = weights.map(|weight| weight * by);
    for part in parts.iter_mut().rev() {
        // Nothing is left for a chain that later chains hide.
        *part = if left > 0.0 { *part / left } else { 0.0 };
        left *= 1.0 - *part;
    }
    parts
}
