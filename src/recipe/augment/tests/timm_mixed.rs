//! Compares the draws of timm's AugMix and AutoAugment with their distribution.

use super::*;
use crate::recipe::TimmAugment;
use crate::recipe::augment::timm_tables::{ORIGINAL, V0};

const CHAIN_NAMES: [&str; 13] = [
    "auto_contrast",
    "color",
    "contrast",
    "brightness",
    "sharpness",
    "equalize",
    "rotate",
    "posterize",
    "solarize",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
];

/// The operations of chains, each with its index in the chain, and the weights.
fn chains(steps: &[AugmentStep]) -> (Vec<Vec<AugmentStep>>, Vec<f64>) {
    let (mut chains, mut weights) = (vec![Vec::new()], Vec::new());
    for step in steps {
        match name(step) {
            "keep" | "blend" | "total" => {}
            "add" | "mix_in" => {
                weights.push(value(step));
                chains.push(Vec::new());
            }
            _ => chains.last_mut().unwrap().push(*step),
        }
    }
    assert!(chains.pop().unwrap().is_empty());
    (chains, weights)
}

#[test]
fn timms_chains_are_drawn_from_thirteen_and_mixed_by_weights() {
    let all = draws(TimmAugment::new("augmix-m5-w4-d2"));
    let (mut first, mut by, mut ops) = (Vec::new(), Vec::new(), Vec::new());
    for steps in &all {
        assert_eq!(name(&steps[0]), "keep");
        assert!(matches!(steps.last(), Some(AugmentStep::BlendTotal { .. })));
        by.push(value(steps.last().unwrap()));
        let (chains, weights) = chains(steps);
        assert_eq!(chains.len(), 4);
        assert!(chains.iter().all(|chain| chain.len() == 2));
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        first.push(weights[0]);
        ops.push(chains.concat());
    }
    // A beta number of 1 is uniform, and one of four Dirichlet numbers of 1 is 1 - (1 - x)^3.
    assert_law(by, uniform(0.0, 1.0), "by");
    assert_law(first, |x| 1.0 - (1.0 - x).powi(3), "weight");
    // Each operation is always done.
    assert_all_alike(&ops, &CHAIN_NAMES, 8 * N, 1.0 / 13.0);
    // Levels are uniform from 0 to 5.
    for (which, most, around) in [
        ("rotate", 15.0, 0.0),
        ("shear_x", 0.15, 0.0),
        ("translate_x", 0.15 * 100.0, 0.0),
        ("translate_y", 0.15 * 37.0, 0.0),
        ("color", 0.45, 1.0),
    ] {
        let values: Vec<f64> = values(&ops, which).iter().map(|v| v - around).collect();
        assert_both_signs(&values, which);
        let sizes = values.iter().map(|v| v.abs()).collect();
        assert_law(sizes, uniform(0.0, most), which);
    }
    // 4 - int(0.4 level): 3 from level 2.5 on.
    let bits = values(&ops, "posterize");
    let three = bits.iter().filter(|b| **b == 3.0).count();
    assert_share(three, bits.len(), 0.5, "3 bits");
    assert!(bits.iter().all(|b| [3.0, 4.0].contains(b)));
    let levels = values(&ops, "solarize");
    assert!(
        levels
            .iter()
            .all(|v| (128.0..=256.0).contains(v) && v.fract() == 0.0)
    );
}

#[test]
fn timms_chains_have_a_drawn_depth_and_other_parts() {
    // 1 to 3 for each chain.
    let mut counts = [[0; 3]; 3];
    for steps in draws(TimmAugment::new("augmix-w2")) {
        let (chains, _) = chains(&steps);
        counts[chains[0].len() - 1][chains[1].len() - 1] += 1;
    }
    for count in counts.iter().flatten() {
        assert_share(*count, N, 1.0 / 9.0, "depths");
    }
    // A fixed strength, and strengths above 10.
    let all = draws(TimmAugment::new("augmix-m7-mstd0-d1-w16"));
    assert!(
        values(&all, "rotate")
            .iter()
            .all(|v| (v.abs() - 21.0).abs() < 1e-9)
    );
    let all = draws(TimmAugment::new("augmix-m20-d3-w1"));
    let turns: Vec<f64> = values(&all, "rotate").iter().map(|v| v.abs()).collect();
    let most = turns.iter().filter(|v| **v == 30.0).count();
    assert_share(most, turns.len(), 0.5, "clipped");
    // alpha: the mean of the square of a beta number is (a + 1) / (4 a + 2).
    let all = draws(TimmAugment::new("augmix-a0.1-w1-d1"));
    let by: Vec<f64> = all.iter().map(|s| value(s.last().unwrap())).collect();
    let square = by.iter().map(|x| x * x).sum::<f64>() / N as f64;
    assert!((square - 1.1 / 2.4).abs() < 0.01, "{square}");
    // p.
    let mut op = TimmAugment::new("augmix");
    op.p = 0.3;
    let some = draws(op).iter().filter(|s| !s.is_empty()).count();
    assert_share(some, N, 0.3, "p");
}

#[test]
fn timms_blended_chains_have_the_same_weights_in_the_end() {
    let plain = draws(TimmAugment::new("augmix-m5-w3"));
    let blended = draws(TimmAugment::new("augmix-m5-w3-b1"));
    for (plain, blended) in plain.iter().zip(&blended).take(500) {
        assert_eq!(blended[0], AugmentStep::Keep);
        assert_eq!(blended[1], AugmentStep::AddSingle { weight: 1.0 });
        assert_eq!(blended.last(), Some(&AugmentStep::Total));
        let by = value(plain.last().unwrap());
        let (ops, weights) = chains(plain);
        let (same, parts) = chains(&[&blended[..1], &blended[2..]].concat());
        assert_eq!(ops, same);
        for (at, weight) in weights.iter().enumerate() {
            let hidden: f64 = parts[at + 1..].iter().map(|part| 1.0 - part).product();
            assert!((parts[at] * hidden - weight * by).abs() < 1e-6, "{parts:?}");
        }
    }
}

#[test]
fn timms_tables_draw_one_of_25_pairs() {
    for (text, pairs) in [("original", &ORIGINAL), ("v0r", &V0)] {
        let all = draws(TimmAugment::new(text));
        // As many operations as all probabilities of a table give.
        let mean: f64 = pairs.iter().flatten().map(|(_, p, _)| p).sum::<f64>() / 25.0;
        let done = all.iter().map(Vec::len).sum::<usize>() as f64 / N as f64;
        assert!((done - mean).abs() < 0.02, "{text}: {done}, not {mean}");
        // Neither operation of a pair: each has its own chance.
        let none = |pair: &[(_, f64, u32); 2]| (1.0 - pair[0].1) * (1.0 - pair[1].1);
        let p = pairs.iter().map(none).sum::<f64>() / 25.0;
        let empty = all.iter().filter(|steps| steps.is_empty()).count();
        assert_share(empty, N, p, text);
    }
    // v0: pair 16 is a turn by 21 degrees and a translation, and the only translation.
    let all = draws(TimmAugment::new("v0"));
    let moved = values(&all, "translate_y");
    assert_share(moved.len(), N, 0.8 / 25.0, "translate_y");
    assert!(
        moved
            .iter()
            .all(|v| (v.abs() - 0.9 * 0.45 * 37.0).abs() < 1e-9)
    );
    assert_both_signs(&moved, "translate_y");
    let both = all.iter().filter(|steps| {
        matches!(steps[..], [AugmentStep::Rotate { degrees, .. }, _]
            if (degrees.abs() - 21.0).abs() < 1e-9)
    });
    assert_share(both.count(), N, 0.8 / 25.0, "rotate and translate_y");
    // original: 4 + int(0.4 level) bits for levels 8, 7, 6, 5 and 6; originalr: 4 - int(..).
    for (text, most, least) in [("original", 7.0, 6.0), ("originalr", 2.0, 1.0)] {
        let bits = values(&draws(TimmAugment::new(text)), "posterize");
        assert!(bits.iter().all(|b| [most, least].contains(b)), "{text}");
        let p = (0.4 + 0.6 + 0.6 + 0.8 + 0.4) / 25.0;
        assert_share_of_sum(bits.len(), p, text);
    }
    // A deviation moves the levels, and clips them at both ends.
    let all = draws(TimmAugment::new("original-mstd0.5"));
    let turns = values(&all, "rotate");
    assert!(turns.iter().all(|v| v.abs() <= 30.0));
    let different: std::collections::BTreeSet<u64> = turns.iter().map(|v| v.to_bits()).collect();
    assert!(different.len() > turns.len() / 2);
}

/// A sum of chances of which two may happen at once: within a twentieth.
#[track_caller]
fn assert_share_of_sum(count: usize, p: f64, what: &str) {
    let share = count as f64 / N as f64;
    assert!((share / p - 1.0).abs() < 0.05, "{what}: {share}, not {p}");
}
