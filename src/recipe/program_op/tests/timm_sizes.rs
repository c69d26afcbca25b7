//! Sizes and shares of the operations that follow timm, against timm's own code.

use super::*;
use crate::recipe::{CenterCropOrPad, InterpolationMode, ResizeKeepRatio, TrimBorder};

/// Height and width of an image and of the target, `longest`, scale, stretch (0: none), and the
/// result of timm 1.0.31's `ResizeKeepRatio.get_params`.
type SizeCase = ((u32, u32), (u32, u32), f64, f64, f64, (u32, u32));

const SIZES: &[SizeCase] = &[
    ((244, 607), (37, 90), 0.0, 0.8, 1.05, (40, 105)),
    ((481, 266), (37, 90), 0.0, 0.0, 1.05, (159, 92)),
    ((488, 407), (37, 90), 0.0, 0.0, 1.05, (105, 92)),
    ((400, 760), (224, 224), 0.3, 0.0, 0.0, (176, 335)),
    ((777, 606), (224, 224), 1.0, 0.0, 0.9, (236, 166)),
    ((900, 397), (37, 90), 1.0, 0.8, 1.05, (40, 19)),
    ((100, 37), (224, 224), 1.0, 0.0, 0.9, (236, 79)),
    ((642, 876), (256, 192), 1.0, 0.93, 0.9, (154, 189)),
    ((345, 699), (224, 224), 1.0, 0.93, 1.05, (112, 238)),
    ((586, 583), (224, 224), 0.3, 0.93, 0.0, (233, 232)),
    ((274, 292), (224, 224), 0.0, 0.8, 1.05, (244, 273)),
    ((155, 21), (256, 192), 1.0, 0.8, 0.0, (286, 39)),
    ((47, 387), (37, 90), 0.3, 0.8, 1.05, (24, 203)),
    ((318, 8), (224, 224), 0.0, 0.93, 1.05, (9011, 238)),
    ((160, 707), (224, 224), 1.0, 0.8, 0.9, (60, 238)),
    ((533, 396), (37, 90), 0.3, 0.93, 1.05, (73, 57)),
    ((650, 738), (37, 90), 0.0, 0.8, 0.9, (93, 95)),
    ((426, 594), (256, 192), 0.0, 0.8, 1.05, (279, 409)),
    ((362, 696), (256, 192), 0.3, 0.93, 0.9, (190, 330)),
    ((379, 258), (37, 90), 1.0, 0.8, 1.05, (40, 29)),
    ((865, 610), (256, 192), 1.0, 0.8, 0.0, (286, 202)),
    ((583, 701), (37, 90), 0.0, 0.8, 1.05, (82, 103)),
    ((446, 666), (37, 90), 0.0, 0.0, 1.05, (59, 92)),
    ((854, 230), (256, 192), 0.0, 0.0, 0.9, (751, 182)),
    ((583, 462), (256, 192), 0.0, 0.0, 0.0, (256, 203)),
    ((543, 196), (256, 192), 0.3, 0.0, 0.9, (424, 138)),
    ((88, 826), (37, 90), 1.0, 0.93, 0.0, (10, 93)),
    ((871, 278), (256, 192), 1.0, 0.93, 0.9, (280, 80)),
    ((205, 5), (256, 192), 0.3, 0.93, 0.9, (867, 19)),
    ((468, 857), (37, 90), 0.3, 0.93, 0.9, (49, 81)),
    ((294, 123), (224, 224), 0.0, 0.0, 1.05, (523, 230)),
    ((441, 591), (224, 224), 0.0, 0.8, 1.05, (244, 344)),
    ((550, 424), (224, 224), 0.3, 0.0, 0.9, (281, 195)),
    ((554, 489), (224, 224), 1.0, 0.0, 0.0, (224, 198)),
    ((126, 548), (224, 224), 0.0, 0.0, 0.9, (236, 924)),
    ((844, 8), (256, 192), 0.3, 0.93, 0.9, (906, 8)),
    ((434, 53), (256, 192), 1.0, 0.0, 0.0, (256, 31)),
    ((794, 130), (224, 224), 0.0, 0.0, 0.0, (1368, 224)),
    ((495, 34), (37, 90), 0.0, 0.93, 1.05, (1326, 96)),
    ((399, 601), (256, 192), 1.0, 0.8, 0.0, (143, 215)),
];

fn resized(steps: &[Step]) -> (u32, u32) {
    match steps {
        [Step::Resize { size, .. }] => (size.height, size.width),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sizes_that_keep_the_ratio_are_timms() {
    for (image, target, longest, scale, aspect, want) in SIZES {
        let op = ResizeKeepRatio {
            longest: *longest,
            scale_p: f64::from(*scale > 0.0),
            scale: Span(scale.max(0.01), scale.max(0.01)),
            aspect_p: f64::from(*aspect > 0.0),
            ratio: Span(aspect.max(0.01), aspect.max(0.01)),
            ..ResizeKeepRatio::new(*target)
        };
        let (height, width) = resized(&levels(op, *image)[0]);
        // libm's logarithm may differ in the last bit, which may move a half.
        let near = |a: u32, b: u32| {
            if *aspect > 0.0 {
                a.abs_diff(b) <= 1
            } else {
                a == b
            }
        };
        let is_timms = near(height, want.0) && near(width, want.1);
        assert!(
            is_timms,
            "{height} x {width}, not {want:?}: {op:?} of {image:?}"
        );
    }
}

#[test]
fn scales_stretches_and_filters_are_drawn_as_often_as_in_timm() {
    let op = ResizeKeepRatio {
        scale_p: 0.5,
        scale: Span(0.8, 0.9),
        interpolation_or: Some(InterpolationMode::Bicubic),
        ..ResizeKeepRatio::new(40_000)
    };
    let all = levels(op, SQUARE);
    let sides: Vec<_> = all.iter().map(|steps| resized(steps).0).collect();
    let scaled = sides.iter().filter(|side| **side != 40_000);
    assert_share(scaled.clone().count(), POSITIONS, 0.5, "scales");
    let shares = scaled.map(|side| (40_000.0 / f64::from(*side)).powi(2));
    assert_uniform_but(1e-3, shares, (0.8, 0.9), "scale");
    let is_cubic = |steps: &&Vec<Step>| {
        matches!(
            steps[0],
            Step::Resize {
                interpolation: InterpolationMode::Bicubic,
                ..
            }
        )
    };
    assert_share(
        all.iter().filter(is_cubic).count(),
        POSITIONS,
        0.5,
        "filters",
    );

    let op = ResizeKeepRatio {
        aspect_p: 1.0,
        ratio: Span(0.5, 2.0),
        ..ResizeKeepRatio::new(20_000)
    };
    let shapes = levels(op, SQUARE).into_iter().map(|steps| {
        let (height, width) = resized(&steps);
        (f64::from(width) / f64::from(height)).log2()
    });
    assert_uniform_but(1e-3, shapes, (-1.0, 1.0), "stretch");

    let op = RandomResizedCrop {
        interpolation_or: Some(InterpolationMode::Bicubic),
        ..RandomResizedCrop::new(8)
    };
    let cubic = levels(op, SQUARE);
    let is_cubic = |steps: &&Vec<Step>| {
        matches!(
            steps[1],
            Step::Resize {
                interpolation: InterpolationMode::Bicubic,
                ..
            }
        )
    };
    assert_share(
        cubic.iter().filter(is_cubic).count(),
        POSITIONS,
        0.5,
        "filters of crops",
    );
    // The boxes are those without a second filter.
    assert_eq!(
        crops(&cubic),
        crops(&levels(RandomResizedCrop::new(8), SQUARE))
    );
}

#[test]
fn borders_are_removed_and_added_as_in_timm() {
    let trimmed = levels(TrimBorder { pixels: 3 }, (20, 30)).swap_remove(0);
    let rect = PixelRect {
        top: 3,
        left: 3,
        width: 24,
        height: 14,
    };
    assert_eq!(trimmed, [Step::Crop(rect)]);

    let op = CenterCropOrPad {
        padding_mode: PaddingMode::Reflect,
        ..CenterCropOrPad::new((10, 9))
    };
    let steps = levels(op, (7, 20)).swap_remove(0);
    let rect = PixelRect {
        top: 0,
        left: 6,
        width: 9,
        height: 7,
    };
    let padding = Padding {
        top: 1,
        bottom: 2,
        ..Padding::default()
    };
    let pad = Step::Pad {
        padding,
        mode: PaddingMode::Reflect,
        fill: [0.0; 3],
    };
    assert_eq!(steps, [Step::Crop(rect), pad]);
}
