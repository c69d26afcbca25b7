//! Compares the draws of policies with their distributions.

use std::collections::BTreeMap;

use super::super::paddle;
use super::*;
use crate::recipe::ops::auto_augment as imagenet;
use crate::recipe::{
    AugMix, AutoAugment, ChainDepth, Cutout, RandAugment, RandTable, TimmAugment, TrivialAugment,
};

#[test]
fn the_draws_are_those_of_the_position_alone() {
    for op in [
        Op::from(AutoAugment::default()),
        RandAugment::default().into(),
        TrivialAugment::default().into(),
        AugMix::default().into(),
        TimmAugment::new("rand-m9-mstd0.5-inc1").into(),
        Cutout::default().into(),
    ] {
        let all = draws(op.clone());
        assert!(op.draws());
        assert_eq!(all, draws(op.clone()), "{op:?}");
        let different = all.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(different > N / 2, "{op:?}: {different}");
    }
}

#[test]
fn auto_augment_draws_its_pairs() {
    let all = draws(AutoAugment::default());
    // By pair: neither, the first alone, both... are summed over the 25 pairs.
    let mut expected: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for (first, second) in imagenet::PAIRS {
        for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
            let p = |p: f64, done: bool| if done { p } else { 1.0 - p };
            let mut names = Vec::new();
            for (kind, done) in [(first, a), (second, b)] {
                if done {
                    let at = paddle::strength(kind.1, kind.2);
                    let step = paddle::step(kind.1, at, 1.0, SIZE, [0; 3]).unwrap();
                    names.push(name(&step).to_owned());
                }
            }
            *expected.entry(names).or_default() += p(first.0, a) * p(second.0, b) / 25.0;
        }
    }
    let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for steps in &all {
        let names = steps.iter().map(|s| name(s).to_owned()).collect();
        *counts.entry(names).or_default() += 1;
    }
    expected.retain(|_, p| *p > 0.0);
    assert!(counts.keys().all(|k| expected.contains_key(k)));
    let n = N as f64;
    let chi: f64 = expected
        .iter()
        .map(|(k, p)| {
            let made = counts.get(k).copied().unwrap_or(0) as f64;
            (made - n * p).powi(2) / (n * p)
        })
        .sum();
    let k = expected.len() as f64 - 1.0;
    let bound = k * (1.0 - 2.0 / (9.0 * k) + 3.09 * (2.0 / (9.0 * k)).sqrt()).powi(3);
    assert!(chi < bound, "{chi} of {bound}");
    // Always counter-clockwise, in grey; everything else with both signs.
    assert!(values(&all, "rotate").iter().all(|d| *d >= 10.0));
    assert_both_signs(&values(&all, "shear_x"), "shear_x");
    let contrast: Vec<f64> = values(&all, "contrast").iter().map(|v| v - 1.0).collect();
    assert_both_signs(&contrast, "contrast");
}

const TORCHVISION: [&str; 13] = [
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
    "rotate",
    "brightness",
    "color",
    "contrast",
    "sharpness",
    "posterize",
    "solarize",
    "auto_contrast",
    "equalize",
];

#[test]
fn rand_augment_draws_with_replacement() {
    let op = RandAugment {
        num_ops: 3,
        ..RandAugment::default()
    };
    let all = draws(op.clone());
    // One of 14 is nothing.
    assert_all_alike(&all, &TORCHVISION, 3 * N, 1.0 / 14.0);
    for which in ["shear_x", "rotate", "translate_y"] {
        let values = values(&all, which);
        assert_both_signs(&values, which);
        assert!(values.iter().all(|v| v.abs() == values[0].abs()), "{which}");
    }
    assert_eq!(values(&all, "posterize")[0], 7.0);
    assert_eq!(values(&all, "solarize")[0], 255.0 - 8.5 * 9.0);
    let mut paddle = vec!["invert"];
    paddle.extend(TORCHVISION);
    for table in [RandTable::Paddle, RandTable::Paddle3] {
        let op = RandAugment {
            table,
            magnitude: 7.0,
            interpolation: InterpolationMode::Bicubic,
            fill: 5.0.into(),
            ..op.clone()
        };
        let all = draws(op);
        assert!(all.iter().all(|s| s.len() == 3));
        assert_all_alike(&all, &paddle, 3 * N, 1.0 / 14.0);
        for which in ["shear_x", "translate_x", "translate_y"] {
            assert_both_signs(&values(&all, which), which);
        }
        let turns = values(&all, "rotate");
        let looks = all.iter().flatten().filter_map(|s| match s {
            AugmentStep::Rotate {
                interpolation,
                fill,
                ..
            } => Some((*interpolation, *fill)),
            _ => None,
        });
        if table == RandTable::Paddle {
            assert!(turns.iter().all(|d| *d == 30.0 * 0.7));
            assert!(
                looks
                    .into_iter()
                    .all(|l| l == (InterpolationMode::Nearest, [128; 3]))
            );
        } else {
            assert_both_signs(&turns, "rotate");
            assert!(
                looks
                    .into_iter()
                    .all(|l| l == (InterpolationMode::Bicubic, [5; 3]))
            );
        }
    }
}

#[test]
fn the_fourth_table_draws_pairs_with_half_a_chance_and_boxes() {
    let op = RandAugment {
        table: RandTable::Paddle4,
        // These have no effect on it.
        num_ops: 9,
        magnitude: 99.0,
        ..RandAugment::default()
    };
    let all = draws(op);
    let mut names = vec!["invert", "fill"];
    names.extend(TORCHVISION);
    assert_all_alike(&all, &names, 2 * N, 0.5 / 15.0);
    // Strengths 1 to 9.
    let solarize: std::collections::BTreeSet<u64> = values(&all, "solarize")
        .iter()
        .map(|v| v.to_bits())
        .collect();
    assert_eq!(solarize.len(), 9);
    assert!(values(&all, "solarize").iter().all(|v| *v < 256.0));
    let boxes: Vec<_> = all
        .iter()
        .flatten()
        .filter_map(|s| match s {
            AugmentStep::Fill { rect, color } => Some((*rect, *color)),
            _ => None,
        })
        .collect();
    for (r, color) in &boxes {
        assert_eq!(*color, [0; 3]);
        assert!(r.left + r.width <= 100 && r.top + r.height <= 37, "{r:?}");
        assert!(
            (2..=40).contains(&r.width) && (2..=37).contains(&r.height),
            "{r:?}"
        );
    }
    // A centre at the height itself: the half above it is left.
    assert!(
        boxes
            .iter()
            .any(|(r, _)| r.top + r.height == 37 && r.height == 2)
    );
}

#[test]
fn trivial_augment_draws_one_with_any_strength() {
    let all = draws(TrivialAugment::default());
    assert!(all.iter().all(|s| s.len() <= 1));
    // Strength 0 is a shear by 0: one in 31 of the operations with a strength.
    let counts = counts(&all);
    for name in TORCHVISION {
        let p = match name {
            "shear_x" | "shear_y" | "translate_x" | "translate_y" => continue,
            _ => 1.0 / 14.0,
        };
        assert_share(counts[name], N, p, name);
    }
    let shears = values(&all, "shear_x");
    assert_share(shears.len(), N, 30.0 / 31.0 / 14.0, "shear_x");
    assert_both_signs(&shears, "shear_x");
    let bins: std::collections::BTreeSet<u64> = shears.iter().map(|v| v.abs().to_bits()).collect();
    assert_eq!(bins.len(), 30);
    let all_of = |which| values(&all, which).into_iter().map(f64::abs);
    assert_eq!(all_of("translate_x").fold(0.0, f64::max), 32.0);
    assert_eq!(all_of("rotate").fold(0.0, f64::max), 135.0);
    assert!(values(&all, "translate_y").iter().all(|v| v.fract() == 0.0));
}

#[test]
fn aug_mix_mixes_chains_with_weights_that_sum_to_one() {
    let all = draws(AugMix::default());
    let done: Vec<_> = all.into_iter().filter(|s| !s.is_empty()).collect();
    assert_share(done.len(), N, 0.5, "p");
    let mut by = Vec::new();
    for steps in &done {
        // Keep, three times an operation and Add, Blend.
        assert_eq!(steps.len(), 8);
        assert_eq!(steps[0], AugmentStep::Keep);
        let adds = [2, 4, 6].map(|i| match steps[i] {
            AugmentStep::Add { weight } => weight,
            other => panic!("{other:?}"),
        });
        assert!((adds.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        let AugmentStep::Blend { by: m } = steps[7] else {
            panic!("{steps:?}");
        };
        by.push(f64::from(m));
    }
    // Beta of 0.1: mean 1/2, variance 1/4.8.
    let n = by.len() as f64;
    let mean = by.iter().sum::<f64>() / n;
    assert!((mean - 0.5).abs() < 3.3 * (1.0 / 4.8 / n).sqrt(), "{mean}");
    let variance = by.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    assert!((variance - 1.0 / 4.8).abs() < 0.004, "{variance}");
    let ops: Vec<Vec<AugmentStep>> = done
        .iter()
        .map(|s| [1, 3, 5].map(|i| s[i]).to_vec())
        .collect();
    let counts = counts(&ops);
    for name in [
        "auto_contrast",
        "equalize",
        "posterize",
        "solarize",
        "rotate",
    ] {
        assert_share(counts[name], 3 * ops.len(), 1.0 / 9.0, name);
    }
    // Severity 1: levels of 0.1 to 1.
    assert!(values(&ops, "posterize").iter().all(|v| *v == 4.0));
    assert!(
        values(&ops, "rotate")
            .iter()
            .all(|v| v.abs() <= 2.0 && v.fract() == 0.0)
    );
    let shears = values(&ops, "shear_y");
    assert_both_signs(&shears, "shear_y");
    let sizes = shears.iter().map(|v| v.abs()).collect();
    assert_law(sizes, uniform(0.003, 0.03), "shear_y");
    assert!(values(&ops, "translate_x").iter().all(|v| v.abs() <= 3.0));
}

#[test]
fn aug_mix_has_as_many_chains_as_it_is_wide_and_as_long_as_it_is_deep() {
    let op = AugMix {
        p: 1.0,
        alpha: 1.0,
        width: 8,
        depth: 8.into(),
        severity: 10.0,
    };
    for steps in draws(op).iter().take(500) {
        assert_eq!(steps.len(), 1 + 8 * 9 + 1);
        let adds = steps
            .iter()
            .filter(|s| matches!(s, AugmentStep::Add { .. }));
        assert_eq!(adds.count(), 8);
    }
}

#[test]
fn a_drawn_depth_is_one_to_three_for_each_chain() {
    let op = AugMix {
        p: 1.0,
        width: 2,
        depth: ChainDepth::Random,
        ..AugMix::default()
    };
    let mut counts = [[0; 3]; 3];
    for steps in draws(op) {
        let ends: Vec<usize> = (0..steps.len())
            .filter(|i| matches!(steps[*i], AugmentStep::Add { .. }))
            .collect();
        let [first, second] = ends[..] else {
            panic!("{steps:?}")
        };
        counts[first - 2][second - first - 2] += 1;
    }
    for (i, row) in counts.iter().enumerate() {
        for (j, count) in row.iter().enumerate() {
            assert_share(*count, N, 1.0 / 9.0, &format!("{} and {}", i + 1, j + 1));
        }
    }
}

#[test]
fn holes_have_their_centre_anywhere_and_are_cut_at_the_edges() {
    let op = Cutout {
        length: 9,
        value: None,
        ..Cutout::default()
    };
    let fills = |all: &[Vec<AugmentStep>]| -> Vec<(PixelRect, [u8; 3])> {
        let one = |s: &AugmentStep| match s {
            AugmentStep::Fill { rect, color } => (*rect, *color),
            other => panic!("{other:?}"),
        };
        all.iter().flatten().map(one).collect()
    };
    let all = fills(&draws(op.clone()));
    assert_eq!(all.len(), N);
    for (r, _) in &all {
        assert!(
            (5..=9).contains(&r.height) && (5..=9).contains(&r.width),
            "{r:?}"
        );
        assert!(r.top + r.height <= 37 && r.left + r.width <= 100, "{r:?}");
    }
    // Four places above, four below, of 37.
    let whole = all.iter().filter(|(r, _)| r.height == 9).count();
    assert_share(whole, N, 29.0 / 37.0, "whole height");
    let corner = all.iter().filter(|(r, _)| r.left == 0 && r.width == 5);
    assert_share(corner.count(), N, 1.0 / 100.0, "the first column");
    for channel in 0..3 {
        let levels = all
            .iter()
            .map(|(_, c)| (f64::from(c[channel]) + 0.5) / 256.0);
        let law = |x: f64| x;
        // Whole levels: off by half a one.
        let spread = levels.clone().collect::<Vec<_>>();
        assert_law(spread, law, "colour");
    }
    // An even length has its centre right of the middle, as DeVries' has.
    let two = Cutout {
        length: 4,
        holes: 3,
        value: Some([1.0, 2.0, 3.0].into()),
        p: 0.5,
    };
    let all = draws(two);
    let done: Vec<_> = all.into_iter().filter(|s| !s.is_empty()).collect();
    assert_share(done.len(), N, 0.5, "p");
    assert!(done.iter().all(|s| s.len() == 3));
    let fills = fills(&done);
    assert!(fills.iter().all(|(_, c)| *c == [1, 2, 3]));
    let first = fills
        .iter()
        .filter(|(r, _)| r.top == 0 && r.height == 2)
        .count();
    let last = fills
        .iter()
        .filter(|(r, _)| r.top == 34 && r.height == 3)
        .count();
    assert_share(first, fills.len(), 1.0 / 37.0, "centre in the first row");
    assert_share(last, fills.len(), 1.0 / 37.0, "centre in the last row");
    // Larger than the picture: all that is on its side.
    for steps in draws_on(Cutout { length: 224, ..op }, (3, 5))
        .iter()
        .take(50)
    {
        let AugmentStep::Fill { rect, .. } = steps[0] else {
            panic!("{steps:?}");
        };
        assert_eq!((rect.top, rect.left, rect.height, rect.width), (0, 0, 3, 5));
    }
}

/// PaddleClas' `progress_magnitude`: the batch's size selects the strength.
#[test]
fn strengths_follow_the_size_of_the_batch() {
    use crate::recipe::{BoundedResizedCrop, Recipe, SampleProgram, Size};

    let policy = RandAugment {
        num_ops: 16,
        table: RandTable::Paddle2,
        magnitude: 1.0,
        sizes: [20, 30].map(Size::from).to_vec(),
        magnitudes: vec![5.0, 10.0],
        ..RandAugment::default()
    };
    let recipe = Recipe::new("stages")
        .then(BoundedResizedCrop::new(20))
        .then(policy);
    let program = SampleProgram::compile(&recipe).unwrap();
    let turns = |size| {
        let mut all = Vec::new();
        for position in 0..200 {
            let random = OneStream::new(PositionRandom::new(5, 1, position));
            let mut steps = Vec::new();
            program
                .steps(
                    &DrawnPicture::of_size((90, 80)).in_row(size),
                    &random,
                    &mut steps,
                )
                .unwrap();
            all.extend(steps.into_iter().filter_map(|s| match s.step {
                Step::Augment(AugmentStep::Rotate { degrees, .. }) => Some(degrees.abs().round()),
                _ => None,
            }));
        }
        assert!(!all.is_empty());
        all.dedup();
        all
    };
    assert_eq!(turns(Some((20, 20))), [15.0]);
    assert_eq!(turns(Some((30, 30))), [30.0]);
    // With another size, or none, the strength is `magnitude`.
    assert_eq!(turns(Some((40, 40))), [3.0]);
    assert_eq!(turns(None), [3.0]);
}
