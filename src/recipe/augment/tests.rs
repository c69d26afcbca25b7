//! Compares every strength with the arguments that PaddleClas passes to Pillow
//! (`tests/goldens/policies.tar`, made by `scripts/op_goldens/policies.py`), and the draws with the
//! documented distribution of each policy, over 20,000 positions.
//!
//! The random numbers are the same in every run, so a bound holds always or never. Fewer than one
//! seed in a thousand would break a bound.

mod laws;
mod numbers;
mod places;
mod refused;
mod tables;
mod timm;
mod timm_goldens;
mod timm_mixed;

use std::collections::BTreeMap;

use crate::order::PositionRandom;
use crate::recipe::drawn_picture::DrawnPicture;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::Operation;
use crate::recipe::pixel_state::PixelState;
use crate::recipe::program_op::ProgramOp;
use crate::recipe::random::OneStream;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::step::{AugmentStep, Step};
use crate::recipe::steps::LargestCase;
use crate::recipe::{ColorOrder, InterpolationMode, Op};

const POSITIONS: u64 = 20_000;
const N: usize = POSITIONS as usize;
const SIZE: (u32, u32) = (37, 100);

/// The steps of an operation at every position.
fn draws(op: impl Into<Op>) -> Vec<Vec<AugmentStep>> {
    draws_on(op, SIZE)
}

fn draws_on(op: impl Into<Op>, size: (u32, u32)) -> Vec<Vec<AugmentStep>> {
    let op = op.into();
    let known = PixelState::after_decode(ColorOrder::Rgb);
    op.check(&mut known.clone()).unwrap();
    let drawn = ProgramOp {
        op,
        stream: 0,
        known,
    };
    let at = |position| {
        let mut steps = Vec::new();
        let random = OneStream::new(PositionRandom::new(5, 1, position));
        drawn
            .draw(0, (&DrawnPicture::of_size(size), size), &random, &mut steps)
            .unwrap();
        let augment = |s: crate::recipe::steps::OpStep| match s.step {
            Step::Augment(step) => step,
            other => panic!("{other:?}"),
        };
        steps.into_iter().map(augment).collect()
    };
    (0..POSITIONS).map(at).collect()
}

/// `count` of `n`, each with probability `p`.
#[track_caller]
fn assert_share(count: usize, n: usize, p: f64, what: &str) {
    let n = n as f64;
    let off = (count as f64 - n * p).abs();
    let bound = 3.3 * (n * p * (1.0 - p)).sqrt() + 0.5;
    assert!(off < bound, "{what}: {count} of {n} for p {p}");
}

/// Kolmogorov and Smirnov against a distribution function.
#[track_caller]
fn assert_law(mut v: Vec<f64>, law: impl Fn(f64) -> f64, what: &str) {
    let n = v.len() as f64;
    assert!(n > 500.0, "{what}: only {n} values");
    v.sort_by(f64::total_cmp);
    let off = |(i, x): (usize, &f64)| {
        let p = law(*x);
        (p - i as f64 / n).max((i as f64 + 1.0) / n - p)
    };
    let worst = v.iter().enumerate().map(off).fold(0.0, f64::max);
    assert!(worst < 1.95 / n.sqrt(), "{what}: off by {worst}");
}

fn uniform(low: f64, high: f64) -> impl Fn(f64) -> f64 {
    move |x| ((x - low) / (high - low)).clamp(0.0, 1.0)
}

/// A name for statistics: shears and translations apart, and along which side.
fn name(step: &AugmentStep) -> &'static str {
    match step {
        AugmentStep::AutoContrast => "auto_contrast",
        AugmentStep::Equalize => "equalize",
        AugmentStep::Invert => "invert",
        AugmentStep::Posterize { .. } => "posterize",
        AugmentStep::Solarize { .. } => "solarize",
        AugmentStep::SolarizeAdd { .. } => "solarize_add",
        AugmentStep::Brightness(_) => "brightness",
        AugmentStep::Contrast(_) => "contrast",
        AugmentStep::Color(_) => "color",
        AugmentStep::Sharpness(_) => "sharpness",
        AugmentStep::Hue(_) => "hue",
        AugmentStep::Hsv { .. } => "hsv",
        AugmentStep::Perspective { .. } => "perspective",
        AugmentStep::Rotate { .. } => "rotate",
        AugmentStep::Fill { .. } => "fill",
        AugmentStep::GaussianBlur { .. } | AugmentStep::MotionBlur { .. } => "blur",
        AugmentStep::Resample { .. } => "resample",
        AugmentStep::Keep => "keep",
        AugmentStep::Add { .. } | AugmentStep::AddSingle { .. } => "add",
        AugmentStep::MixIn { .. } => "mix_in",
        AugmentStep::Total => "total",
        AugmentStep::Blend { .. } | AugmentStep::BlendTotal { .. } => "blend",
        // No operation of these tests makes them.
        AugmentStep::BoxBlurs { .. }
        | AugmentStep::Jpeg { .. }
        | AugmentStep::TensorAffine { .. }
        | AugmentStep::TensorAutoContrast
        | AugmentStep::TensorSharpness(_) => panic!("{step:?}"),
        AugmentStep::Affine {
            matrix: [a, b, c, d, e, f],
            ..
        } => {
            assert_eq!((*a, *e), (1.0, 1.0));
            let moved = [
                ("shear_x", *b),
                ("translate_x", *c),
                ("shear_y", *d),
                ("translate_y", *f),
            ];
            let mut moved = moved.iter().filter(|(_, v)| *v != 0.0);
            let name = moved.next().map_or("nothing", |m| m.0);
            assert!(moved.next().is_none());
            name
        }
    }
}

/// The number of a step that is one.
fn value(step: &AugmentStep) -> f64 {
    match *step {
        AugmentStep::Posterize { bits } => f64::from(bits),
        AugmentStep::Solarize { threshold } => f64::from(threshold),
        AugmentStep::SolarizeAdd { add, threshold } => {
            assert_eq!(threshold, 128);
            f64::from(add)
        }
        AugmentStep::Brightness(f)
        | AugmentStep::Contrast(f)
        | AugmentStep::Color(f)
        | AugmentStep::Sharpness(f) => f64::from(f),
        AugmentStep::Rotate { degrees, .. } => degrees,
        AugmentStep::Affine {
            matrix: [_, b, c, d, _, f],
            ..
        } => b + c + d + f,
        AugmentStep::Add { weight } | AugmentStep::AddSingle { weight } => f64::from(weight),
        AugmentStep::Blend { by } | AugmentStep::BlendTotal { by } | AugmentStep::MixIn { by } => {
            f64::from(by)
        }
        other => panic!("{other:?}"),
    }
}

/// Values of the steps of that name.
fn values(all: &[Vec<AugmentStep>], which: &str) -> Vec<f64> {
    let steps = all.iter().flatten().filter(|s| name(s) == which);
    steps.map(value).collect()
}

/// How often each name comes, of all steps.
fn counts(all: &[Vec<AugmentStep>]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for step in all.iter().flatten() {
        *counts.entry(name(step)).or_insert(0) += 1;
    }
    counts
}

/// These, each with the same probability of being one of `n`, and no others.
#[track_caller]
fn assert_all_alike(all: &[Vec<AugmentStep>], names: &[&str], n: usize, p: f64) {
    let counts = counts(all);
    assert_eq!(counts.len(), names.len(), "{counts:?}");
    for name in names {
        assert_share(counts[name], n, p, name);
    }
}

/// As often this as that.
#[track_caller]
fn assert_both_signs(values: &[f64], what: &str) {
    assert!(values.len() > 200, "{what}: {}", values.len());
    let positive = values.iter().filter(|v| **v > 0.0).count();
    assert_share(positive, values.len(), 0.5, what);
}
