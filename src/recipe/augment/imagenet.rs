//! AutoAugment's policy for ImageNet as PaddleClas' `ImageNetPolicy` writes it
//! (`ppcls/data/preprocess/ops/autoaugment.py`, after DeepVoltaire/AutoAugment).

use super::kind::Kind;
use super::{distribution, happens, paddle};
use crate::recipe::geometry::Uniform;
use crate::recipe::step::Augment;

/// An operation with its probability and the number of its strength.
type Chance = (f64, Kind, u32);

use Kind::{
    AutoContrast, Color, Contrast, Equalize, Invert, Posterize, Rotate, Sharpness, ShearX, Solarize,
};

pub(super) const PAIRS: [(Chance, Chance); 25] = [
    ((0.4, Posterize, 8), (0.6, Rotate, 9)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
    ((0.6, Posterize, 7), (0.6, Posterize, 6)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.4, Equalize, 4), (0.8, Rotate, 8)),
    ((0.6, Solarize, 3), (0.6, Equalize, 7)),
    ((0.8, Posterize, 5), (1.0, Equalize, 2)),
    ((0.2, Rotate, 3), (0.6, Solarize, 8)),
    ((0.6, Equalize, 8), (0.4, Posterize, 6)),
    ((0.8, Rotate, 8), (0.4, Color, 0)),
    ((0.4, Rotate, 9), (0.6, Equalize, 2)),
    ((0.0, Equalize, 7), (0.8, Equalize, 8)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Rotate, 8), (1.0, Color, 2)),
    ((0.8, Color, 8), (0.8, Solarize, 7)),
    ((0.4, Sharpness, 7), (0.6, Invert, 8)),
    ((0.6, ShearX, 5), (1.0, Equalize, 9)),
    ((0.4, Color, 0), (0.6, Equalize, 3)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
];

/// The corners of a shear.
pub(super) const FILL: [u8; 3] = [128; 3];

pub(super) fn draw(size: (u32, u32), random: &mut impl Uniform, push: &mut impl FnMut(Augment)) {
    let at = random.next_up_to(PAIRS.len() as u32 - 1) as usize;
    let (first, second) = PAIRS[at];
    for (p, kind, strength) in [first, second] {
        let done = happens(p, random);
        let sign = distribution::sign(random);
        if done {
            let strength = paddle::strength(kind, strength);
            paddle::step(kind, strength, sign, size, FILL)
                .into_iter()
                .for_each(&mut *push);
        }
    }
}
