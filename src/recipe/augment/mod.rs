//! Augmentation policies: from an operation and its random numbers to the steps
//! that Pillow's arithmetic (`pixels`) then does on 8-bit RGB.
//!
//! Pure, and the same in every process and on every machine: no I/O, no pixels,
//! and of transcendental functions `libm`'s alone. Every operation of a policy
//! takes the same draws in the same order, whether it uses them or not.
//!
//! - `kind`: the operations of all policies, and the step that each becomes;
//! - `distribution`: normal, beta and Dirichlet numbers; `range`: what is accepted;
//! - `imagenet`, `rand`, `trivial`, `timm`, `augmix`, `cutout`: a policy each;
//! - `paddle`: the functions and strengths that PaddleClas' policies share.

mod augmix;
mod cutout;
mod distribution;
mod imagenet;
mod kind;
mod paddle;
mod rand;
mod range;
mod timm;
mod trivial;

use super::geometry::{Rect, Uniform};
use super::ops::{Interpolation, Op};
use super::step::Augment;
use kind::{Kind, Look};

pub(super) use distribution::gauss;
pub(super) use range::check;

/// Hands on the steps of a policy on a picture of this height and width. None for
/// an operation that is no policy.
pub(super) fn draw(
    op: &Op,
    size: (u32, u32),
    random: &mut impl Uniform,
    mut push: impl FnMut(Augment),
) {
    match op {
        Op::AutoAugment(_) => imagenet::draw(size, random, &mut push),
        Op::RandAugment(o) => rand::draw(o, size, random, &mut push),
        Op::TrivialAugment(o) => trivial::draw(o, random, &mut push),
        Op::AugMix(o) => augmix::draw(o, size, random, &mut push),
        Op::TimmAugment(o) => timm::draw(o, size, random, &mut push),
        Op::Cutout(o) => cutout::draw(o, size, random, &mut push),
        _ => {}
    }
}

/// Those that take the most memory, instead of drawn ones: nothing takes more than
/// two that read one picture and write another.
pub(super) fn largest(op: &Op, (height, width): (u32, u32), mut push: impl FnMut(Augment)) {
    let look = Look {
        interpolation: Interpolation::Bicubic,
        fill: [0; 3],
    };
    let moved = |times: u32, push: &mut dyn FnMut(Augment)| {
        for _ in 0..times.min(2) {
            Kind::ShearX
                .step(0.0, look)
                .into_iter()
                .for_each(&mut *push);
        }
    };
    match op {
        Op::AutoAugment(_) | Op::RandAugment(_) => moved(2, &mut push),
        Op::TrivialAugment(_) => moved(1, &mut push),
        Op::TimmAugment(o) if o.p > 0.0 => moved(2, &mut push),
        Op::AugMix(o) if o.p > 0.0 => {
            push(Augment::Keep);
            for _ in 0..o.width.min(2) {
                moved(augmix::deepest(o.depth), &mut push);
                push(Augment::Add { weight: 1.0 });
            }
            push(Augment::Blend { by: 1.0 });
        }
        Op::Cutout(o) if o.p > 0.0 => push(Augment::Fill {
            rect: Rect {
                left: 0,
                top: 0,
                width,
                height,
            },
            color: [0; 3],
        }),
        _ => {}
    }
}

/// Whether something of probability `p` is done.
fn happens(p: f64, random: &mut impl Uniform) -> bool {
    random.next_f64() < p || p >= 1.0
}

/// `ImageEnhance`'s and the hue's step of a colour jitter: brightness, contrast,
/// saturation, hue.
pub(super) fn jitter(which: usize, factor: f64) -> Augment {
    match which {
        0 => Augment::Brightness(factor as f32),
        1 => Augment::Contrast(factor as f32),
        2 => Augment::Color(factor as f32),
        // Pillow's hue is a byte: cut towards zero, and once around.
        _ => Augment::Hue(((factor * 255.0) as i32).rem_euclid(256) as u8),
    }
}

#[cfg(test)]
mod tests;
