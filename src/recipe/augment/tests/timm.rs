//! Compares the draws of timm's policies with their distribution.

use super::*;
use crate::recipe::TimmAugment;

#[test]
fn timm_draws_each_of_fifteen_with_half_a_chance() {
    let all = draws(TimmAugment::new("rand-m9-mstd0.5-inc1"));
    let done = all.iter().map(Vec::len).sum::<usize>();
    assert_share(done, 2 * N, 0.5, "done");
    let none = all.iter().filter(|steps| steps.is_empty()).count();
    assert_share(none, N, 0.25, "neither");
    let names = [
        "auto_contrast",
        "equalize",
        "invert",
        "rotate",
        "posterize",
        "solarize",
        "solarize_add",
        "color",
        "contrast",
        "brightness",
        "sharpness",
        "shear_x",
        "shear_y",
        "translate_x",
        "translate_y",
    ];
    assert_all_alike(&all, &names, 2 * N, 0.5 / 15.0);
    // The second does not depend on the first.
    let same = all
        .iter()
        .filter(|s| s.len() == 2 && name(&s[0]) == name(&s[1]));
    assert_share(same.count(), N, 0.25 / 15.0, "the same twice");
}

#[test]
fn timms_levels_are_normal_and_cut_and_signs_are_fair() {
    // Twelve times as much of one.
    let mut op = TimmAugment::new("rand-m9-n12-mstd0.5-inc1");
    op.fill = 7.0.into();
    let all = draws(op);
    let level = |x: f64| 0.5 * libm::erfc(-(x - 9.0) / 0.5 / std::f64::consts::SQRT_2);
    let law = |x: f64| if x >= 10.0 - 1e-5 { 1.0 } else { level(x) };
    for (which, by, around) in [
        ("rotate", 3.0, 0.0),
        ("shear_x", 0.03, 0.0),
        ("shear_y", 0.03, 0.0),
        ("translate_x", 0.045 * 100.0, 0.0),
        ("translate_y", 0.045 * 37.0, 0.0),
        ("color", 0.09, 1.0),
        ("contrast", 0.09, 1.0),
        ("brightness", 0.09, 1.0),
        ("sharpness", 0.09, 1.0),
    ] {
        let values: Vec<f64> = values(&all, which).iter().map(|v| v - around).collect();
        assert_both_signs(&values, which);
        // Clipping is a single point of the distribution: skipped if it exceeds the bound.
        let levels: Vec<f64> = values.iter().map(|v| v.abs() / by).collect();
        let cut = levels.iter().filter(|l| **l > 10.0 - 1e-5).count();
        assert_share(cut, levels.len(), 1.0 - level(10.0), which);
        let free: Vec<f64> = levels.into_iter().filter(|l| *l < 10.0 - 1e-5).collect();
        assert!(free.iter().all(|l| *l > 6.0), "{which}");
        assert_law(free, |x| law(x).min(level(10.0)) / level(10.0), which);
    }
    // 4 - int(0.4 level): 0 at 10, else 1 from 7.5 on.
    let bits = values(&all, "posterize");
    let black = bits.iter().filter(|b| **b == 0.0).count();
    assert_share(black, bits.len(), 1.0 - level(10.0), "0 bits");
    let two = bits.iter().filter(|b| **b == 2.0).count();
    assert_share(two, bits.len(), level(7.5), "2 bits");
    // 256 - int(25.6 level) and int(11 level).
    for (which, low, high) in [("solarize", 0.0, 102.0), ("solarize_add", 66.0, 110.0)] {
        for v in values(&all, which) {
            assert!((low..=high).contains(&v) && v.fract() == 0.0, "{which} {v}");
        }
    }
    for step in all.iter().flatten() {
        if let AugmentStep::Affine { fill, .. } | AugmentStep::Rotate { fill, .. } = step {
            assert_eq!(*fill, [7; 3]);
        }
    }
}

#[test]
fn timms_other_parts() {
    // Without a deviation the level is always the same; without inc1 another law.
    let all = draws(TimmAugment::new("rand-m4"));
    let colors = values(&all, "color");
    assert!(
        colors
            .iter()
            .all(|v| *v == f64::from((0.4f64 * 1.8 + 0.1) as f32))
    );
    assert!(values(&all, "posterize").iter().all(|v| *v == 1.0));
    assert!(values(&all, "solarize").iter().all(|v| *v == 102.0));
    assert_both_signs(&values(&all, "rotate"), "rotate");
    // p.
    let mut op = TimmAugment::new("rand-m4");
    op.p = 0.3;
    let some = draws(op.clone()).iter().filter(|s| !s.is_empty()).count();
    assert_share(some, N, 0.3 * 0.75, "p");
    op.p = 0.0;
    assert!(draws(op).iter().all(Vec::is_empty));
    // Filters.
    let mut op = TimmAugment::new("rand-m4");
    op.interpolation = vec![InterpolationMode::Bilinear, InterpolationMode::Bicubic];
    let filters: Vec<_> = draws(op)
        .iter()
        .flatten()
        .filter_map(|s| match s {
            AugmentStep::Affine { interpolation, .. }
            | AugmentStep::Rotate { interpolation, .. } => Some(*interpolation),
            _ => None,
        })
        .collect();
    let cubic = filters
        .iter()
        .filter(|f| **f == InterpolationMode::Bicubic)
        .count();
    let linear = filters
        .iter()
        .filter(|f| **f == InterpolationMode::Bilinear)
        .count();
    assert_eq!(cubic + linear, filters.len());
    assert_share(cubic, filters.len(), 0.5, "bicubic");
}

#[test]
fn timms_weights_draw_without_replacement() {
    let all = draws(TimmAugment::new("rand-m4-n1-w0"));
    let counts = counts(&all);
    assert_eq!(counts.get("posterize").or(counts.get("invert")), None);
    for (name, weight) in [
        ("rotate", 0.3),
        ("shear_x", 0.2),
        ("translate_y", 0.1),
        ("color", 0.025),
        ("equalize", 0.005),
    ] {
        // They sum to 1.025 as written.
        assert_share(counts[name], N, 0.5 * weight / 1.025, name);
    }
    for steps in draws(TimmAugment::new("rand-m4-n13-w0")) {
        let mut names: Vec<_> = steps.iter().map(name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
    // The second where the first was rotate, 0.3 of 1.025: no second one, and the
    // others by their shares of the rest.
    let all = draws(TimmAugment::new("rand-m4-n2-w0"));
    let pair =
        |s: &&Vec<AugmentStep>| s.len() == 2 && name(&s[0]) == "rotate" && name(&s[1]) == "shear_x";
    let p = 0.25 * (0.3 / 1.025) * (0.2 / 0.725);
    assert_share(all.iter().filter(pair).count(), N, p, "rotate, shear_x");
}

/// `min(10, max(0, gauss(15, 0.5)))`: ten deviations above the upper limit.
#[test]
fn timms_levels_above_ten_are_ten() {
    let strongest = draws(TimmAugment::new("rand-m10"));
    let above = draws(TimmAugment::new("rand-m15-mstd0.5"));
    let sizes = |all: &[Vec<AugmentStep>], which| -> Vec<f64> {
        values(all, which).iter().map(|v| v.abs()).collect()
    };
    for (which, most) in [
        ("rotate", 30.0),
        ("shear_x", 0.3),
        ("posterize", 4.0),
        ("solarize", 256.0),
        ("solarize_add", 110.0),
        ("color", 1.9),
    ] {
        for all in [&strongest, &above] {
            let sizes = sizes(all, which);
            assert!(!sizes.is_empty(), "{which}");
            assert!(
                sizes.iter().all(|v| (v - most).abs() < 1e-6),
                "{which} {sizes:?}"
            );
        }
    }
    // Around 10, half of them are clipped.
    let near = draws(TimmAugment::new("rand-m11-mstd1.0"));
    let turns = sizes(&near, "rotate");
    let cut = turns.iter().filter(|v| **v > 30.0 - 1e-5).count();
    let share = 0.5 * libm::erfc(-1.0 / std::f64::consts::SQRT_2);
    assert_share(cut, turns.len(), share, "cut");
}
