use serde::Deserialize;

use super::{BucketFit, BucketRule, BucketStyle};
use crate::tests_support::golden;

#[derive(Debug, Deserialize)]
struct RuleCases {
    rule: BucketRule,
    /// Of the image, the row and the resized image.
    cases: Vec<[(u32, u32); 3]>,
}

#[test]
fn buckets_are_those_of_the_trainers() {
    let all = golden("buckets", "cases.json").unwrap();
    let all: Vec<RuleCases> = serde_json::from_slice(&all).unwrap();
    let mut wrong = Vec::new();
    let (mut count, mut uncovered) = (0, 0);
    for RuleCases { rule, cases } in &all {
        let fitter = rule.fitter().unwrap();
        for [image, row, resized] in cases {
            count += 1;
            let covers = resized.0 >= row.0 && resized.1 >= row.1;
            let want = BucketFit {
                row: *row,
                resized: match covers {
                    true => *resized,
                    false => super::covering_size(*image, *row),
                },
            };
            let is_row = row.0 > 0 && row.1 > 0 && row.0.max(row.1) <= super::MOST_SIDE;
            uncovered += u32::from(is_row && !covers);
            let got = fitter.fit(*image);
            if got != is_row.then_some(want) {
                wrong.push(format!("{rule:?}: {image:?}: {got:?} instead of {want:?}"));
            }
        }
    }
    let lines = wrong.len().min(12);
    assert!(
        wrong.is_empty() && count > 1200 && uncovered < count / 50,
        "{} of {count}:\n{}",
        wrong.len(),
        wrong[..lines].join("\n")
    );
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let refused = |rule: BucketRule| rule.fitter().unwrap_err().to_string();
    let usual = BucketRule::default;
    let zero = BucketRule {
        step: Some(0),
        ..usual()
    };
    assert!(refused(zero).contains("step 0"));
    let small = BucketRule {
        area: 63,
        ..usual()
    };
    assert!(refused(small).contains("area 63 must be 4096"));
    let sides = BucketRule {
        sides: Some((512, 256)),
        ..usual()
    };
    assert!(refused(sides).contains("sides 512 to 256"));
    let large = BucketRule {
        area: 2048 * 2048,
        ..usual()
    };
    assert!(refused(large).contains("the squares of the sides 256 and 1024"));
    let without_ladder = BucketRule {
        sides: Some((256, 512)),
        upscale: false,
        ..usual()
    };
    assert!(refused(without_ladder).contains("remove them"));
    for style in [
        BucketStyle::AiToolkit,
        BucketStyle::Diffusers,
        BucketStyle::SimpleTuner,
    ] {
        let upscale = BucketRule {
            style,
            upscale: false,
            ..usual()
        };
        assert!(refused(upscale).contains("upscale"));
        let sides = BucketRule {
            style,
            sides: Some((256, 512)),
            ..usual()
        };
        assert!(refused(sides).contains("remove them"));
    }
    assert_eq!(usual().fitter().unwrap().fit((0, 10)), None);
}

#[test]
fn styles_have_the_names_of_the_trainers() {
    let name = |style| serde_json::to_string(&style).unwrap();
    assert_eq!(name(BucketStyle::SdScripts), r#""sd-scripts""#);
    assert_eq!(name(BucketStyle::Diffusers), r#""diffusers""#);
    assert_eq!(name(BucketStyle::AiToolkit), r#""ai-toolkit""#);
    assert_eq!(name(BucketStyle::SimpleTuner), r#""simpletuner""#);
}

#[test]
fn simple_tuner_has_one_row_for_each_rounded_ratio() {
    let rule = BucketRule {
        area: 768 * 768,
        step: Some(32),
        style: BucketStyle::SimpleTuner,
        ..BucketRule::default()
    };
    let fitter = rule.fitter().unwrap();
    let mut rows = std::collections::BTreeMap::new();
    for hundredths in 10..=800 {
        let fit = fitter.fit((1000, hundredths * 10)).unwrap();
        let (h, w) = fit.row;
        let rounded = format!("{:.2}", f64::from(w) / f64::from(h));
        assert_eq!(*rows.entry(rounded).or_insert(fit.row), fit.row);
    }
    // A ratio that rounds to 0.
    assert_eq!(fitter.fit((1000, 4)), None);
}
