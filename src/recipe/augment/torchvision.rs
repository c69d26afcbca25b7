//! torchvision's operations, strengths and amounts, of `RandAugment` and
//! `TrivialAugmentWide`.

use super::kind::Kind;

/// torchvision's operations, of `RandAugment` and `TrivialAugmentWide`.
pub(crate) const TORCHVISION: [Kind; 14] = [
    Kind::Identity,
    Kind::ShearX,
    Kind::ShearY,
    Kind::TranslateX,
    Kind::TranslateY,
    Kind::Rotate,
    Kind::Brightness,
    Kind::Color,
    Kind::Contrast,
    Kind::Sharpness,
    Kind::Posterize,
    Kind::Solarize,
    Kind::AutoContrast,
    Kind::Equalize,
];

/// The number of torchvision's last strength.
pub(crate) const STRONGEST: u32 = 30;

/// `torch.linspace(from, to, 31)` in `f32`, from both ends as torch has it.
pub(crate) fn linspace(from: f32, to: f32, at: u32) -> f64 {
    let step = (to - from) / STRONGEST as f32;
    f64::from(if at < STRONGEST.div_ceil(2) {
        from + step * at as f32
    } else {
        to - step * (STRONGEST - at) as f32
    })
}

/// The amount of a strength of torchvision's, as its `_apply_op` hands it on.
pub(crate) fn torchvision_amount(kind: Kind, strength: f64, sign: f64) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY | Kind::Rotate => strength * sign,
        // `int(magnitude)`; to the right for positive ones, so that pixels come from
        // the left.
        Kind::TranslateX | Kind::TranslateY => -(strength * sign).trunc(),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => 1.0 + strength * sign,
        _ => strength,
    }
}
