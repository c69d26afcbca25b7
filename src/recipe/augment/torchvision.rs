//! Operations, strengths and amounts of torchvision's `RandAugment` and `TrivialAugmentWide`.

use super::policy_op::PolicyOp;

/// The operations of `RandAugment` and `TrivialAugmentWide`.
pub(crate) const TORCHVISION: [PolicyOp; 14] = [
    PolicyOp::Identity,
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
    PolicyOp::Rotate,
    PolicyOp::Brightness,
    PolicyOp::Color,
    PolicyOp::Contrast,
    PolicyOp::Sharpness,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
];

/// The number of the last strength.
pub(crate) const STRONGEST: u32 = 30;

/// `torch.linspace(from, to, 31)` in `f32`. Like torch, it counts from both ends.
pub(crate) fn linspace(from: f32, to: f32, at: u32) -> f64 {
    let step = (to - from) / STRONGEST as f32;
    f64::from(if at < STRONGEST.div_ceil(2) {
        from + step * at as f32
    } else {
        to - step * (STRONGEST - at) as f32
    })
}

/// The amount for a strength, as torchvision's `_apply_op` uses it.
pub(crate) fn torchvision_amount(kind: PolicyOp, strength: f64, sign: f64) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY | PolicyOp::Rotate => strength * sign,
        // `int(magnitude)`; to the right for positive ones, so that pixels come from
        // the left.
        PolicyOp::TranslateX | PolicyOp::TranslateY => -(strength * sign).trunc(),
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            1.0 + strength * sign
        }
        _ => strength,
    }
}
