//! AugMix as PaddleClas' (`ppcls/data/preprocess/ops/operators.py`, `functional.py`):
//! chains of operations on the picture, summed with Dirichlet weights, and that
//! sum mixed with the picture by a beta number. Bilinear, corners black.

use super::distribution::{self, beta, dirichlet};
use super::happens;
use super::kind::{Kind, Look, one_of};
use crate::recipe::geometry::Uniform;
use crate::recipe::ops::{AugMix, ChainDepth, Interpolation};
use crate::recipe::step::Augment;

/// Most chains, and most operations of one.
pub(super) const MOST: u32 = 8;

/// Most operations of a chain whose depth is drawn.
const DRAWN: u32 = 3;

/// Most operations of a chain.
pub(super) fn deepest(depth: ChainDepth) -> u32 {
    match depth {
        ChainDepth::Fixed(depth) => depth,
        ChainDepth::Random => DRAWN,
    }
}

pub(super) const KINDS: [Kind; 9] = [
    Kind::AutoContrast,
    Kind::Equalize,
    Kind::Posterize,
    Kind::Rotate,
    Kind::Solarize,
    Kind::ShearX,
    Kind::ShearY,
    Kind::TranslateX,
    Kind::TranslateY,
];

pub(super) const LOOK: Look = Look {
    interpolation: Interpolation::Bilinear,
    fill: [0; 3],
};

/// The amount of a level, at most 10: `int_parameter` and `float_parameter`.
pub(super) fn amount(kind: Kind, level: f64, sign: f64, size: (u32, u32)) -> f64 {
    let whole = |most: f64| (level * most / 10.0).trunc();
    match kind {
        Kind::Posterize => 4.0 - whole(4.0),
        Kind::Rotate => whole(30.0) * sign,
        Kind::Solarize => 256.0 - whole(256.0),
        Kind::ShearX | Kind::ShearY => level * 0.3 / 10.0 * sign,
        Kind::TranslateX | Kind::TranslateY => whole(kind.side(size) / 3.0) * sign,
        _ => 0.0,
    }
}

pub(super) fn draw(
    o: &AugMix,
    size: (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    if !happens(o.p, random) {
        return;
    }
    let weights: [f64; MOST as usize] = dirichlet(o.alpha, o.width as usize, random);
    let by = beta(o.alpha, random);
    push(Augment::Keep);
    for weight in weights.iter().take(o.width as usize) {
        let depth = match o.depth {
            ChainDepth::Fixed(depth) => depth,
            ChainDepth::Random => 1 + random.next_up_to(DRAWN - 1),
        };
        for _ in 0..depth {
            let kind = one_of(&KINDS, random);
            let level = 0.1 + (o.severity - 0.1) * random.next_f64();
            let sign = distribution::sign(random);
            kind.step(amount(kind, level, sign, size), LOOK)
                .into_iter()
                .for_each(&mut *push);
        }
        push(Augment::Add {
            weight: *weight as f32,
        });
    }
    push(Augment::Blend { by: by as f32 });
}
