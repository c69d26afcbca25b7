//! Strengths: the arguments that PaddleClas passes to Pillow, equal bit by bit.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::policy_op::{PolicyOp, WarpOptions};
use super::super::timm::LevelRules;
use super::super::{paddle, timm, torchvision};
use crate::recipe::InterpolationMode;
use crate::recipe::ops::{
    aug_mix as augmix, auto_augment as imagenet, rand_augment as rand, trivial_augment as trivial,
};
use crate::recipe::step::AugmentStep;

/// One operation: for every level, the arguments with each sign.
#[derive(Deserialize)]
struct Told {
    filter: Option<String>,
    fill: Option<[u8; 3]>,
    levels: Vec<f64>,
    args: Vec<Vec<Vec<f64>>>,
}

#[derive(Deserialize)]
struct Golden {
    size: [u32; 2],
    ops: BTreeMap<String, Told>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    plain: Vec<String>,
    #[serde(default)]
    increasing: Vec<String>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    pairs: Vec<(f64, String, u32, f64, String, u32)>,
}

fn golden(name: &str) -> Golden {
    let text = crate::tests_support::golden("policies", &format!("{name}.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// By the names of all of PaddleClas' files.
pub(super) fn kind(name: &str) -> PolicyOp {
    let plain = name.replace(['_'], "").to_lowercase();
    let plain = plain.trim_end_matches("increasing").trim_end_matches("rel");
    let plain = plain.trim_end_matches("original");
    match plain {
        "autocontrast" => PolicyOp::AutoContrast,
        "equalize" => PolicyOp::Equalize,
        "invert" => PolicyOp::Invert,
        "posterize" => PolicyOp::Posterize,
        "solarize" => PolicyOp::Solarize,
        "solarizeadd" => PolicyOp::SolarizeAdd,
        "brightness" => PolicyOp::Brightness,
        "contrast" => PolicyOp::Contrast,
        "color" => PolicyOp::Color,
        "sharpness" => PolicyOp::Sharpness,
        "rotate" => PolicyOp::Rotate,
        "shearx" => PolicyOp::ShearX,
        "sheary" => PolicyOp::ShearY,
        "translatex" => PolicyOp::TranslateX,
        "translatey" => PolicyOp::TranslateY,
        other => panic!("{other}"),
    }
}

pub(super) fn args(step: &AugmentStep) -> (Vec<f64>, Option<WarpOptions>) {
    match *step {
        AugmentStep::AutoContrast | AugmentStep::Equalize | AugmentStep::Invert => {
            (Vec::new(), None)
        }
        AugmentStep::Affine {
            matrix,
            interpolation,
            fill,
            ..
        } => {
            let look = WarpOptions {
                interpolation,
                fill,
            };
            (matrix.to_vec(), Some(look))
        }
        AugmentStep::Rotate {
            degrees,
            interpolation,
            fill,
        } => {
            let look = WarpOptions {
                interpolation,
                fill,
            };
            (vec![degrees], Some(look))
        }
        ref other => (vec![super::value(other)], None),
    }
}

/// Every level and sign of every operation.
fn compare(
    golden: &Golden,
    made: impl Fn(PolicyOp, &str, f64, f64, (u32, u32)) -> Option<AugmentStep>,
) {
    let size = (golden.size[0], golden.size[1]);
    for (name, told) in &golden.ops {
        assert_eq!(told.levels.len(), told.args.len());
        for (level, wanted) in told.levels.iter().zip(&told.args) {
            let both = [wanted.first(), wanted.last()].map(|w| w.unwrap());
            for (sign, wanted) in [1.0, -1.0].into_iter().zip(both) {
                let step = made(kind(name), name, *level, sign, size).unwrap();
                let (args, look) = args(&step);
                let singles = match step {
                    AugmentStep::Affine { .. } | AugmentStep::Rotate { .. } => wanted.clone(),
                    // Steps hold factors and thresholds as Pillow does.
                    _ => wanted.iter().map(|v| f64::from(*v as f32)).collect(),
                };
                // -0 is 0.
                assert_eq!(args, singles, "{name} {level} {sign}");
                if let Some(look) = look {
                    assert_eq!(
                        Some(look.interpolation.name()),
                        told.filter.as_deref(),
                        "{name}"
                    );
                    assert_eq!(look.fill, told.fill.unwrap_or_default(), "{name}");
                }
            }
        }
    }
}

#[test]
fn auto_augments_table_and_strengths_are_paddles() {
    let golden = golden("imagenet");
    let pairs: Vec<_> = golden
        .pairs
        .iter()
        .map(|p| ((p.0, kind(&p.1), p.2), (p.3, kind(&p.4), p.5)))
        .collect();
    assert_eq!(pairs, imagenet::PAIRS);
    assert_eq!(golden.ops.len(), 14);
    compare(&golden, |kind, _, at, sign, size| {
        let strength = paddle::strength(kind, at as u32);
        paddle::step(kind, strength, sign, size, imagenet::FILL)
    });
}

#[test]
fn rand_augments_strengths_are_paddles() {
    let golden = golden("rand");
    let kinds: Vec<_> = golden.names.iter().map(|n| kind(n)).collect();
    assert_eq!(kinds, paddle::KINDS);
    compare(&golden, |kind, _, magnitude, sign, size| {
        paddle::step(kind, paddle::scaled(kind, magnitude), sign, size, [1, 2, 3])
    });
}

#[test]
fn timms_arguments_are_paddles_at_every_level() {
    let golden = golden("timm");
    for names in [&golden.plain, &golden.increasing] {
        let kinds: Vec<_> = names.iter().map(|n| kind(n)).collect();
        assert_eq!(kinds, timm::KINDS);
    }
    assert_eq!(golden.weights, timm::WEIGHTS);
    let look = WarpOptions {
        interpolation: InterpolationMode::Bicubic,
        fill: [124, 116, 104],
    };
    for increasing in [false, true] {
        let of = if increasing {
            &golden.increasing
        } else {
            &golden.plain
        };
        let mut some = super::tables::golden("timm");
        some.ops.retain(|name, _| of.contains(name));
        assert_eq!(some.ops.len(), 15);
        let rules = match increasing {
            true => LevelRules::INCREASING,
            false => LevelRules::PLAIN,
        };
        compare(&some, |kind, _, level, sign, size| {
            kind.step(rules.amount(kind, level, sign, size), look)
        });
    }
}

#[test]
fn aug_mixs_parameters_are_paddles() {
    let golden = golden("augmix");
    let kinds: Vec<_> = golden.names.iter().map(|n| kind(n)).collect();
    assert_eq!(kinds, augmix::KINDS);
    compare(&golden, |kind, _, level, sign, size| {
        kind.step(augmix::amount(kind, level, sign, size), augmix::LOOK)
    });
}

#[test]
fn the_third_table_of_paddle() {
    // RandAugmentV3's level map at magnitude 3, as it is written there.
    for (kind, wanted) in [
        (PolicyOp::ShearX, 0.3 * 0.3),
        (PolicyOp::TranslateY, 150.0 / 331.0 * 0.3),
        (PolicyOp::Rotate, 9.0),
        (PolicyOp::Color, 0.9 * 0.3),
        (PolicyOp::Posterize, 7.0),
        (PolicyOp::Solarize, 255.0 * (1.0 - 0.3)),
        (PolicyOp::Invert, 0.0),
    ] {
        assert_eq!(paddle::scaled_v3(kind, 3.0), wanted, "{kind:?}");
    }
    let bits = [8, 8, 8, 7, 7, 6, 6, 6, 5, 5, 4];
    for (magnitude, bits) in bits.into_iter().enumerate() {
        let made = paddle::scaled_v3(PolicyOp::Posterize, magnitude as f64);
        assert_eq!(made, f64::from(bits), "{magnitude}");
    }
}

#[test]
fn half_sides_of_the_fourth_table() {
    let halves: Vec<_> = (0..10)
        .map(|i| paddle::strength(PolicyOp::Cutout, i))
        .collect();
    let wanted = [0.0, 2.0, 4.0, 7.0, 9.0, 11.0, 13.0, 16.0, 18.0, 20.0];
    assert_eq!(halves, wanted);
}

#[test]
fn torchvisions_strengths() {
    let close = |a: f64, b: f64, what: &str| assert!((a - b).abs() <= 1e-5 * b, "{what}: {a}, {b}");
    for at in 0..=30 {
        let part = f64::from(at) / 30.0;
        for (kind, most, widest) in [
            (PolicyOp::ShearX, 0.3, 0.99),
            (PolicyOp::ShearY, 0.3, 0.99),
            (PolicyOp::TranslateX, 150.0 / 331.0 * 100.0, 32.0),
            (PolicyOp::TranslateY, 150.0 / 331.0 * 37.0, 32.0),
            (PolicyOp::Rotate, 30.0, 135.0),
            (PolicyOp::Brightness, 0.9, 0.99),
            (PolicyOp::Color, 0.9, 0.99),
            (PolicyOp::Contrast, 0.9, 0.99),
            (PolicyOp::Sharpness, 0.9, 0.99),
        ] {
            let what = format!("{kind:?} {at}");
            let made = rand::torchvision_strength(kind, at, (37, 100));
            close(made, most * part, &what);
            let made = trivial::strength(kind, at);
            close(made, widest * part, &what);
        }
        let threshold = 255.0 - 8.5 * f64::from(at);
        assert_eq!(
            rand::torchvision_strength(PolicyOp::Solarize, at, (1, 1)),
            threshold
        );
        assert_eq!(trivial::strength(PolicyOp::Solarize, at), threshold);
    }
    // 8 - round(i / 7.5), 8 - round(i / 5).
    let bits =
        |f: &dyn Fn(u32) -> f64| -> String { (0..=30).map(|at| format!("{}", f(at))).collect() };
    assert_eq!(
        bits(&|at| rand::torchvision_strength(PolicyOp::Posterize, at, (1, 1))),
        "8888777777776666666555555554444"
    );
    assert_eq!(
        bits(&|at| trivial::strength(PolicyOp::Posterize, at)),
        "8887777766666555554444433333222"
    );
    // Cut to whole pixels, and to the right by a positive strength.
    let amount = |s, sign| torchvision::torchvision_amount(PolicyOp::TranslateX, s, sign);
    assert_eq!((amount(7.9, 1.0), amount(7.9, -1.0)), (-7.0, 7.0));
    assert_eq!(torchvision::linspace(0.0, 32.0, 15), 16.0);
    assert_eq!(torchvision::linspace(0.0, 32.0, 30), 32.0);
}
