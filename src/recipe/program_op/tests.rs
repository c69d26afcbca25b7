//! Compares the draws with the distributions that torchvision's `get_params` define, over 20,000
//! positions, and sizes of a resize with torchvision's own.
//!
//! The random numbers are the same in every run, so a bound holds always or never. Fewer than one
//! seed in a thousand would break a bound.

mod box_tests;
mod detection_goldens;
mod inside;
mod laws;
mod single;
mod timm_sizes;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::order::PositionRandom;
use crate::recipe::geometry::{PixelRect, UniformSource, bounded_box, rotated_size};
use crate::recipe::pixel_state::{PixelState, ValueKind};
use crate::recipe::random::RandomStreams;
use crate::recipe::step::{AugmentStep, BoxFill, Step};
use crate::recipe::{
    BackgroundColor, ColorJitter, ColorOrder, CropWithPadding, Decode, EraseFill, GaussianBlur,
    Grayscale, Jpeg, Normalize, Padding, PaddingMode, PcaLighting, PillowGaussianBlur,
    RandomChannelPermutation, RandomCrop, RandomErasing, RandomGrayscale, RandomHorizontalFlip,
    RandomPhotometricDistort, RandomResizedCrop, RandomRotate90, RandomRotation,
    RandomVerticalFlip, Resize, ResizeTo, Rotate90, Span, TorchvisionAugMix,
};
use crate::recipe::{Recipe, ReorderMode, SampleProgram};

const POSITIONS: u64 = 20_000;
const SQUARE: (u32, u32) = (4096, 4096);

/// The steps of an operation on an image of this size, at every position.
fn draws(op: impl Into<Op>, values: ValueKind, size: (u32, u32)) -> Vec<Vec<Step>> {
    let known = PixelState {
        values,
        ..PixelState::after_decode(ColorOrder::Rgb)
    };
    let drawn = ProgramOp {
        op: op.into(),
        stream: 0,
        known,
    };
    let at = |position| {
        let mut steps = Vec::new();
        let random = PositionRandom::new(5, 1, position);
        drawn
            .draw(0, (&DrawnPicture::of_size(size), size), &random, &mut steps)
            .unwrap();
        steps.into_iter().map(|s| s.step).collect()
    };
    (0..POSITIONS).map(at).collect()
}

fn levels(op: impl Into<Op>, size: (u32, u32)) -> Vec<Vec<Step>> {
    draws(op, ValueKind::Levels, size)
}

/// The box of each crop, which is the first step.
fn crops(all: &[Vec<Step>]) -> Vec<PixelRect> {
    let first = |steps: &Vec<Step>| match steps[0] {
        Step::Crop(rect) => rect,
        other => panic!("{other:?}"),
    };
    all.iter().map(first).collect()
}

/// Kolmogorov and Smirnov: `values` are uniform from `low` to `high`.
#[track_caller]
fn assert_uniform(values: impl IntoIterator<Item = f64>, range: (f64, f64), what: &str) {
    // An end rounded to the f32 of a step.
    assert_uniform_but(1e-6, values, range, what);
}

/// The same, for a range whose ends may be exceeded by a share of it.
#[track_caller]
fn assert_uniform_but(
    slack: f64,
    values: impl IntoIterator<Item = f64>,
    (low, high): (f64, f64),
    what: &str,
) {
    let mut v: Vec<f64> = values
        .into_iter()
        .map(|v| (v - low) / (high - low))
        .collect();
    let n = v.len() as f64;
    assert!(n > 1000.0, "{what}: only {n} values");
    v.sort_by(f64::total_cmp);
    let ends = (v[0], v[v.len() - 1]);
    assert!(
        ends.0 >= -slack && ends.1 <= 1.0 + slack,
        "{what}: {ends:?}"
    );
    let worst = v
        .iter()
        .enumerate()
        .map(|(i, v)| (v - i as f64 / n).max((i as f64 + 1.0) / n - v))
        .fold(0.0, f64::max);
    assert!(worst < 1.95 / n.sqrt(), "{what}: off by {worst}");
}

/// `count` of `n`, each with probability `p`.
#[track_caller]
fn assert_share(count: usize, n: u64, p: f64, what: &str) {
    let n = n as f64;
    let off = (count as f64 - n * p).abs();
    assert!(
        off < 3.3 * (n * p * (1.0 - p)).sqrt() + 0.5,
        "{what}: {count} of {n} for p {p}"
    );
}

/// Chi-square: all of the `kinds` are equally likely.
#[track_caller]
fn assert_equally_likely<T: Ord>(values: impl IntoIterator<Item = T>, kinds: usize, what: &str) {
    let mut counts = BTreeMap::new();
    let mut n = 0.0;
    for v in values {
        *counts.entry(v).or_insert(0.0) += 1.0;
        n += 1.0;
    }
    assert_eq!(counts.len(), kinds, "{what}");
    let expected = n / kinds as f64;
    let chi: f64 = counts
        .values()
        .map(|c: &f64| (c - expected).powi(2) / expected)
        .sum();
    // Wilson and Hilferty's approximation of the 99.9th percentile.
    let k = kinds as f64 - 1.0;
    let bound = k * (1.0 - 2.0 / (9.0 * k) + 3.09 * (2.0 / (9.0 * k)).sqrt()).powi(3);
    assert!(chi < bound, "{what}: {chi} of {bound}");
}

#[track_caller]
fn assert_uncorrelated(pairs: &[(f64, f64)], what: &str) {
    let n = pairs.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let xy = mean(&|p| (p.0 - x) * (p.1 - y));
    let (xx, yy) = (mean(&|p| (p.0 - x).powi(2)), mean(&|p| (p.1 - y).powi(2)));
    let r = xy / (xx * yy).sqrt();
    assert!(r.abs() < 3.3 / n.sqrt(), "{what}: correlated by {r}");
}

/// The tolerance for sides that are whole pixels.
const WHOLE: f64 = 2e-3;

/// The centre of the interval in 0 to 1 that belongs to one of `count` equally likely places.
fn place(at: u32, count: u32) -> f64 {
    (f64::from(at) + 0.5) / f64::from(count)
}

fn resized_crop(scale: Span, ratio: Span) -> Vec<PixelRect> {
    let op = RandomResizedCrop {
        scale,
        ratio,
        ..RandomResizedCrop::new(224)
    };
    crops(&levels(op, SQUARE))
}

fn area(r: &PixelRect) -> f64 {
    f64::from(r.width) * f64::from(r.height) / (f64::from(SQUARE.0) * f64::from(SQUARE.1))
}

#[test]
fn areas_of_resized_crops_are_uniform() {
    let all = resized_crop(Span(0.08, 1.0), Span(1.0, 1.0));
    assert_uniform_but(WHOLE, all.iter().map(area), (0.08, 1.0), "area");
    // Of the usual ratios every one fits up to three quarters of the picture.
    let all = resized_crop(Span(0.08, 1.0), Span(3.0 / 4.0, 4.0 / 3.0));
    let fit = all.iter().map(area).filter(|a| *a < 0.749);
    assert_uniform_but(WHOLE, fit, (0.08, 0.749), "area with ratios");
}

#[test]
fn aspects_of_resized_crops_are_uniform_in_their_logarithm() {
    let (low, high) = (0.5, 3.0);
    let all = resized_crop(Span(0.25, 0.25), Span(low, high));
    let aspects = all
        .iter()
        .map(|r| (f64::from(r.width) / f64::from(r.height)).ln());
    assert_uniform_but(WHOLE, aspects, (low.ln(), high.ln()), "width by height");
    for r in &all {
        assert!((area(r) - 0.25).abs() < 1e-3, "{r:?}");
    }
}

#[test]
fn resized_crops_lie_anywhere() {
    let all = resized_crop(Span(0.25, 0.25), Span(1.0, 1.0));
    let tops = all.iter().map(|r| place(r.top, 2049));
    assert_uniform(tops, (0.0, 1.0), "top");
    let lefts = all.iter().map(|r| place(r.left, 2049));
    assert_uniform(lefts, (0.0, 1.0), "left");
    let both: Vec<_> = all
        .iter()
        .map(|r| (f64::from(r.top), f64::from(r.left)))
        .collect();
    assert_uncorrelated(&both, "top and left");
    let all = resized_crop(Span(0.08, 0.7), Span(1.0, 1.0));
    let both: Vec<_> = all
        .iter()
        .map(|r| (area(r), place(r.left, SQUARE.1 - r.width + 1)))
        .collect();
    assert_uncorrelated(&both, "area and place");
}

#[test]
fn crops_lie_at_every_place_equally_often() {
    let all = crops(&levels(RandomCrop::new((8, 7)), (10, 12)));
    assert!(all.iter().all(|r| (r.height, r.width) == (8, 7)));
    assert_equally_likely(all.iter().map(|r| (r.top, r.left)), 3 * 6, "places");
    // One place only.
    for r in crops(&levels(RandomCrop::new((10, 12)), (10, 12))) {
        assert_eq!((r.top, r.left), (0, 0));
    }
}

#[test]
fn crops_of_padded_pictures_reach_all_of_the_padding() {
    let padding = Padding {
        left: 2,
        top: 1,
        right: 3,
        bottom: 4,
    };
    let op = RandomCrop {
        padding,
        fill: 7.0.into(),
        padding_mode: PaddingMode::Edge,
        ..RandomCrop::new((8, 7))
    };
    let mut places = Vec::new();
    for steps in levels(op, (10, 12)) {
        let [pad, Step::Crop(rect)] = steps[..] else {
            panic!("{steps:?}");
        };
        let wanted = Step::Pad {
            padding,
            mode: PaddingMode::Edge,
            fill: [7.0; 3],
        };
        assert_eq!(pad, wanted);
        places.push((rect.top, rect.left));
    }
    assert_equally_likely(places, (15 - 8 + 1) * (17 - 7 + 1), "places");
}

#[test]
fn a_small_picture_is_padded_on_both_sides_by_what_is_missing() {
    // torchvision's RandomCrop.make_params: pad_left = pad_right = width - w.
    for (size, padding, left, top) in [
        ((10, 12), 0, 4, 0),
        ((5, 20), 0, 0, 4),
        ((5, 12), 0, 4, 4),
        ((5, 12), 1, 1 + 2, 1 + 2),
        ((9, 16), 0, 0, 0),
    ] {
        let op = RandomCrop {
            padding: padding.into(),
            pad_if_needed: true,
            ..RandomCrop::new((9, 16))
        };
        let (h, w) = (size.0 + 2 * top, size.1 + 2 * left);
        let mut places = Vec::new();
        for steps in levels(op, size) {
            if (left, top) == (0, 0) {
                assert_eq!(steps.len(), 1, "{steps:?}");
            } else {
                let wanted = Padding {
                    left,
                    top,
                    right: left,
                    bottom: top,
                };
                assert!(
                    matches!(steps[0], Step::Pad { padding, .. } if padding == wanted),
                    "{size:?}: {steps:?}"
                );
            }
            match steps[steps.len() - 1] {
                Step::Crop(r) => places.push((r.top, r.left)),
                other => panic!("{other:?}"),
            }
        }
        let kinds = (h - 9 + 1) * (w - 16 + 1);
        if kinds == 1 {
            assert!(places.iter().all(|p| *p == (0, 0)));
        } else {
            assert_equally_likely(places, kinds as usize, "places");
        }
    }
}

#[test]
fn flips_and_grey_come_with_their_probability() {
    for p in [0.0, 0.1, 0.5, 0.9, 1.0] {
        for (op, step) in [
            (Op::from(RandomHorizontalFlip { p }), Step::Mirror),
            (RandomVerticalFlip { p }.into(), Step::UpsideDown),
            (RandomGrayscale { p }.into(), Step::Grayscale),
        ] {
            let name = op.name();
            let all = levels(op, (5, 6));
            assert!(all.iter().flatten().all(|s| *s == step), "{name}");
            assert_share(all.iter().flatten().count(), POSITIONS, p, name);
        }
    }
}

#[test]
fn angles_are_uniform() {
    let (low, high) = (-30.0, 75.0);
    for expand in [false, true] {
        let op = RandomRotation {
            expand,
            ..RandomRotation::new(Span(low, high))
        };
        let mut angles = Vec::new();
        for steps in levels(op, (100, 200)) {
            let [Step::Rotate { degrees, size, .. }] = steps[..] else {
                panic!("{steps:?}");
            };
            let wanted = match expand {
                true => rotated_size(200, 100, degrees),
                false => (200, 100),
            };
            assert_eq!((size.width, size.height), wanted, "{degrees}");
            angles.push(degrees);
        }
        assert_uniform(angles, (low, high), "degrees");
    }
}

#[test]
fn a_turn_by_any_angle_has_its_probability_and_an_angle_of_its_own() {
    let (low, high) = (-30.0, 75.0);
    let op = RandomRotation {
        p: 0.3,
        ..RandomRotation::new(Span(low, high))
    };
    let angles: Vec<f64> = levels(op, (10, 20))
        .into_iter()
        .flatten()
        .map(|step| match step {
            Step::Rotate { degrees, .. } => degrees,
            _ => panic!("{step:?}"),
        })
        .collect();
    assert_share(angles.len(), POSITIONS, 0.3, "turns");
    assert_uniform(angles, (low, high), "degrees");
}

#[test]
fn colour_noise_is_normal_along_each_axis() {
    let op = PcaLighting {
        std: 0.2,
        eigenvalues: [1.0, 2.0, 0.5],
        // Axes as channels.
        eigenvectors: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        unit: 10.0,
    };
    let all: Vec<[f32; 3]> = levels(op, (5, 6))
        .into_iter()
        .map(|steps| match steps[..] {
            [Step::Shift(by)] => by,
            _ => panic!("{steps:?}"),
        })
        .collect();
    let n = all.len() as f64;
    for (channel, std) in [2.0, 4.0, 1.0].into_iter().enumerate() {
        let values = || all.iter().map(|by| f64::from(by[channel]) / std);
        let mean = values().sum::<f64>() / n;
        assert!(mean.abs() < 5.0 / n.sqrt(), "{channel}: {mean}");
        for (within, share) in [(0.5, 0.382_925), (1.0, 0.682_689), (2.0, 0.954_500)] {
            let count = values().filter(|v| v.abs() < within).count();
            assert_share(count, POSITIONS, share, "within deviations");
        }
    }
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        let both: Vec<_> = all
            .iter()
            .map(|by| (f64::from(by[a]), f64::from(by[b])))
            .collect();
        assert_uncorrelated(&both, "channels");
    }
}

/// Without the image.
#[test]
fn the_label_of_a_quarter_turn_is_its_number() {
    let square = Recipe::new("r").then(Resize::exact(8, 8));
    let recipe = square
        .clone()
        .then(RandomRotate90::default())
        .then(RandomRotate90 { label: true })
        .with_reorder(ReorderMode::Off);
    let program = SampleProgram::compile(&recipe).unwrap();
    let mut steps = Vec::new();
    let labels = (0..POSITIONS).map(|position| {
        let random = PositionRandom::new(5, 1, position);
        program
            .steps(&DrawnPicture::of_size((5, 6)), &random, &mut steps)
            .unwrap();
        let turned = steps.iter().find(|s| s.op == 2).map(|s| s.step);
        let label = program.draw_label(&random).unwrap();
        let of_step = match turned {
            None => 0,
            Some(Step::Turn(quarters)) => i64::from(quarters),
            other => panic!("{other:?}"),
        };
        assert_eq!(label, of_step, "{position}");
        label
    });
    assert_equally_likely(labels, 4, "labels");
    let none = square.clone().then(RandomRotate90::default());
    let none = SampleProgram::compile(&none).unwrap();
    assert_eq!(none.draw_label(&PositionRandom::new(5, 1, 0)), None);
    let twice = square
        .then(RandomRotate90 { label: true })
        .then(RandomRotate90 { label: true });
    let said = SampleProgram::compile(&twice).unwrap_err().to_string();
    assert!(said.contains("random_rotate90: label is true"), "{said}");
}

#[test]
fn quarter_turns_are_equally_likely() {
    let quarters = levels(RandomRotate90::default(), (5, 6))
        .into_iter()
        .map(|steps| match steps[..] {
            [] => 0,
            [Step::Turn(n)] => n,
            _ => panic!("{steps:?}"),
        });
    assert_equally_likely(quarters, 4, "quarters");
}

fn jitters() -> ColorJitter {
    ColorJitter {
        brightness: Span(0.6, 1.4),
        contrast: Span(0.2, 3.0),
        saturation: Span(0.0, 0.5),
        hue: Span(-0.1, 0.3),
        ..ColorJitter::default()
    }
}

/// Which of the four, and its factor.
fn factor(step: &Step) -> (usize, f64) {
    match *step {
        Step::Brightness(f) => (0, f64::from(f)),
        Step::Contrast(f) => (1, f64::from(f)),
        Step::Saturation(f) => (2, f64::from(f)),
        Step::Hue(f) => (3, f64::from(f)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn factors_of_jitter_are_uniform_and_know_nothing_of_each_other() {
    let ranges = [(0.6, 1.4), (0.2, 3.0), (0.0, 0.5), (-0.1, 0.3)];
    for (p, random_order) in [(1.0, true), (1.0, false), (0.8, true)] {
        let op = ColorJitter {
            p,
            random_order,
            ..jitters()
        };
        let mut all = levels(op, (5, 6));
        all.retain(|steps| !steps.is_empty());
        assert_share(all.len(), POSITIONS, p, "jitter");
        let mut factors = [const { Vec::new() }; 4];
        for steps in &all {
            assert_eq!(steps.len(), 4);
            for (which, f) in steps.iter().map(factor) {
                factors[which].push(f);
            }
        }
        for (i, f) in factors.iter().enumerate() {
            assert_uniform(f.iter().copied(), ranges[i], "factor");
            let next = &factors[(i + 1) % 4];
            let both: Vec<_> = f.iter().copied().zip(next.iter().copied()).collect();
            assert_uncorrelated(&both, "factors");
        }
    }
}

#[test]
fn every_order_of_jitter_is_equally_likely_or_there_is_one() {
    let order = |steps: &Vec<Step>| steps.iter().map(|s| factor(s).0).collect::<Vec<_>>();
    let all = levels(jitters(), (5, 6));
    assert_equally_likely(all.iter().map(order), 24, "orders");
    let op = ColorJitter {
        random_order: false,
        ..jitters()
    };
    for steps in levels(op, (5, 6)) {
        assert_eq!(order(&steps), [0, 1, 2, 3]);
    }
    // Of two, the other two leave no trace.
    let op = ColorJitter {
        contrast: Span(1.0, 1.0),
        hue: Span(0.0, 0.0),
        ..jitters()
    };
    let all = levels(op, (5, 6));
    assert_equally_likely(all.iter().map(order), 2, "orders of two");
}

#[test]
fn neutral_jitter_is_no_step() {
    for steps in levels(ColorJitter::default(), (5, 6)) {
        assert_eq!(steps, []);
    }
    let never = ColorJitter {
        p: 0.0,
        ..jitters()
    };
    assert!(levels(never, (5, 6)).iter().all(Vec::is_empty));
}

#[test]
fn sigmas_of_blur_are_uniform() {
    let all = levels(GaussianBlur::new((5, 9)), (30, 20));
    let sigmas = all.iter().map(|steps| match steps[..] {
        [Step::Blur { kernel, sigma }] => {
            assert_eq!((kernel.height, kernel.width), (5, 9));
            sigma
        }
        _ => panic!("{steps:?}"),
    });
    assert_uniform(sigmas, (0.1, 2.0), "sigma");
}

/// Boxes of erased pixels, and what is put there.
fn erased(op: RandomErasing, values: ValueKind, size: (u32, u32)) -> Vec<(PixelRect, BoxFill)> {
    let all = draws(op, values, size);
    let of = |steps: Vec<Step>| match steps[..] {
        [] => None,
        [Step::Erase { rect, with, .. }] => Some((rect, with)),
        _ => panic!("{steps:?}"),
    };
    all.into_iter().filter_map(of).collect()
}

#[test]
fn erased_boxes_have_their_probability_area_aspect_and_place() {
    let op = |p, scale, ratio| RandomErasing {
        p,
        scale,
        ratio,
        value: EraseFill::Value(3.0.into()),
        ..RandomErasing::default()
    };
    for p in [0.0, 0.25, 1.0] {
        let all = erased(
            op(p, Span(0.02, 0.33), Span(0.3, 3.3)),
            ValueKind::Levels,
            SQUARE,
        );
        assert_share(all.len(), POSITIONS, p, "erasing");
        assert!(all.iter().all(|(_, w)| *w == BoxFill::Value([3.0; 3])));
    }
    let square = Span(1.0, 1.0);
    let all = erased(op(1.0, Span(0.02, 0.33), square), ValueKind::Levels, SQUARE);
    assert_uniform_but(
        WHOLE,
        all.iter().map(|(r, _)| area(r)),
        (0.02, 0.33),
        "area",
    );
    let places: Vec<_> = all
        .iter()
        .map(|(r, _)| {
            (
                place(r.top, SQUARE.0 - r.height + 1),
                place(r.left, SQUARE.1 - r.width + 1),
            )
        })
        .collect();
    assert_uniform(places.iter().map(|p| p.0), (0.0, 1.0), "top");
    assert_uniform(places.iter().map(|p| p.1), (0.0, 1.0), "left");
    assert_uncorrelated(&places, "top and left");
    let (low, high) = (0.3f64, 3.3f64);
    let all = erased(
        op(1.0, Span(0.1, 0.1), Span(low, high)),
        ValueKind::Levels,
        SQUARE,
    );
    let aspects = all
        .iter()
        .map(|(r, _)| (f64::from(r.height) / f64::from(r.width)).ln());
    assert_uniform_but(WHOLE, aspects, (low.ln(), high.ln()), "height by width");
}

#[test]
fn erased_boxes_are_smaller_than_the_picture_on_both_sides() {
    let op = RandomErasing {
        p: 1.0,
        scale: Span(0.02, 1.0),
        ratio: Span(0.1, 10.0),
        value: EraseFill::Random,
        ..RandomErasing::default()
    };
    for (h, w) in [(9, 7), (2, 40), (2, 2)] {
        let all = erased(op.clone(), ValueKind::Levels, (h, w));
        assert!(!all.is_empty());
        for (r, _) in all {
            assert!(
                r.height >= 1 && r.height < h && r.width >= 1 && r.width < w,
                "{r:?}"
            );
            assert!(r.top + r.height <= h && r.left + r.width <= w, "{r:?}");
        }
    }
    assert_eq!(erased(op, ValueKind::Levels, (1, 1)), []);
}

#[test]
fn noise_has_another_key_at_each_position() {
    let op = RandomErasing {
        p: 1.0,
        value: EraseFill::Random,
        ..RandomErasing::default()
    };
    let keys = |values| {
        let all = erased(op.clone(), values, (50, 60));
        assert_eq!(all.len() as u64, POSITIONS);
        let keys: BTreeSet<u64> = all
            .iter()
            .map(|(_, with)| match (values, *with) {
                (ValueKind::Normalized, BoxFill::Normal(key)) => key,
                (ValueKind::Levels, BoxFill::Levels(key)) => key,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(keys.len() as u64, POSITIONS);
        keys
    };
    // The place of the operation determines the kind of noise, not the key.
    assert_eq!(keys(ValueKind::Levels), keys(ValueKind::Normalized));
}

/// Operations that draw.
fn random_ops() -> Vec<Op> {
    vec![
        RandomRotate90::default().into(),
        RandomResizedCrop::new(64).into(),
        RandomHorizontalFlip::default().into(),
        RandomVerticalFlip::default().into(),
        RandomRotation::new(Span(-40.0, 40.0)).into(),
        jitters().into(),
        RandomGrayscale { p: 0.4 }.into(),
        PcaLighting::default().into(),
        GaussianBlur::new(3).into(),
        RandomCrop::new(40).into(),
        RandomErasing::default().into(),
        CropWithPadding::default().into(),
    ]
}

/// The steps of each random operation, by name, at some positions.
fn by_name(ops: &[Op]) -> BTreeMap<&'static str, Vec<Vec<Step>>> {
    let mut recipe = Recipe::new("r").with_reorder(ReorderMode::Off);
    recipe.ops = ops.to_vec();
    let program = SampleProgram::compile(&recipe).unwrap();
    let mut all: BTreeMap<_, Vec<Vec<Step>>> = BTreeMap::new();
    let mut steps = Vec::new();
    for position in 0..200 {
        let random = PositionRandom::new(5, 1, position);
        program
            .display_steps(&DrawnPicture::of_size((300, 400)), (0, &random), &mut steps)
            .unwrap();
        for (i, op) in ops.iter().enumerate().filter(|(_, op)| op.draws()) {
            let of_op = steps.iter().filter(|s| s.op == i).map(|s| s.step);
            all.entry(op.name()).or_default().push(of_op.collect());
        }
    }
    all
}

#[test]
fn operations_that_draw_nothing_shift_no_draws() {
    let ops = random_ops();
    let want = by_name(&ops);
    assert!(
        want.values()
            .all(|draws| draws.iter().any(|d| *d != draws[0]))
    );
    let still: [Op; 4] = [
        Rotate90 { times: 4 }.into(),
        Resize::exact(40, 40).into(),
        Grayscale {
            num_output_channels: 3,
        }
        .into(),
        Normalize::imagenet().into(),
    ];
    for op in still {
        // A resize where it changes no size, levels where there are any.
        let places = match op {
            Op::Resize(_) => ops.len() - 1..=ops.len(),
            Op::Normalize(_) => ops.len()..=ops.len(),
            _ => 0..=ops.len(),
        };
        for at in places {
            let mut more = ops.clone();
            more.insert(at, op.clone());
            assert_eq!(by_name(&more), want, "{} at {at}", op.name());
        }
    }
    let mut more = ops.clone();
    let decode = Decode {
        background: BackgroundColor::BLACK,
        ..Decode::default()
    };
    more.insert(0, decode.into());
    assert_eq!(by_name(&more), want);
}

#[test]
fn other_numbers_of_one_operation_shift_no_draws_of_others() {
    let ops = random_ops();
    let want = by_name(&ops);
    let others: [Op; 7] = [
        RandomResizedCrop {
            scale: Span(0.9, 1.0),
            ratio: Span(0.01, 0.02),
            ..RandomResizedCrop::new(64)
        }
        .into(),
        RandomHorizontalFlip { p: 1.0 }.into(),
        RandomRotation::new(Span(0.0, 1.0)).into(),
        ColorJitter {
            p: 0.1,
            ..ColorJitter::default()
        }
        .into(),
        RandomGrayscale { p: 0.0 }.into(),
        GaussianBlur::new(5).into(),
        RandomErasing {
            p: 0.9,
            scale: Span(0.9, 1.0),
            ..RandomErasing::default()
        }
        .into(),
    ];
    for op in others {
        let name = op.name();
        let mut changed = ops.clone();
        let at = ops.iter().position(|o| o.name() == name).unwrap();
        changed[at] = op;
        let got = by_name(&changed);
        for (other, draws) in &want {
            if *other != name {
                assert_eq!(&got[other], draws, "{name} shifts {other}");
            } else if name != "gaussian_blur" {
                assert_ne!(&got[other], draws, "{name}");
            }
        }
    }
}

#[test]
fn streams_of_operations_are_uncorrelated() {
    let first = |stream: u32| -> Vec<f64> {
        (0..POSITIONS)
            .map(|p| PositionRandom::new(5, 1, p).number(stream, 0))
            .collect()
    };
    let all: Vec<Vec<f64>> = (0..6).map(first).collect();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate().skip(i + 1) {
            let both: Vec<_> = a.iter().copied().zip(b.iter().copied()).collect();
            assert_uncorrelated(&both, &format!("streams {i} and {j}"));
        }
        // Nor is a position's number any of the next position's.
        let both: Vec<_> = a.iter().copied().zip(a[1..].iter().copied()).collect();
        assert_uncorrelated(&both, &format!("positions of stream {i}"));
    }
}

#[test]
fn two_equal_operations_draw_differently() {
    let flip = || RandomHorizontalFlip::default();
    let recipe = Recipe::new("r")
        .with_reorder(ReorderMode::Off)
        .then(flip())
        .then(flip());
    let program = SampleProgram::compile(&recipe).unwrap();
    let mut steps = Vec::new();
    let both = (0..POSITIONS).map(|position| {
        let random = PositionRandom::new(5, 1, position);
        program
            .display_steps(&DrawnPicture::of_size((3, 4)), (0, &random), &mut steps)
            .unwrap();
        [0, 1].map(|op| steps.iter().any(|s| s.op == op))
    });
    assert_equally_likely(both, 4, "of two flips");
}

/// A height and width, and the resulting height and width.
type Sizes = ((u32, u32), (u32, u32));

/// Computed by torchvision 0.29.2: for every line
/// `Resize(size, max_size=max_size)(torch.zeros(3, h, w, dtype=torch.uint8)).shape[-2:]`
/// of `torchvision.transforms.v2`, with size None, an int or [h, w].
#[test]
fn resizes_have_torchvisions_sizes() {
    let to = |size, max_size| Resize {
        size,
        max_size,
        ..Resize::shorter(1)
    };
    let shorter = |side| Some(ResizeTo::Shorter(side));
    #[rustfmt::skip]
    let cases: [(Resize, &[Sizes]); 8] = [
        (to(shorter(224), None), &[((2, 3), (224, 336)), ((99, 101), (224, 228)), ((480, 640), (224, 298)), ((500, 375), (298, 224)), ((1080, 1920), (224, 398)), ((997, 991), (225, 224)), ((3024, 4032), (224, 298))]),
        (to(shorter(256), None), &[((1, 1), (256, 256)), ((7, 500), (256, 18285)), ((333, 500), (256, 384)), ((257, 256), (257, 256)), ((255, 256), (256, 257)), ((2160, 3840), (256, 455)), ((1023, 767), (341, 256))]),
        (to(shorter(49), None), &[((49, 147), (49, 147)), ((333, 500), (49, 73)), ((997, 991), (49, 49)), ((224, 224), (49, 49))]),
        (Resize::exact(120, 77), &[((1, 1), (120, 77)), ((640, 480), (120, 77)), ((7, 500), (120, 77))]),
        (to(shorter(256), Some(300)), &[((480, 640), (225, 300)), ((257, 256), (257, 256)), ((100, 300), (100, 300)), ((1023, 767), (300, 225)), ((7, 500), (4, 300)), ((500, 375), (300, 225))]),
        (to(shorter(100), Some(101)), &[((99, 101), (99, 101)), ((997, 991), (100, 100)), ((1080, 1920), (57, 101)), ((4000, 3000), (101, 75))]),
        (to(None, Some(333)), &[((1, 1), (333, 333)), ((333, 500), (221, 333)), ((500, 375), (333, 249)), ((2160, 3840), (187, 333)), ((7, 500), (4, 333)), ((1023, 767), (333, 249))]),
        (to(None, Some(64)), &[((49, 147), (21, 64)), ((257, 256), (64, 63)), ((997, 991), (64, 63))]),
    ];
    for (resize, sizes) in cases {
        for (from, want) in sizes {
            assert_eq!(resize.output(*from), *want, "{resize:?} of {from:?}");
        }
    }
    // torchvision rejects sides of 0.
    assert_eq!(Resize::longer(64).output((7, 500)), (1, 64));
}

#[test]
fn orders_of_channels_are_equally_likely() {
    let all = levels(RandomChannelPermutation {}, SQUARE);
    let orders = all.iter().map(|steps| match steps[..] {
        [Step::Permute(order)] => order,
        _ => panic!("{steps:?}"),
    });
    assert_equally_likely(orders, 6, "orders");
}

#[test]
fn qualities_are_equally_likely() {
    let all = levels(Jpeg::new(71, 80), SQUARE);
    let qualities = all.iter().map(|steps| match steps[..] {
        [Step::Augment(AugmentStep::Jpeg { quality })] => quality,
        _ => panic!("{steps:?}"),
    });
    let qualities: Vec<u8> = qualities.collect();
    assert_eq!(qualities.iter().min(), Some(&71));
    assert_equally_likely(qualities, 10, "qualities");
}

#[test]
fn radii_of_pillows_blur_are_uniform() {
    let op = PillowGaussianBlur {
        radius: Span(0.1, 2.0),
        p: 0.5,
    };
    let all = levels(op, SQUARE);
    let radii: Vec<f64> = (all.iter().flatten())
        .map(|step| match step {
            Step::Augment(AugmentStep::BoxBlurs { radius }) => f64::from(*radius),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_share(radii.len(), POSITIONS, 0.5, "blurred");
    assert_uniform(radii, (0.1, 2.0), "radius");
}

/// Each change has its probability, its range and its place.
#[test]
fn distortions_are_torchvisions() {
    let op = RandomPhotometricDistort {
        p: 0.3,
        ..RandomPhotometricDistort::default()
    };
    let all = levels(op, SQUARE);
    let mut factors = [const { Vec::new() }; 4];
    let (mut orders, mut first, mut both) = (Vec::new(), 0, 0);
    for steps in &all {
        let at = |of: fn(&Step) -> bool| steps.iter().position(of);
        let contrast = at(|step| matches!(step, Step::Contrast(_)));
        if let (Some(contrast), Some(saturation)) =
            (contrast, at(|step| matches!(step, Step::Saturation(_))))
        {
            both += 1;
            first += usize::from(contrast < saturation);
        }
        for step in steps {
            match *step {
                Step::Brightness(f) => factors[0].push(f64::from(f)),
                Step::Contrast(f) => factors[1].push(f64::from(f)),
                Step::Saturation(f) => factors[2].push(f64::from(f)),
                Step::Hue(f) => factors[3].push(f64::from(f)),
                Step::Permute(order) => orders.push(order),
                other => panic!("{other:?}"),
            }
        }
        let brightness = at(|step| matches!(step, Step::Brightness(_)));
        assert!(brightness.is_none_or(|at| at == 0), "{steps:?}");
    }
    assert_share(first, both, 0.5, "contrast first");
    assert_share(orders.len(), POSITIONS, 0.3, "orders");
    assert_equally_likely(orders, 6, "orders");
    let ranges = [(0.875, 1.125), (0.5, 1.5), (0.5, 1.5), (-0.05, 0.05)];
    for (factors, range) in factors.into_iter().zip(ranges) {
        assert_share(factors.len(), POSITIONS, 0.3, "a change");
        assert_uniform(factors, range, "factor");
    }
}

/// Chains of one to three operations, and weights that sum to one.
#[test]
fn torchvisions_aug_mix_has_its_chains() {
    let all = levels(TorchvisionAugMix::default(), (40, 50));
    let mut depths = Vec::new();
    for steps in &all {
        let (mut depth, mut sum) = (0u32, 0.0);
        for step in &steps[1..steps.len() - 1] {
            match *step {
                Step::Augment(AugmentStep::AddSingle { weight }) => {
                    sum += f64::from(weight);
                    depths.push(depth);
                    depth = 0;
                }
                _ => depth += 1,
            }
        }
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        assert_eq!(steps[0], Step::Augment(AugmentStep::Keep));
        assert_eq!(steps.last(), Some(&Step::Augment(AugmentStep::Total)));
    }
    // The first of four summands is the image itself.
    let chains = depths.iter().enumerate().filter(|(i, _)| i % 4 != 0);
    assert_equally_likely(chains.map(|(_, depth)| *depth), 3, "depths");
    assert!(depths.iter().step_by(4).all(|depth| *depth == 0));
}
