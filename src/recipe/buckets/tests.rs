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
    let mut count = 0;
    for RuleCases { rule, cases } in &all {
        let fitter = rule.fitter().unwrap();
        for [image, row, resized] in cases {
            count += 1;
            let want = BucketFit {
                row: *row,
                resized: *resized,
            };
            let is_row = row.0 > 0 && row.1 > 0 && resized.0 >= row.0 && resized.1 >= row.1;
            let is_row = is_row && row.0.max(row.1) <= super::MOST_SIDE;
            let got = fitter.fit(*image);
            if got != is_row.then_some(want) {
                wrong.push(format!("{rule:?}: {image:?}: {got:?} instead of {want:?}"));
            }
        }
    }
    let lines = wrong.len().min(12);
    assert!(
        wrong.is_empty() && count > 900,
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
        sides: (512, 256),
        ..usual()
    };
    assert!(refused(sides).contains("sides 512 to 256"));
    let upscale = BucketRule {
        style: BucketStyle::AiToolkit,
        upscale: false,
        ..usual()
    };
    assert!(refused(upscale).contains("upscale"));
    assert_eq!(usual().fitter().unwrap().fit((0, 10)), None);
}
