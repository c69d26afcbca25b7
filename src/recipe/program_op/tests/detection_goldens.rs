//! Compares what operations for detectors draw with torchvision, albumentations and detectron2's
//! rules: tests/goldens/detection_draws.tar, which scripts/op_goldens/detection_draws.py writes and
//! explains.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::*;
use crate::recipe::{FixedBoxes, OneStream, RandomIouCrop};
use crate::tests_support::golden;

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    op: Op,
    /// In 65,536ths.
    numbers: VecDeque<u32>,
    size: (u32, u32),
    boxes: Vec<[f64; 4]>,
    steps: Vec<DrawnChange>,
    kept: Option<Vec<bool>>,
}

/// What a library does to the size of an image.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DrawnChange {
    /// Left, top, width, height.
    Crop([u32; 4]),
    /// Height, width.
    Resize([u32; 2]),
    /// Left, top, right, bottom.
    Pad([u32; 4]),
}

/// Returns listed numbers.
struct Listed<'a>(&'a RefCell<VecDeque<u32>>);

impl UniformSource for Listed<'_> {
    fn next_f64(&mut self) -> f64 {
        let next = self.0.borrow_mut().pop_front();
        f64::from(next.expect("more numbers than the library draws")) / 65536.0
    }
}

fn change(step: &Step) -> DrawnChange {
    match *step {
        Step::Crop(r) => DrawnChange::Crop([r.left, r.top, r.width, r.height]),
        Step::Resize { size, .. } => DrawnChange::Resize([size.height, size.width]),
        Step::Pad { padding: p, .. } => DrawnChange::Pad([p.left, p.top, p.right, p.bottom]),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn draws_for_detectors_are_those_of_the_libraries() {
    let file = golden("detection_draws", "manifest.json").unwrap();
    let manifest: Manifest = serde_json::from_slice(&file).unwrap();
    let mut seen: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut kept_boxes = (0, 0);
    for (n, case) in manifest.cases.into_iter().enumerate() {
        let name = case.op.name();
        let drawn = ProgramOp {
            op: case.op,
            stream: 0,
            known: PixelState::after_decode(ColorOrder::Rgb),
        };
        let boxes = FixedBoxes(case.boxes.clone());
        let picture = DrawnPicture {
            boxes: Some(&boxes),
            ..DrawnPicture::of_size(case.size)
        };
        let numbers = RefCell::new(case.numbers);
        let random = OneStream::new(Listed(&numbers));
        let mut steps = Vec::new();
        let becomes = drawn.draw(0, (&picture, case.size), &random, &mut steps);
        assert_eq!(
            numbers.borrow().len(),
            0,
            "case {n} draws fewer numbers: {:?}",
            drawn.op
        );
        let got: Vec<DrawnChange> = steps.iter().map(|of| change(&of.step)).collect();
        assert_eq!(
            got, case.steps,
            "case {n}: {:?} of {:?}",
            drawn.op, case.size
        );
        let size = steps.iter().fold(case.size, |size, of| match of.step {
            Step::Crop(rect) => (rect.height, rect.width),
            Step::Resize { size, .. } => (size.height, size.width),
            Step::Pad { padding, .. } => padding.padded_size(size),
            _ => size,
        });
        assert_eq!(becomes.unwrap(), size);
        if let (Some(kept), [of]) = (&case.kept, &steps[..]) {
            let Step::Crop(rect) = of.step else {
                panic!("no crop");
            };
            assert!(drawn.op.drops_by_centre());
            for (values, kept) in case.boxes.iter().zip(kept) {
                assert_eq!(rect.has_centre_of(*values), *kept, "case {n}: {values:?}");
                match kept {
                    true => kept_boxes.0 += 1,
                    false => kept_boxes.1 += 1,
                }
            }
        }
        let counts = seen.entry(name).or_default();
        counts.0 += 1;
        counts.1 += u32::from(!steps.is_empty());
    }
    // Enough cases of each, and most of them do something.
    let names: Vec<&str> = seen.keys().copied().collect();
    assert_eq!(
        names,
        [
            "large_scale_jitter",
            "random_iou_crop",
            "random_resize",
            "random_shortest_size",
            "random_sized_bbox_safe_crop",
            "scale_jitter"
        ]
    );
    assert!(
        seen.values()
            .all(|(all, acted)| *all >= 100 && *acted >= 100),
        "{seen:?}"
    );
    assert!(kept_boxes.0 > 200 && kept_boxes.1 > 150, "{kept_boxes:?}");
}

#[test]
fn a_crop_that_no_box_allows_ends() {
    // torchvision searches without end.
    let op = RandomIouCrop {
        sampler_options: vec![0.5],
        ..RandomIouCrop::default()
    };
    let drawn = ProgramOp {
        op: op.into(),
        stream: 3,
        known: PixelState::after_decode(ColorOrder::Rgb),
    };
    for boxes in [vec![], vec![[0.0, 0.0, 2.0, 2.0]], vec![[f64::NAN; 4]]] {
        let boxes = FixedBoxes(boxes);
        let size = (300, 200);
        let picture = DrawnPicture {
            boxes: Some(&boxes),
            ..DrawnPicture::of_size(size)
        };
        let mut steps = Vec::new();
        let random = PositionRandom::new(1, 2, 3);
        let becomes = drawn.draw(0, (&picture, size), &random, &mut steps);
        assert_eq!((becomes.unwrap(), steps.len()), (size, 0));
    }
    let none = DrawnPicture::of_size((300, 200));
    let fault = drawn.draw(
        0,
        (&none, (300, 200)),
        &PositionRandom::new(1, 2, 3),
        &mut Vec::new(),
    );
    assert!(
        fault
            .unwrap_err()
            .reason
            .contains("random_iou_crop reads boxes")
    );
}
