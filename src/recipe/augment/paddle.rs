//! Operations, strengths and signs shared by PaddleClas' AutoAugment, RandAugment and RandAugmentV4
//! (`ppcls/data/preprocess/ops/autoaugment.py`, `randaugment.py`).

use super::policy_op::{PolicyOp, WarpOptions};
use crate::recipe::step::AugmentStep;
use crate::recipe::values::InterpolationMode;

/// The operations of `RandAugment` and `RandAugmentV3`.
pub(crate) const KINDS: [PolicyOp; 14] = [
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
    PolicyOp::Rotate,
    PolicyOp::Color,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::Contrast,
    PolicyOp::Sharpness,
    PolicyOp::Brightness,
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
    PolicyOp::Invert,
];

/// Grey corners of rotations, whatever the fill of the other operations.
const GREY: [u8; 3] = [128; 3];

/// numpy's `linspace(from, to, 10)`, equal bit by bit.
fn linspace(from: f64, to: f64, at: u32) -> f64 {
    match at {
        0..=8 => from + (to - from) / 9.0 * f64::from(at),
        _ => to,
    }
}

/// Strength number `at` (0 to 9) of `SubPolicy`.
pub(crate) fn strength(kind: PolicyOp, at: u32) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => linspace(0.0, 0.3, at),
        PolicyOp::TranslateX | PolicyOp::TranslateY => linspace(0.0, 150.0 / 331.0, at),
        PolicyOp::Rotate => linspace(0.0, 30.0, at),
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            linspace(0.0, 0.9, at)
        }
        PolicyOp::Posterize => linspace(8.0, 4.0, at).round_ties_even(),
        PolicyOp::Solarize => linspace(256.0, 0.0, at),
        // Half the side of the box.
        PolicyOp::Cutout => linspace(0.0, 20.0, at).round_ties_even(),
        _ => 0.0,
    }
}

/// The strength in `RandAugment`, for magnitudes of 0 to 10.
pub(crate) fn scaled(kind: PolicyOp, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => 0.3 * level,
        PolicyOp::TranslateX | PolicyOp::TranslateY => 150.0 / 331.0 * level,
        PolicyOp::Rotate => 30.0 * level,
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            0.9 * level
        }
        PolicyOp::Posterize => (4.0 * level).trunc(),
        PolicyOp::Solarize => 256.0 * level,
        _ => 0.0,
    }
}

/// The strength in `RandAugmentV2`, in pixels, degrees, bits, levels or factors.
pub(crate) fn scaled_v2(kind: PolicyOp, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        PolicyOp::TranslateX | PolicyOp::TranslateY => 100.0 * level,
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            1.8 * level + 0.1
        }
        PolicyOp::Solarize => (256.0 * level).trunc(),
        PolicyOp::SolarizeAdd => (110.0 * level).trunc(),
        // Half the side of the box.
        PolicyOp::Cutout => (40.0 * level).trunc(),
        kind => scaled(kind, magnitude),
    }
}

/// The step in `RandAugmentV2`: nearest everywhere. Moves go in either direction. Rotations have
/// grey corners.
pub(crate) fn step_v2(
    kind: PolicyOp,
    strength: f64,
    sign: f64,
    fill: [u8; 3],
) -> Option<AugmentStep> {
    let (amount, fill) = match kind {
        PolicyOp::ShearX | PolicyOp::ShearY | PolicyOp::TranslateX | PolicyOp::TranslateY => {
            (strength * sign, fill)
        }
        PolicyOp::Rotate => (strength * sign, GREY),
        _ => (strength, fill),
    };
    kind.step(
        amount,
        WarpOptions {
            interpolation: InterpolationMode::Nearest,
            fill,
        },
    )
}

/// The strength in `RandAugmentV3`, where posterize and solarize also become stronger.
pub(crate) fn scaled_v3(kind: PolicyOp, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        PolicyOp::Posterize => 8.0 - (4.0 * level).trunc(),
        PolicyOp::Solarize => 255.0 * (1.0 - level),
        kind => scaled(kind, magnitude),
    }
}

/// The amount for a strength. For some operations `sign` is used.
pub(crate) fn amount(kind: PolicyOp, strength: f64, sign: f64, size: (u32, u32)) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY | PolicyOp::Rotate => strength * sign,
        PolicyOp::TranslateX | PolicyOp::TranslateY => strength * kind.side(size) * sign,
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            1.0 + strength * sign
        }
        _ => strength,
    }
}

/// The step in `SubPolicy`: bicubic shears, nearest translations. Rotations are always
/// counter-clockwise and have grey corners.
pub(crate) fn step(
    kind: PolicyOp,
    strength: f64,
    sign: f64,
    size: (u32, u32),
    fill: [u8; 3],
) -> Option<AugmentStep> {
    let (interpolation, fill, sign) = match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => (InterpolationMode::Bicubic, fill, sign),
        PolicyOp::Rotate => (InterpolationMode::Nearest, GREY, 1.0),
        _ => (InterpolationMode::Nearest, fill, sign),
    };
    let look = WarpOptions {
        interpolation,
        fill,
    };
    kind.step(amount(kind, strength, sign, size), look)
}
