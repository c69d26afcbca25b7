//! `torchvision.transforms.autoaugment.TrivialAugmentWide` with 31 strengths, on
//! Pillow pictures: one operation, its strength and its sign.

use super::distribution;
use super::kind::{Kind, Look, one_of};
use super::rand::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::geometry::Uniform;
use crate::recipe::ops::TrivialAugment;
use crate::recipe::step::Augment;

/// `TrivialAugmentWide._augmentation_space`.
pub(super) fn strength(kind: Kind, at: u32) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY => linspace(0.0, 0.99, at),
        Kind::TranslateX | Kind::TranslateY => linspace(0.0, 32.0, at),
        Kind::Rotate => linspace(0.0, 135.0, at),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => {
            linspace(0.0, 0.99, at)
        }
        Kind::Posterize => 8.0 - (f64::from(at) / (f64::from(STRONGEST) / 6.0)).round_ties_even(),
        Kind::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}

pub(super) fn draw(o: &TrivialAugment, random: &mut impl Uniform, push: &mut impl FnMut(Augment)) {
    let kind = one_of(&TORCHVISION, random);
    let strength = strength(kind, random.next_up_to(STRONGEST));
    let amount = torchvision_amount(kind, strength, distribution::sign(random));
    let look = Look::new(o.interpolation, o.fill);
    kind.step(amount, look).into_iter().for_each(&mut *push);
}
