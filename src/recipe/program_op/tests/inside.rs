//! Operations that contain operations: their draws, their random streams, and what may not be
//! nested.

use super::*;
use crate::recipe::{
    AugmentStep, Cast, CenterCrop, DataType, RandomApply, RandomChoice, RandomInvert, RandomOrder,
    RandomPosterize, RandomSolarize, RandomZoomOut,
};

const SIZE: (u32, u32) = (60, 100);

fn jitter() -> Op {
    ColorJitter {
        brightness: Span(0.2, 1.8),
        ..ColorJitter::default()
    }
    .into()
}

fn blur() -> Op {
    GaussianBlur::new(5).into()
}

fn mirror() -> Op {
    RandomHorizontalFlip { p: 1.0 }.into()
}

/// Those of one kind, at every position.
fn only(op: impl Into<Op>, kind: fn(&Step) -> bool) -> Vec<Vec<Step>> {
    let keep = |steps: Vec<Step>| steps.into_iter().filter(kind).collect();
    levels(op, SIZE).into_iter().map(keep).collect()
}

#[test]
fn all_or_none_are_applied() {
    for p in [0.0, 0.3, 1.0] {
        let transforms = vec![mirror(), blur()];
        let all = levels(RandomApply { transforms, p }, SIZE);
        assert!(all.iter().all(|steps| matches!(steps.len(), 0 | 2)));
        let done = all.iter().filter(|steps| steps.len() == 2).count();
        assert_share(done, POSITIONS, p, "applied");
    }
}

#[test]
fn choices_are_as_likely_as_their_weights() {
    let transforms = || -> Vec<Op> {
        let p = 1.0;
        vec![
            RandomInvert { p }.into(),
            RandomPosterize { bits: 3, p }.into(),
            RandomSolarize { threshold: 7.0, p }.into(),
        ]
    };
    let place = |step: &Step| match step {
        Step::Augment(AugmentStep::Invert) => 0,
        Step::Augment(AugmentStep::Posterize { .. }) => 1,
        _ => 2,
    };
    let counts = |op: RandomChoice<Op>| {
        let mut counts = [0; 3];
        for steps in levels(op, SIZE) {
            assert_eq!(steps.len(), 1);
            counts[place(&steps[0])] += 1;
        }
        counts
    };
    for (p, likely) in [
        (None, [1.0 / 3.0; 3]),
        (Some(vec![1.0, 0.0, 3.0]), [0.25, 0.0, 0.75]),
        (Some(vec![1e-9, 0.0, 0.0]), [1.0, 0.0, 0.0]),
    ] {
        let counts = counts(RandomChoice {
            p,
            transforms: transforms(),
        });
        for (count, likely) in counts.into_iter().zip(likely) {
            assert_share(count, POSITIONS, likely, "chosen");
        }
    }
}

#[test]
fn every_order_is_as_likely() {
    let erase = RandomErasing {
        p: 1.0,
        ..RandomErasing::default()
    };
    let op = RandomOrder::new(vec![mirror(), blur(), erase.into()]);
    let orders = levels(op, SIZE).into_iter().map(|steps| {
        let kinds = steps.iter().map(|step| match step {
            Step::Mirror => 0,
            Step::Blur { .. } => 1,
            _ => 2,
        });
        kinds.collect::<Vec<u8>>()
    });
    assert_equally_likely(orders, 6, "orders");
}

/// Adding, moving and choosing operations does not shift random numbers.
#[test]
fn what_stands_inside_keeps_its_numbers() {
    let blurs = |op: RandomOrder<Op>| only(op, |step| matches!(step, Step::Blur { .. }));
    let want = blurs(RandomOrder::new(vec![blur()]));
    assert!(want.iter().all(|steps| steps.len() == 1));
    let behind = RandomOrder::new(vec![jitter(), mirror(), blur()]);
    let front = RandomOrder::new(vec![blur(), jitter()]);
    assert_eq!(blurs(behind), want);
    assert_eq!(blurs(front), want);
    // Two operations of one kind have different numbers.
    for steps in blurs(RandomOrder::new(vec![blur(), blur()]))
        .iter()
        .take(99)
    {
        assert_ne!(steps[0], steps[1]);
    }
    // The chosen operation has the same numbers as ever.
    let all = only(
        RandomApply {
            transforms: vec![jitter(), blur()],
            p: 1.0,
        },
        |_| true,
    );
    let some = only(
        RandomApply {
            transforms: vec![jitter(), blur()],
            p: 0.5,
        },
        |_| true,
    );
    for (all, some) in all.iter().zip(&some) {
        assert!(some.is_empty() || some == all);
    }
}

#[test]
fn what_does_not_fit_inside_is_refused() {
    let known = PixelState {
        size: Some((40, 40)),
        ..PixelState::after_decode(ColorOrder::Rgb)
    };
    let refused = |op: Op, want: &str| {
        let why = op.check(&mut known.clone()).unwrap_err();
        assert!(why.contains(want), "{why}");
        let mut deeper = known;
        let holder = Op::from(RandomApply::new(vec![op]));
        assert!(holder.check(&mut deeper).is_err());
    };
    let holders = |op: Op| -> [Op; 3] {
        [
            RandomApply::new(vec![mirror(), op.clone()]).into(),
            RandomChoice::new(vec![mirror(), op.clone()]).into(),
            RandomOrder::new(vec![mirror(), op]).into(),
        ]
    };
    let sizes: [Op; 5] = [
        Resize::exact(40, 40).into(),
        CenterCrop::new(20).into(),
        RandomZoomOut::default().into(),
        Rotate90 { times: 1 }.into(),
        RandomRotation {
            expand: true,
            ..RandomRotation::new(Span(0.0, 9.0))
        }
        .into(),
    ];
    for op in sizes {
        let want = format!("{} in transforms: changes the size", op.name());
        for holder in holders(op.clone()) {
            refused(holder, &want);
        }
    }
    let meanings: [Op; 4] = [
        Decode::default().into(),
        Normalize::imagenet().into(),
        Cast {
            dtype: DataType::F32,
        }
        .into(),
        Grayscale::default().into(),
    ];
    for op in meanings {
        let want = format!("{} in transforms: changes the meaning of", op.name());
        for holder in holders(op.clone()) {
            refused(holder, &want);
        }
    }
    let label = RandomRotate90 { label: true };
    for holder in holders(label.into()) {
        refused(holder, "gives labels");
    }
    for holder in holders(RandomInvert { p: 1.5 }.into()) {
        refused(holder, "random_invert in transforms: p is 1.5");
    }
    refused(RandomOrder::<Op>::new(vec![]).into(), "transforms has 0");
    refused(
        RandomOrder::new(vec![mirror(); 65]).into(),
        "transforms has 65",
    );
    let weighted = |p: &[f64]| -> Op {
        RandomChoice {
            transforms: vec![mirror(), blur()],
            p: Some(p.to_vec()),
        }
        .into()
    };
    refused(weighted(&[1.0]), "p has 1 weights, and transforms has 2");
    refused(weighted(&[0.0, 0.0]), "no weight above 0");
    refused(weighted(&[1.0, -1.0]), "p is -1");
    refused(weighted(&[1.0, f64::NAN]), "p is NaN");
    refused(weighted(&[1.0, f64::INFINITY]), "p is inf");
    let mut deep = mirror();
    for level in 1..=6 {
        deep = RandomOrder::new(vec![deep]).into();
        assert_eq!(
            deep.check(&mut known.clone()).is_ok(),
            level <= 4,
            "{level}"
        );
    }
}
