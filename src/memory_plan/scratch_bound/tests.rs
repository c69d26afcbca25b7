//! Policies, of which anything or nothing is drawn, against their bound.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::order::PositionRandom;
use crate::picture::ExifOrientation;
use crate::recipe::geometry::PixelRect;
use crate::recipe::steps::{LargestCase, StepSink};
use crate::recipe::{
    AffineStyle, AugmentStep, ColorJitter, DrawnPicture, InterpolationMode, Padding, Patches,
    RandAugment, RandomHorizontalFlip, Recipe, Size, Span,
};

fn affine() -> AugmentStep {
    AugmentStep::Affine {
        matrix: [1.0, 0.3, 0.0, 0.0, 1.0, 0.0],
        interpolation: InterpolationMode::Bilinear,
        fill: [0; 3],
        style: AffineStyle::Pillow,
    }
}

fn drawn() -> impl Strategy<Value = AugmentStep> {
    let rotate = |degrees| AugmentStep::Rotate {
        degrees,
        interpolation: InterpolationMode::Nearest,
        fill: [0; 3],
    };
    select(vec![
        AugmentStep::Equalize,
        AugmentStep::Hue(3),
        AugmentStep::Sharpness(0.4),
        affine(),
        rotate(13.0),
        rotate(90.0),
        rotate(180.0),
    ])
}

/// What may be written, and what is drawn of it: steps that are always there, or a
/// policy.
#[derive(Debug, Clone)]
enum Written {
    Always(u8, (u32, u32)),
    Policy(Vec<AugmentStep>),
    Mix(Option<AugmentStep>),
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        (0u8..6, (1u32..60, 1u32..60)).prop_map(|(kind, size)| Written::Always(kind, size)),
        prop::collection::vec(drawn(), 0..3).prop_map(Written::Policy),
        prop::option::of(drawn()).prop_map(Written::Mix),
    ]
}

/// The step on a picture of this height and width, and what that becomes.
fn always(kind: u8, at: HeightWidth, size: HeightWidth) -> (Step, HeightWidth) {
    let (height, width) = size;
    match kind {
        0 => {
            let crop = (height.min(at.0), width.min(at.1));
            let rect = PixelRect {
                left: 0,
                top: at.0.abs_diff(crop.0) / 2,
                width: crop.1,
                height: crop.0,
            };
            (Step::Crop(rect), crop)
        }
        1 => (Step::Turn(1), (at.1, at.0)),
        2 => {
            let step = Step::Blur {
                kernel: Size::from((5, 3)),
                sigma: 1.0,
            };
            (step, at)
        }
        3 => {
            let step = Step::Pad {
                padding: Padding::from(2),
                mode: crate::recipe::PaddingMode::Edge,
                fill: [0.0; 3],
            };
            (step, (at.0 + 4, at.1 + 4))
        }
        4 => (Step::Mirror, at),
        _ => {
            let step = Step::Resize {
                size: Size { height, width },
                interpolation: InterpolationMode::Bilinear,
                antialias: true,
            };
            (step, size)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_draw_of_a_policy_takes_more_than_its_bound(
        list in prop::collection::vec(written(), 0..7),
        (w, h) in (1u32..90, 1u32..90),
        orientation in select(ExifOrientation::ALL.to_vec()),
        is_jpeg in any::<bool>(),
    ) {
        // Only how it decodes and fuses counts; the steps are those below.
        let program = SampleProgram::compile(&Recipe::train224()).unwrap();
        let stored = StoredPicture {
            size: (w, h),
            orientation,
            cost: match is_jpeg {
                true => DecodeCost::Jpeg { coefficients: 500, cmyk: false },
                false => DecodeCost::Rows { scratch: 77 },
            },
            pixel_box: None,
        };
        // None of the recipe's operations.
        let op = usize::MAX;
        let mut steps = Vec::new();
        let [mut all, mut some] = [const { Vec::new() }; 2];
        let mut at = stored.upright_size();
        let reach = SizeBounds::exactly(at);
        let mut both = [
            LargestCase::new(reach, true, &mut all),
            LargestCase::new(reach, false, &mut some),
        ];
        both.iter_mut().for_each(|most| most.begin(op, &[]));
        for item in list {
            let (largest, taken) = match item {
                Written::Always(kind, size) => {
                    let (step, becomes) = always(kind, at, size);
                    at = becomes;
                    steps.push(OpStep::new(op, step));
                    both.iter_mut().for_each(|most| most.push(step));
                    continue;
                }
                Written::Policy(taken) => (vec![affine(), affine()], taken),
                Written::Mix(chain) => {
                    let ends = [AugmentStep::Add { weight: 1.0 }, AugmentStep::Blend { by: 0.5 }];
                    let mixed = |of| [vec![AugmentStep::Keep, of], ends.to_vec()].concat();
                    (mixed(affine()), chain.map_or(Vec::new(), mixed))
                }
            };
            for most in &mut both {
                let push = |most: &mut LargestCase| {
                    largest.iter().for_each(|step| most.push(Step::Augment(*step)));
                };
                most.optionally(push);
            }
            let of = |step| OpStep::new(op, Step::Augment(step));
            steps.extend(taken.into_iter().map(of));
        }
        let [mut kept, some] = [stored.bound(&program, &all), stored.bound(&program, &some)];
        let most = kept.bytes().max(some.bytes());
        kept.raise_all(&some);
        let plan = stored.plan_decode(&program, &steps);
        let drawn = stored.sample_memory(&plan, &program, &steps);
        let mut both = kept;
        both.raise_all(&drawn);
        both.steep = kept.steep;
        prop_assert!(both == kept, "{drawn:?}\nof {kept:?}\n{steps:?}");
        prop_assert!(drawn.bytes() <= most, "{drawn:?}\nof {most}\n{steps:?}");
    }

    /// Whatever the ratio of an image, and whether it grows or shrinks.
    #[test]
    fn no_image_of_patches_takes_more_than_its_bound(
        (w, h) in (1u32..4000, 1u32..4000),
        orientation in select(ExifOrientation::ALL.to_vec()),
        is_jpeg in any::<bool>(),
        which in 0usize..6,
        position in any::<u32>(),
    ) {
        let op = match which % 2 {
            0 => Patches::qwen(14).between(3136, 200_000),
            _ => Patches::siglip2(16, 256),
        };
        let recipe = Recipe::new("patches").then(RandomHorizontalFlip::default());
        let jitter = ColorJitter { hue: Span(-0.1, 0.1), ..ColorJitter::default() };
        let recipe = match which / 2 {
            0 => recipe.then(op),
            1 => recipe.then(jitter).then(op),
            _ => recipe.then(op).then(RandAugment::default()),
        };
        let program = SampleProgram::compile(&recipe).unwrap();
        let stored = StoredPicture {
            size: (w, h),
            orientation,
            cost: match is_jpeg {
                true => DecodeCost::Jpeg { coefficients: 500, cmyk: false },
                false => DecodeCost::Rows { scratch: 77 },
            },
            pixel_box: None,
        };
        let picture = DrawnPicture::of_size(stored.upright_size());
        let random = PositionRandom::new(7, 1, position.into());
        let mut steps = Vec::new();
        if program.steps(&picture, &random, &mut steps).is_ok() {
            let plan = stored.plan_decode(&program, &steps);
            let drawn = stored.sample_memory(&plan, &program, &steps);
            let most = stored.scratch_bound(&program, None, &mut Vec::new());
            prop_assert!(drawn.bytes() <= most.bytes(), "{drawn:?}\nof {most:?}");
        }
    }
}
