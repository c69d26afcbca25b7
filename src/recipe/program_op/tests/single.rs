//! Compares torchvision's single operations with the distributions of their `make_params`.

use super::*;
use crate::recipe::{
    AugmentStep, ElasticTransform, RandomAdjustSharpness, RandomAffine, RandomAutocontrast,
    RandomEqualize, RandomInvert, RandomPerspective, RandomPosterize, RandomSolarize,
    RandomZoomOut,
};

const SIZE: (u32, u32) = (60, 100);

/// The steps of the positions where something is drawn.
fn augments(op: impl Into<Op>) -> Vec<AugmentStep> {
    let steps = levels(op, SIZE).into_iter().flatten();
    let augment = |step| match step {
        Step::Augment(step) => step,
        other => panic!("{other:?}"),
    };
    steps.map(augment).collect()
}

#[test]
fn each_is_done_as_often_as_p_says() {
    let ops = |p: f64| -> Vec<(Op, AugmentStep)> {
        vec![
            (RandomEqualize { p }.into(), AugmentStep::Equalize),
            (RandomAutocontrast { p }.into(), AugmentStep::AutoContrast),
            (RandomInvert { p }.into(), AugmentStep::Invert),
            (
                RandomPosterize { bits: 3, p }.into(),
                AugmentStep::Posterize { bits: 3 },
            ),
            (
                RandomSolarize { threshold: 99.5, p }.into(),
                AugmentStep::Solarize { threshold: 100.0 },
            ),
            (
                RandomAdjustSharpness {
                    sharpness_factor: 1.5,
                    p,
                }
                .into(),
                AugmentStep::Sharpness(1.5),
            ),
        ]
    };
    for p in [0.0, 0.3, 1.0] {
        for (op, want) in ops(p) {
            let name = op.name();
            let all = augments(op);
            assert_share(all.len(), POSITIONS, p, name);
            assert!(all.iter().all(|step| *step == want), "{name}");
        }
    }
    let perspective = RandomPerspective {
        p: 0.3,
        ..RandomPerspective::default()
    };
    assert_share(augments(perspective).len(), POSITIONS, 0.3, "perspective");
    let zoom = levels(RandomZoomOut::default(), SIZE);
    let done = zoom.iter().filter(|steps| !steps.is_empty()).count();
    assert_share(done, POSITIONS, 0.5, "zoom out");
}

#[test]
fn turns_shifts_and_zooms_are_uniform() {
    let matrices = |op: RandomAffine| {
        augments(op).into_iter().map(|step| match step {
            AugmentStep::Affine { matrix, .. } => matrix,
            other => panic!("{other:?}"),
        })
    };
    let none = RandomAffine::new(Span(0.0, 0.0));
    let turned = matrices(RandomAffine::new(Span(-20.0, 50.0)));
    let degrees = turned.map(|m| -m[3].atan2(m[0]).to_degrees());
    assert_uniform(degrees, (-20.0, 50.0), "degrees");
    let zoomed = matrices(RandomAffine {
        scale: Span(0.5, 2.0),
        ..none
    });
    assert_uniform(zoomed.map(|m| 1.0 / m[0]), (0.5, 2.0), "scale");
    let shifted: Vec<_> = matrices(RandomAffine {
        translate: [0.3, 0.1],
        ..none
    })
    .collect();
    for (i, most) in [(2, 30.0), (5, 6.0)] {
        let whole = |m: &[f64; 6]| m[i].fract() == 0.0 && m[i].abs() <= most;
        assert!(shifted.iter().all(whole));
        let seen: BTreeSet<i64> = shifted.iter().map(|m| m[i] as i64).collect();
        assert_eq!(seen.len(), 2 * most as usize + 1);
    }
    // Around the centre, which stays.
    for m in matrices(RandomAffine::new(Span(-90.0, 90.0))).take(100) {
        let (x, y) = (50.0, 30.0);
        assert!((m[0] * x + m[1] * y + m[2] - x).abs() < 1e-9);
        assert!((m[3] * x + m[4] * y + m[5] - y).abs() < 1e-9);
    }
}

#[test]
fn a_picture_that_is_zoomed_out_lies_anywhere_in_the_larger_one() {
    let op = RandomZoomOut {
        side_range: Span(2.0, 3.0),
        p: 1.0,
        ..RandomZoomOut::default()
    };
    let (mut by, mut left, mut top) = (Vec::new(), Vec::new(), Vec::new());
    let large = (600, 1000);
    for steps in levels(op, large) {
        let [Step::Pad { padding: p, .. }] = steps[..] else {
            panic!("{steps:?}");
        };
        let (h, w) = (p.top + 600 + p.bottom, p.left + 1000 + p.right);
        by.push(f64::from(w) / 1000.0);
        assert!(h.abs_diff(w * 600 / 1000) <= 1);
        left.push(f64::from(p.left) / f64::from(w - 1000));
        top.push(f64::from(p.top) / f64::from(h - 600));
    }
    for (what, values) in [("side", by), ("left", left), ("top", top)] {
        let low = if what == "side" { 2.0 } else { 0.0 };
        // Whole pixels.
        assert_uniform_but(0.002, values, (low, low + 1.0), what);
    }
}

#[test]
fn noise_has_a_key_of_its_own_at_every_position() {
    let steps = levels(ElasticTransform::default(), SIZE);
    let keys: BTreeSet<u64> = steps
        .iter()
        .map(|steps| match steps[..] {
            [Step::Elastic { key, .. }] => key,
            _ => panic!("{steps:?}"),
        })
        .collect();
    assert_eq!(keys.len() as u64, POSITIONS);
}

/// Corners that cannot move give no equations, and no step.
#[test]
fn pictures_of_a_pixel_or_a_row_stay() {
    let op = RandomPerspective {
        p: 1.0,
        distortion_scale: 1.0,
        ..RandomPerspective::default()
    };
    for size in [(1, 1), (1, 50), (50, 1)] {
        assert!(levels(op, size).iter().all(Vec::is_empty), "{size:?}");
    }
    // Where they may cross, all numbers are finite.
    for size in [(2, 2), (3, 40), (12, 12)] {
        for step in levels(op, size).into_iter().flatten() {
            let Step::Augment(AugmentStep::Perspective { coefficients, .. }) = step else {
                panic!("{step:?}");
            };
            assert!(coefficients.iter().all(|v| v.is_finite()));
        }
    }
}
