//! What PaddleClas' AutoAugment, RandAugment and RandAugmentV4 share: their
//! operations, strengths and signs (`ppcls/data/preprocess/ops/autoaugment.py`,
//! `randaugment.py`).

use super::kind::{Kind, Look};
use crate::recipe::step::Augment;
use crate::recipe::values::Interpolation;

/// Those of `RandAugment` and `RandAugmentV3`.
pub(crate) const KINDS: [Kind; 14] = [
    Kind::ShearX,
    Kind::ShearY,
    Kind::TranslateX,
    Kind::TranslateY,
    Kind::Rotate,
    Kind::Color,
    Kind::Posterize,
    Kind::Solarize,
    Kind::Contrast,
    Kind::Sharpness,
    Kind::Brightness,
    Kind::AutoContrast,
    Kind::Equalize,
    Kind::Invert,
];

/// Grey, whatever the corners of the other operations are.
const GREY: [u8; 3] = [128; 3];

/// numpy's `linspace(from, to, 10)`, to the bit.
fn linspace(from: f64, to: f64, at: u32) -> f64 {
    match at {
        0..=8 => from + (to - from) / 9.0 * f64::from(at),
        _ => to,
    }
}

/// `SubPolicy`'s strength number `at`, 0 to 9.
pub(crate) fn strength(kind: Kind, at: u32) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY => linspace(0.0, 0.3, at),
        Kind::TranslateX | Kind::TranslateY => linspace(0.0, 150.0 / 331.0, at),
        Kind::Rotate => linspace(0.0, 30.0, at),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => linspace(0.0, 0.9, at),
        Kind::Posterize => linspace(8.0, 4.0, at).round_ties_even(),
        Kind::Solarize => linspace(256.0, 0.0, at),
        // Half a side of the box.
        Kind::Cutout => linspace(0.0, 20.0, at).round_ties_even(),
        _ => 0.0,
    }
}

/// `RandAugment`'s, 0 to 10.
pub(crate) fn scaled(kind: Kind, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        Kind::ShearX | Kind::ShearY => 0.3 * level,
        Kind::TranslateX | Kind::TranslateY => 150.0 / 331.0 * level,
        Kind::Rotate => 30.0 * level,
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => 0.9 * level,
        Kind::Posterize => (4.0 * level).trunc(),
        Kind::Solarize => 256.0 * level,
        _ => 0.0,
    }
}

/// `RandAugmentV2`'s: pixels, degrees, bits, levels and factors as they are.
pub(crate) fn scaled_v2(kind: Kind, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        Kind::TranslateX | Kind::TranslateY => 100.0 * level,
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => 1.8 * level + 0.1,
        Kind::Solarize => (256.0 * level).trunc(),
        Kind::SolarizeAdd => (110.0 * level).trunc(),
        // Half a side of the box.
        Kind::Cutout => (40.0 * level).trunc(),
        kind => scaled(kind, magnitude),
    }
}

/// `RandAugmentV2`'s step: all is nearest; what moves goes either way, and corners of
/// rotations are grey.
pub(crate) fn step_v2(kind: Kind, strength: f64, sign: f64, fill: [u8; 3]) -> Option<Augment> {
    let (amount, fill) = match kind {
        Kind::ShearX | Kind::ShearY | Kind::TranslateX | Kind::TranslateY => {
            (strength * sign, fill)
        }
        Kind::Rotate => (strength * sign, GREY),
        _ => (strength, fill),
    };
    kind.step(
        amount,
        Look {
            interpolation: Interpolation::Nearest,
            fill,
        },
    )
}

/// `RandAugmentV3`'s: stronger is stronger for posterize and solarize too.
pub(crate) fn scaled_v3(kind: Kind, magnitude: f64) -> f64 {
    let level = magnitude / 10.0;
    match kind {
        Kind::Posterize => 8.0 - (4.0 * level).trunc(),
        Kind::Solarize => 255.0 * (1.0 - level),
        kind => scaled(kind, magnitude),
    }
}

/// The amount of a strength, of which `sign` is drawn for some.
pub(crate) fn amount(kind: Kind, strength: f64, sign: f64, size: (u32, u32)) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY | Kind::Rotate => strength * sign,
        Kind::TranslateX | Kind::TranslateY => strength * kind.side(size) * sign,
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => 1.0 + strength * sign,
        _ => strength,
    }
}

/// `SubPolicy`'s step: shears are bicubic, translations nearest; a rotation is
/// always counter-clockwise, and its corners are grey.
pub(crate) fn step(
    kind: Kind,
    strength: f64,
    sign: f64,
    size: (u32, u32),
    fill: [u8; 3],
) -> Option<Augment> {
    let (interpolation, fill, sign) = match kind {
        Kind::ShearX | Kind::ShearY => (Interpolation::Bicubic, fill, sign),
        Kind::Rotate => (Interpolation::Nearest, GREY, 1.0),
        _ => (Interpolation::Nearest, fill, sign),
    };
    let look = Look {
        interpolation,
        fill,
    };
    kind.step(amount(kind, strength, sign, size), look)
}
