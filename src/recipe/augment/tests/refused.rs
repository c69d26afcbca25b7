//! Rejected recipes, and their error texts.

use super::places::{pillow, policies, recipe};
use super::*;
use crate::recipe::{
    AugMix, Cast, ColorJitter, ColorOrder, ColorSpace, ConvertColor, Cutout, DataType, Decode,
    Grayscale, JitterStyle, Normalize, RandAugment, RandTable, SampleProgram, TimmAugment,
    TrivialAugment,
};

fn says(ops: impl IntoIterator<Item = Op>) -> String {
    let error = SampleProgram::compile(&recipe(ops)).unwrap_err();
    assert!(error.is_usage());
    error.to_string()
}

#[test]
fn pixels_that_are_not_8_bit_rgb_are_refused() {
    let grey = Op::from(Decode {
        color: ColorOrder::Grey,
        ..Decode::default()
    });
    let bgr = Op::from(Decode {
        color: ColorOrder::Bgr,
        ..Decode::default()
    });
    for policy in policies() {
        for (before, said) in [
            (
                Normalize::imagenet().into(),
                "comes after normalize: move it before",
            ),
            (
                ConvertColor::new(ColorSpace::Ycbcr).into(),
                "comes after convert_color: move it before",
            ),
            (
                ConvertColor::new(ColorSpace::Hsv).into(),
                "comes after convert_color: move it before",
            ),
            (
                Cast {
                    dtype: DataType::F32,
                }
                .into(),
                "comes after a cast to floats: move it before the cast",
            ),
            (
                Cast {
                    dtype: DataType::F16,
                }
                .into(),
                "comes after a cast to floats: move it before the cast",
            ),
            (
                Grayscale::default().into(),
                "the images are grey: decode to rgb",
            ),
            (grey.clone(), "the images are grey: decode to rgb"),
            (bgr.clone(), "blue is first: remove color: bgr of decode"),
        ] {
            let name = policy.name();
            // Fills what normalize left, too.
            if name == "cutout" && said.starts_with("comes after normalize") {
                continue;
            }
            let error = says([before, policy.clone()]);
            assert!(error.contains(&format!("{name}: ")), "{error}");
            assert!(error.contains(said), "{name} says {error}, not {said}");
        }
        // These give what it needs.
        let three = Grayscale {
            num_output_channels: 3,
        };
        let fine = [
            three.into(),
            Cast {
                dtype: DataType::F32,
            }
            .into(),
            Cast {
                dtype: DataType::U8,
            }
            .into(),
            policy,
            Normalize::imagenet().into(),
            Cast {
                dtype: DataType::F32,
            }
            .into(),
        ];
        SampleProgram::compile(&recipe(fine)).unwrap();
    }
    // The tensor arithmetic supports floats, blue first, and grey.
    let tensor = ColorJitter {
        style: JitterStyle::Tensor,
        ..pillow()
    };
    SampleProgram::compile(&recipe([bgr, tensor.into()])).unwrap();
}

#[test]
fn numbers_out_of_range_are_refused() {
    let rand = RandAugment::default;
    let timm = || TimmAugment::new("rand-m9");
    let fill = |v: [f32; 3]| {
        Op::from(RandAugment {
            fill: v.into(),
            ..rand()
        })
    };
    for (op, said) in [
        (
            RandAugment {
                num_ops: 0,
                ..rand()
            }
            .into(),
            "num_ops is 0: use 1 to 16",
        ),
        (
            RandAugment {
                num_ops: 17,
                ..rand()
            }
            .into(),
            "num_ops is 17",
        ),
        (
            RandAugment {
                magnitude: 31.0,
                ..rand()
            }
            .into(),
            "magnitude is 31: use a whole number from 0 to 30 with table torchvision",
        ),
        (
            RandAugment {
                magnitude: 9.5,
                ..rand()
            }
            .into(),
            "magnitude is 9.5: use a whole number",
        ),
        (
            RandAugment {
                magnitude: f64::NAN,
                ..rand()
            }
            .into(),
            "magnitude is NaN",
        ),
        (
            RandAugment {
                magnitude: 22.5,
                table: RandTable::Paddle,
                ..rand()
            }
            .into(),
            "magnitude is 22.5: use 0 to 22 with tables paddle and paddle2",
        ),
        (
            RandAugment {
                magnitude: -1.0,
                table: RandTable::Paddle3,
                ..rand()
            }
            .into(),
            "magnitude is -1: use 0 to 30 with table paddle3",
        ),
        (
            RandAugment {
                interpolation: InterpolationMode::Lanczos,
                ..rand()
            }
            .into(),
            "interpolation is lanczos: use nearest, bilinear or bicubic",
        ),
        (
            fill([0.0, 0.5, 0.0]),
            "fill holds 0.5: use whole levels from 0 to 255",
        ),
        (fill([256.0; 3]), "fill holds 256: use"),
        (fill([-1.0; 3]), "fill holds -1: use"),
        (fill([f32::NAN; 3]), "fill holds NaN: use"),
        (
            TrivialAugment {
                interpolation: InterpolationMode::Area,
                ..TrivialAugment::default()
            }
            .into(),
            "interpolation is area",
        ),
        (
            AugMix {
                p: 1.5,
                ..AugMix::default()
            }
            .into(),
            "p is 1.5: use 0 to 1",
        ),
        (
            AugMix {
                alpha: 0.0,
                ..AugMix::default()
            }
            .into(),
            "alpha is 0: use 0.01",
        ),
        (
            AugMix {
                width: 9,
                ..AugMix::default()
            }
            .into(),
            "width is 9: use 1 to 8",
        ),
        (
            AugMix {
                depth: 0.into(),
                ..AugMix::default()
            }
            .into(),
            "depth is 0: use 1 to 8",
        ),
        (
            AugMix {
                severity: 11.0,
                ..AugMix::default()
            }
            .into(),
            "severity is 11: use",
        ),
        (TimmAugment { p: -0.1, ..timm() }.into(), "p is -0.1: use"),
        (
            TimmAugment {
                interpolation: Vec::new(),
                ..timm()
            }
            .into(),
            "interpolation has 0 values",
        ),
        (
            TimmAugment {
                interpolation: vec![InterpolationMode::Area],
                ..timm()
            }
            .into(),
            "interpolation is area",
        ),
        (
            TimmAugment::new("augmix-n5").into(),
            "config is 'augmix-n5'",
        ),
        (
            Cutout {
                holes: 65,
                ..Cutout::default()
            }
            .into(),
            "holes is 65: use 1 to 64",
        ),
        (
            Cutout {
                length: 0,
                ..Cutout::default()
            }
            .into(),
            "length is 0: use 1",
        ),
        (
            Cutout {
                value: Some(0.5.into()),
                ..Cutout::default()
            }
            .into(),
            "value holds 0.5: use",
        ),
        (
            Cutout {
                p: f64::NAN,
                ..Cutout::default()
            }
            .into(),
            "p is NaN: use",
        ),
    ] {
        let op: Op = op;
        let error = says([op.clone()]);
        assert!(error.contains(&format!("{}: ", op.name())), "{error}");
        assert!(error.contains(said), "{op:?} says {error}, not {said}");
    }
}
