//! Where policies may come in a recipe, their place in the compiled program, and their largest
//! steps. Errors are in `refused`.

use super::*;
use crate::recipe::steps::OpStep;
use crate::recipe::{
    AugMix, AutoAugment, Cast, CenterCrop, ChainDepth, ColorJitter, Cutout, DataType, EraseFill,
    Grayscale, JitterStyle, Normalize, RandAugment, RandomErasing, RandomHorizontalFlip, Recipe,
    ReorderMode, Resize, SampleProgram, Span, Step, TimmAugment, TrivialAugment,
};

pub(super) fn policies() -> Vec<Op> {
    vec![
        AutoAugment::default().into(),
        RandAugment::default().into(),
        TrivialAugment::default().into(),
        AugMix::default().into(),
        TimmAugment::new("rand-m9-mstd0.5-inc1").into(),
        TimmAugment::new("augmix-m5-w4-d2").into(),
        TimmAugment::new("original-mstd0.5").into(),
        Cutout::default().into(),
        pillow().into(),
    ]
}

pub(super) fn pillow() -> ColorJitter {
    ColorJitter {
        brightness: Span(0.6, 1.4),
        contrast: Span(0.6, 1.4),
        saturation: Span(0.6, 1.4),
        hue: Span(-0.1, 0.1),
        style: JitterStyle::Pillow,
        ..ColorJitter::default()
    }
}

pub(super) fn recipe(ops: impl IntoIterator<Item = Op>) -> Recipe {
    Recipe {
        ops: ops.into_iter().collect(),
        ..Recipe::new("mine")
    }
}

/// The names in running order, and those of the output format.
fn order(program: &SampleProgram) -> (Vec<String>, Vec<String>) {
    let [_, order, emitted] = program.units();
    let names = |units: Vec<(String, _)>| units.into_iter().map(|u| u.0).collect();
    (names(order), names(emitted))
}

#[test]
fn nothing_moves_across_a_policy_and_it_moves_across_nothing() {
    for reorder in [ReorderMode::Off, ReorderMode::Exact, ReorderMode::Fast] {
        for policy in policies() {
            let name = policy.name();
            let tensor = ColorJitter {
                brightness: Span(0.5, 1.5),
                ..ColorJitter::default()
            };
            let ops = [
                Op::from(tensor),
                Grayscale {
                    num_output_channels: 3,
                }
                .into(),
                policy,
                CenterCrop {
                    pad_if_needed: false,
                    ..CenterCrop::new(20)
                }
                .into(),
                Resize::exact(16, 16).into(),
                RandomHorizontalFlip::default().into(),
                Cast {
                    dtype: DataType::F32,
                }
                .into(),
                Normalize::imagenet().into(),
            ];
            let mut recipe = recipe(ops);
            recipe.reorder = Some(reorder);
            let program = SampleProgram::compile(&recipe).unwrap();
            let (order, emitted) = order(&program);
            let wanted = [
                "color_jitter",
                "grayscale",
                name,
                "center_crop",
                "resize",
                "random_horizontal_flip",
            ];
            assert_eq!(order[..6], wanted, "{reorder:?}");
            assert!(order.len() + emitted.len() == 8, "{order:?} {emitted:?}");
            let (moves, _) = program.moves();
            assert!(moves.iter().all(|m| m.op != name && m.behind != name));
            // Steps come in that order, and those of the policy are consecutive.
            for position in 0..200 {
                let mut steps = Vec::new();
                let random = PositionRandom::new(1, 0, position);
                program
                    .steps(&DrawnPicture::of_size((40, 50)), &random, &mut steps)
                    .unwrap();
                let ops: Vec<usize> = steps.iter().map(|s| s.op).collect();
                assert!(ops.is_sorted(), "{reorder:?}: {steps:?}");
            }
        }
    }
}

#[test]
fn a_policys_steps_keep_the_order_in_which_they_were_drawn() {
    let op = AugMix {
        p: 1.0,
        ..AugMix::default()
    };
    let ops = [
        Op::from(op.clone()),
        pillow().into(),
        RandomErasing {
            value: EraseFill::Random,
            ..RandomErasing::default()
        }
        .into(),
    ];
    let program = SampleProgram::compile(&recipe(ops)).unwrap();
    for position in 0..100 {
        let mut steps: Vec<OpStep> = Vec::new();
        let random = PositionRandom::new(5, 1, position);
        program
            .steps(&DrawnPicture::of_size(SIZE), &random, &mut steps)
            .unwrap();
        assert_eq!(steps[0].step, Step::Augment(AugmentStep::Keep));
        assert!(matches!(
            steps[7].step,
            Step::Augment(AugmentStep::Blend { .. })
        ));
        let jitter = steps.iter().filter(|s| s.op == 1);
        assert_eq!(jitter.count(), 4, "{steps:?}");
    }
}

#[test]
fn pillows_jitter_takes_the_draws_of_the_tensors() {
    let tensor = ColorJitter {
        style: JitterStyle::Tensor,
        ..pillow()
    };
    let of = |o: ColorJitter, position| {
        let program = SampleProgram::compile(&recipe([o.into()])).unwrap();
        let mut steps: Vec<OpStep> = Vec::new();
        let random = PositionRandom::new(5, 1, position);
        program
            .steps(&DrawnPicture::of_size(SIZE), &random, &mut steps)
            .unwrap();
        steps
    };
    let mut shifts = std::collections::BTreeSet::new();
    for position in 0..500 {
        let (a, b) = (of(tensor, position), of(pillow(), position));
        assert_eq!((a.len(), b.len()), (4, 4));
        for (a, b) in a.iter().zip(&b) {
            match (a.step, b.step) {
                (Step::Brightness(f), Step::Augment(AugmentStep::Brightness(g)))
                | (Step::Contrast(f), Step::Augment(AugmentStep::Contrast(g)))
                | (Step::Saturation(f), Step::Augment(AugmentStep::Color(g))) => assert_eq!(f, g),
                (Step::Hue(f), Step::Augment(AugmentStep::Hue(shift))) => {
                    // int(f * 255) as a byte.
                    assert_eq!(shift, (f64::from(f) * 255.0) as i32 as u8, "{f}");
                    shifts.insert(shift);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    // -25 to 25.
    assert_eq!(shifts.len(), 51, "{shifts:?}");
    let jitter = AugmentStep::of_jitter;
    assert_eq!(jitter(3, -0.5), AugmentStep::Hue(129));
    assert_eq!(jitter(3, 0.5), AugmentStep::Hue(127));
    assert_eq!(jitter(3, -0.003), AugmentStep::Hue(0));
}

#[test]
fn the_largest_steps_are_those_that_take_most() {
    let of = |op: Op| {
        let mut steps = Vec::new();
        let known = PixelState::after_decode(ColorOrder::Rgb);
        let mut most = LargestCase::new(SizeBounds::exactly(SIZE), true, &mut steps);
        op.largest(&known, SIZE, &mut most);
        let augments = steps.iter().map(|s| match s.of.step {
            Step::Augment(step) => step,
            other => panic!("{other:?}"),
        });
        augments.map(|step| name(&step)).collect::<Vec<_>>()
    };
    assert_eq!(of(AutoAugment::default().into()), ["nothing"; 2]);
    assert_eq!(of(RandAugment::default().into()), ["nothing"; 2]);
    assert_eq!(of(TimmAugment::new("rand-m9").into()), ["nothing"; 2]);
    assert_eq!(of(TimmAugment::new("v0r").into()), ["nothing"; 2]);
    let chain = ["nothing", "nothing", "add"];
    let mixed = [&["keep"], &chain[..], &chain[..], &["blend"]].concat();
    for text in ["augmix", "augmix-d4-w9", "augmix-b1-d2"] {
        assert_eq!(of(TimmAugment::new(text).into()), mixed, "{text}");
    }
    assert_eq!(
        of(TimmAugment::new("augmix-w1-d1").into()),
        ["keep", "nothing", "add", "blend"]
    );
    assert_eq!(of(TrivialAugment::default().into()), ["nothing"]);
    assert_eq!(
        of(AugMix::default().into()),
        ["keep", "nothing", "add", "nothing", "add", "blend"]
    );
    // A drawn depth counts as its deepest.
    let drawn = AugMix {
        depth: ChainDepth::Random,
        ..AugMix::default()
    };
    assert_eq!(
        of(drawn.into()),
        [
            "keep", "nothing", "nothing", "add", "nothing", "nothing", "add", "blend"
        ]
    );
    assert_eq!(of(Cutout::default().into()), ["fill"]);
    // Through a program, where the planner puts them.
    for policy in policies() {
        let program = SampleProgram::compile(&recipe([policy])).unwrap();
        let mut steps = Vec::new();
        program.largest_steps(SIZE, None, true, &mut steps);
        assert!(!steps.is_empty());
        assert!((steps.iter()).all(|s| matches!(s.of.step, Step::Augment(_))));
    }
}

#[test]
fn streams_are_an_operations_own() {
    // Another policy before it does not shift its numbers.
    let rand = Op::from(RandAugment::default());
    let of = |ops: Vec<Op>, at: usize, position| {
        let program = SampleProgram::compile(&recipe(ops)).unwrap();
        let mut steps: Vec<OpStep> = Vec::new();
        let random = PositionRandom::new(5, 1, position);
        program
            .steps(&DrawnPicture::of_size(SIZE), &random, &mut steps)
            .unwrap();
        let of_it = steps.iter().filter(|s| s.op == at).map(|s| s.step);
        of_it.collect::<Vec<_>>()
    };
    for position in 0..50 {
        let alone = of(vec![rand.clone()], 0, position);
        let behind = of(
            vec![AutoAugment::default().into(), rand.clone()],
            1,
            position,
        );
        assert_eq!(alone, behind);
    }
}
