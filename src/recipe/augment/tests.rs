//! Every strength against what PaddleClas asks Pillow for
//! (`tests/goldens/policies.tar`, made by `scripts/op_goldens/policies.py`), and
//! what is drawn against the stated law of each policy, over 20,000 positions.
//!
//! The numbers are the same in every run, so a bound holds always or never; each
//! is one that fewer than one seed in a thousand would break.

mod laws;
mod numbers;
mod places;
mod refused;
mod tables;
mod timm;

use std::collections::BTreeMap;

use crate::plan::PositionRandom;
use crate::recipe::drawn::Drawn;
use crate::recipe::geometry::Rect;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::OneStream;
use crate::recipe::reach::Reach;
use crate::recipe::step::{Augment, Step};
use crate::recipe::steps::Largest;
use crate::recipe::{ColorOrder, Interpolation, Op};

const POSITIONS: u64 = 20_000;
const N: usize = POSITIONS as usize;
const SIZE: (u32, u32) = (37, 100);

/// The steps of an operation at every position.
fn draws(op: impl Into<Op>) -> Vec<Vec<Augment>> {
    draws_on(op, SIZE)
}

fn draws_on(op: impl Into<Op>, size: (u32, u32)) -> Vec<Vec<Augment>> {
    let op = op.into();
    let known = Known::decoded(ColorOrder::Rgb);
    op.check(&mut known.clone()).unwrap();
    let drawn = Drawn {
        op,
        stream: 0,
        known,
    };
    let at = |position| {
        let mut steps = Vec::new();
        let random = OneStream::new(PositionRandom::new(5, 1, position));
        drawn.draw(0, size, &random, &mut steps).unwrap();
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
fn name(step: &Augment) -> &'static str {
    match step {
        Augment::AutoContrast => "auto_contrast",
        Augment::Equalize => "equalize",
        Augment::Invert => "invert",
        Augment::Posterize { .. } => "posterize",
        Augment::Solarize { .. } => "solarize",
        Augment::SolarizeAdd { .. } => "solarize_add",
        Augment::Brightness(_) => "brightness",
        Augment::Contrast(_) => "contrast",
        Augment::Color(_) => "color",
        Augment::Sharpness(_) => "sharpness",
        Augment::Hue(_) => "hue",
        Augment::Perspective { .. } => "perspective",
        Augment::Rotate { .. } => "rotate",
        Augment::Fill { .. } => "fill",
        Augment::GaussianBlur { .. } | Augment::MotionBlur { .. } => "blur",
        Augment::Resample { .. } => "resample",
        Augment::Keep => "keep",
        Augment::Add { .. } => "add",
        Augment::Blend { .. } => "blend",
        Augment::Affine {
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
fn value(step: &Augment) -> f64 {
    match *step {
        Augment::Posterize { bits } => f64::from(bits),
        Augment::Solarize { threshold } => f64::from(threshold),
        Augment::SolarizeAdd { add, threshold } => {
            assert_eq!(threshold, 128);
            f64::from(add)
        }
        Augment::Brightness(f)
        | Augment::Contrast(f)
        | Augment::Color(f)
        | Augment::Sharpness(f) => f64::from(f),
        Augment::Rotate { degrees, .. } => degrees,
        Augment::Affine {
            matrix: [_, b, c, d, _, f],
            ..
        } => b + c + d + f,
        Augment::Add { weight } => f64::from(weight),
        Augment::Blend { by } => f64::from(by),
        other => panic!("{other:?}"),
    }
}

/// Values of the steps of that name.
fn values(all: &[Vec<Augment>], which: &str) -> Vec<f64> {
    let steps = all.iter().flatten().filter(|s| name(s) == which);
    steps.map(value).collect()
}

/// How often each name comes, of all steps.
fn counts(all: &[Vec<Augment>]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for step in all.iter().flatten() {
        *counts.entry(name(step)).or_insert(0) += 1;
    }
    counts
}

/// These, each with the same probability of being one of `n`, and no others.
#[track_caller]
fn assert_all_alike(all: &[Vec<Augment>], names: &[&str], n: usize, p: f64) {
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
