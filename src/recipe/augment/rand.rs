//! RandAugment's four tables.
//!
//! torchvision's is `torchvision.transforms.autoaugment.RandAugment` with 31
//! strengths (`_augmentation_space`, `_apply_op`), on Pillow pictures; the others
//! are PaddleClas' `RandAugment`, `RandAugmentV3` and `RandAugmentV4`.

use super::kind::{Kind, Look, levels, one_of};
use super::{distribution, happens, paddle};
use crate::recipe::geometry::{Rect, Uniform};
use crate::recipe::ops::{RandAugment, RandTable};
use crate::recipe::step::Augment;

/// torchvision's operations, of `RandAugment` and `TrivialAugmentWide`.
pub(super) const TORCHVISION: [Kind; 14] = [
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
pub(super) const STRONGEST: u32 = 30;

/// `torch.linspace(from, to, 31)` in `f32`, from both ends as torch has it.
pub(super) fn linspace(from: f32, to: f32, at: u32) -> f64 {
    let step = (to - from) / STRONGEST as f32;
    f64::from(if at < STRONGEST.div_ceil(2) {
        from + step * at as f32
    } else {
        to - step * (STRONGEST - at) as f32
    })
}

/// The amount of a strength of torchvision's, as its `_apply_op` hands it on.
pub(super) fn torchvision_amount(kind: Kind, strength: f64, sign: f64) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY | Kind::Rotate => strength * sign,
        // `int(magnitude)`; to the right for positive ones, so that pixels come from
        // the left.
        Kind::TranslateX | Kind::TranslateY => -(strength * sign).trunc(),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => 1.0 + strength * sign,
        _ => strength,
    }
}

/// `RandAugment._augmentation_space`.
pub(super) fn torchvision_strength(kind: Kind, at: u32, size: (u32, u32)) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY => linspace(0.0, 0.3, at),
        Kind::TranslateX | Kind::TranslateY => {
            linspace(0.0, (150.0 / 331.0 * kind.side(size)) as f32, at)
        }
        Kind::Rotate => linspace(0.0, 30.0, at),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => linspace(0.0, 0.9, at),
        Kind::Posterize => 8.0 - (f64::from(at) / (f64::from(STRONGEST) / 4.0)).round_ties_even(),
        Kind::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}

/// `RandAugmentV4`'s.
const WITH_CUTOUT: [Kind; 15] = {
    let mut kinds = [Kind::Cutout; 15];
    let mut i = 0;
    while i < paddle::KINDS.len() {
        kinds[i] = paddle::KINDS[i];
        i += 1;
    }
    kinds
};

pub(super) fn draw(
    o: &RandAugment,
    size: (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    if o.table == RandTable::Paddle4 {
        return with_cutout(size, random, push);
    }
    let look = Look::new(o.interpolation, o.fill);
    for _ in 0..o.num_ops {
        let kinds = match o.table {
            RandTable::Torchvision => &TORCHVISION,
            RandTable::Paddle | RandTable::Paddle3 | RandTable::Paddle4 => &paddle::KINDS,
        };
        let kind = one_of(kinds, random);
        let sign = distribution::sign(random);
        let step = match o.table {
            RandTable::Torchvision => {
                let strength = torchvision_strength(kind, o.magnitude as u32, size);
                kind.step(torchvision_amount(kind, strength, sign), look)
            }
            RandTable::Paddle => {
                let strength = paddle::scaled(kind, o.magnitude);
                paddle::step(kind, strength, sign, size, look.fill)
            }
            RandTable::Paddle3 | RandTable::Paddle4 => {
                let strength = paddle::scaled_v3(kind, o.magnitude);
                kind.step(paddle::amount(kind, strength, sign, size), look)
            }
        };
        step.into_iter().for_each(&mut *push);
    }
}

/// Every one of the 135 squared pairs is equally likely: two that are drawn alike.
fn with_cutout(
    (height, width): (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    for _ in 0..2 {
        let kind = one_of(&WITH_CUTOUT, random);
        let strength = paddle::strength(kind, 1 + random.next_up_to(8));
        let done = happens(0.5, random);
        let sign = distribution::sign(random);
        // The height and the width themselves may come.
        let (y, x) = (random.next_up_to(height), random.next_up_to(width));
        if !done {
            continue;
        }
        if kind == Kind::Cutout {
            let half = strength as u32;
            let (top, left) = (y.saturating_sub(half), x.saturating_sub(half));
            push(Augment::Fill {
                rect: Rect {
                    top,
                    left,
                    height: y.saturating_add(half).min(height) - top,
                    width: x.saturating_add(half).min(width) - left,
                },
                color: [0; 3],
            });
        } else {
            paddle::step(kind, strength, sign, (height, width), levels(128.0.into()))
                .into_iter()
                .for_each(&mut *push);
        }
    }
}
