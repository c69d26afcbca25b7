//! The box that `crop_with_padding` keeps, and the borders of `pad_to` and of a centre crop by a
//! ratio.

use super::*;
use crate::recipe::random::{LowestDraws, OneStream};
use crate::recipe::{CenterCrop, CropWithPadding, LengthRounding, PadAnchor, PadTo, PerChannel};

fn drawn(op: impl Into<Op>) -> ProgramOp {
    ProgramOp {
        op: op.into(),
        stream: 0,
        known: PixelState::after_decode(ColorOrder::Rgb),
    }
}

/// The box that no step fills. Every other pixel is filled exactly once.
fn kept(steps: &[OpStep], (height, width): HeightWidth) -> PixelRect {
    let mut filled = vec![0u32; (height * width) as usize];
    for step in steps {
        let Step::Erase { rect, with, .. } = step.step else {
            panic!("{step:?}")
        };
        assert_eq!(with, BoxFill::Value([1.0, 2.0, 3.0]));
        for y in rect.top..rect.top + rect.height {
            for x in rect.left..rect.left + rect.width {
                filled[(y * width + x) as usize] += 1;
            }
        }
    }
    assert!(filled.iter().all(|n| *n <= 1), "{steps:?}");
    let at = |i: usize| (i as u32 % width, i as u32 / width);
    let open: Vec<_> = (0..filled.len())
        .filter(|i| filled[*i] == 0)
        .map(at)
        .collect();
    let ends = |of: fn(&(u32, u32)) -> u32| {
        let all = open.iter().map(of);
        (all.clone().min().unwrap(), all.max().unwrap())
    };
    let ((left, right), (top, bottom)) = (ends(|p| p.0), ends(|p| p.1));
    let (width, height) = (right - left + 1, bottom - top + 1);
    assert_eq!(open.len() as u32, width * height, "{steps:?}");
    PixelRect {
        left,
        top,
        width,
        height,
    }
}

#[test]
fn the_kept_box_is_that_of_a_random_resized_crop() {
    let spans = [
        (Span(0.08, 1.0), Span(0.75, 4.0 / 3.0)),
        (Span(0.001, 0.05), Span(0.2, 5.0)),
        (Span(1.0, 1.0), Span(3.0, 3.0)),
    ];
    let mut boxes = BTreeSet::new();
    for size in [(13, 17), (1, 1), (2, 40), (30, 9)] {
        for (scale, ratio) in spans {
            let keep = drawn(CropWithPadding {
                p: 1.0,
                scale,
                ratio,
                value: PerChannel([1.0, 2.0, 3.0]),
            });
            let crop = drawn(RandomResizedCrop {
                scale,
                ratio,
                ..RandomResizedCrop::new(5)
            });
            for position in 0..300 {
                let random = PositionRandom::new(5, 1, position);
                let [mut steps, mut crops] = [const { Vec::new() }; 2];
                let becomes =
                    keep.draw(0, (&DrawnPicture::of_size(size), size), &random, &mut steps);
                assert_eq!(becomes.unwrap(), size);
                // The first number decides whether it runs.
                let mut rest = random;
                rest.next_f64();
                let rest = OneStream::new(rest);
                crop.draw(0, (&DrawnPicture::of_size(size), size), &rest, &mut crops)
                    .unwrap();
                let Step::Crop(want) = crops[0].step else {
                    panic!("{crops:?}")
                };
                assert_eq!(kept(&steps, size), want, "{size:?}");
                boxes.insert((want.left, want.top, want.width, want.height));
            }
        }
    }
    assert!(boxes.len() > 500, "only {} boxes", boxes.len());
}

#[test]
fn a_box_is_kept_with_its_probability() {
    for p in [0.0, 0.25, 1.0] {
        let op = CropWithPadding {
            p,
            scale: Span(0.1, 0.2),
            ..CropWithPadding::default()
        };
        let all = levels(op, SQUARE);
        let happened = all.iter().filter(|steps| !steps.is_empty()).count();
        assert_share(happened, POSITIONS, p, "keeping a box");
    }
}

/// Left, top, right, bottom.
fn padding(op: PadTo, size: HeightWidth) -> Option<[u32; 4]> {
    let mut steps = Vec::new();
    let becomes = drawn(op)
        .draw(
            0,
            (&DrawnPicture::of_size(size), size),
            &LowestDraws,
            &mut steps,
        )
        .ok()?;
    let Step::Pad { padding: p, .. } = steps[0].step else {
        panic!("{steps:?}")
    };
    let sum = (size.0 + p.top + p.bottom, size.1 + p.left + p.right);
    assert_eq!(becomes, sum);
    assert_eq!(becomes, op.output(size));
    Some([p.left, p.top, p.right, p.bottom])
}

#[test]
fn pictures_lie_where_their_anchor_says() {
    let at = |anchor| PadTo {
        anchor,
        ..PadTo::size((20, 31))
    };
    let size = (13, 20);
    assert_eq!(padding(at(PadAnchor::TopLeft), size), Some([0, 0, 11, 7]));
    assert_eq!(padding(at(PadAnchor::Center), size), Some([5, 3, 6, 4]));
    assert_eq!(
        padding(at(PadAnchor::BottomRight), size),
        Some([11, 7, 0, 0])
    );
    let offset = |left, top| PadTo {
        offset: Some([left, top]),
        ..PadTo::size((20, 31))
    };
    assert_eq!(padding(offset(2, 7), size), Some([2, 7, 9, 0]));
    assert_eq!(padding(offset(2, 8), size), None);
    assert_eq!(padding(offset(12, 0), size), None);
    // An image with the right size stays unchanged.
    assert_eq!(padding(offset(12, 8), (20, 31)), Some([0; 4]));
    // A larger image does not fit.
    assert_eq!(padding(at(PadAnchor::Center), (21, 20)), None);
    assert_eq!(padding(at(PadAnchor::Center), (13, 32)), None);
}

#[test]
fn sides_become_multiples() {
    let op = PadTo::multiple_of((8, 32));
    assert_eq!(padding(op, (13, 20)), Some([0, 0, 12, 3]));
    assert_eq!(padding(op, (16, 64)), Some([0; 4]));
    assert_eq!(op.output((1, 33)), (8, 64));
    // A header may claim any size.
    assert_eq!(op.output((u32::MAX, 33)), (u32::MAX, 64));
}

#[test]
fn a_part_of_the_shorter_side_is_cut_to_whole_pixels() {
    let op = |ratio, rounding| CenterCrop {
        rounding,
        ..CenterCrop::at_ratio(ratio)
    };
    for (ratio, size, side) in [
        (0.875, (256, 300), 224),
        (0.875, (333, 500), 291),
        (224.0 / 254.0, (500, 333), 293),
        (1.0, (7, 9), 7),
        (0.01, (7, 9), 1),
    ] {
        for rounding in [
            LengthRounding::Down,
            LengthRounding::Nearest,
            LengthRounding::Up,
        ] {
            let mut steps = Vec::new();
            let drawn = drawn(op(ratio, rounding));
            let becomes = drawn
                .draw(
                    0,
                    (&DrawnPicture::of_size(size), size),
                    &LowestDraws,
                    &mut steps,
                )
                .unwrap();
            assert_eq!(becomes, (side, side));
            let Step::Crop(rect) = steps[0].step else {
                panic!("{steps:?}")
            };
            assert_eq!((rect.height, rect.width), (side, side));
            let middle = |all: u32| match rounding {
                LengthRounding::Down | LengthRounding::Detr => (all - side) / 2,
                LengthRounding::Up => (all - side).div_ceil(2),
                LengthRounding::Nearest => (f64::from(all - side) / 2.0).round_ties_even() as u32,
            };
            assert_eq!((rect.top, rect.left), (middle(size.0), middle(size.1)));
        }
    }
}

/// Where the image's first pixel lies in the row (or the row's in the image), and how much stays.
/// Computed by torchvision 0.29's `center_crop` on images with numbered pixels. Columns: height and
/// width of the image and of the row; left, top, width, height of the part that stays; left, top,
/// right, bottom of the border.
#[test]
fn centre_crops_pad_as_torchvision_does() {
    type Case = (HeightWidth, HeightWidth, [u32; 4], Option<[u32; 4]>);
    let cases: [Case; 8] = [
        ((7, 9), (10, 12), [0, 0, 9, 7], Some([1, 1, 2, 2])),
        ((7, 9), (4, 12), [0, 2, 9, 4], Some([1, 0, 2, 0])),
        ((7, 9), (8, 4), [2, 0, 4, 7], Some([0, 0, 0, 1])),
        ((5, 8), (4, 9), [0, 0, 8, 4], Some([0, 0, 1, 0])),
        ((7, 8), (4, 9), [0, 2, 8, 4], Some([0, 0, 1, 0])),
        ((7, 9), (7, 9), [0, 0, 9, 7], None),
        ((7, 9), (4, 4), [2, 2, 4, 4], None),
        ((1, 1), (4, 3), [0, 0, 1, 1], Some([1, 1, 1, 2])),
    ];
    for (picture, size, part, border) in cases {
        let mut steps = Vec::new();
        let drawn = drawn(CenterCrop::new(size));
        let becomes = drawn
            .draw(
                0,
                (&DrawnPicture::of_size(picture), picture),
                &LowestDraws,
                &mut steps,
            )
            .unwrap();
        assert_eq!(becomes, size);
        let [left, top, width, height] = part;
        let mut want = vec![Step::Crop(PixelRect {
            left,
            top,
            width,
            height,
        })];
        want.extend(border.map(|[left, top, right, bottom]| Step::Pad {
            padding: Padding {
                left,
                top,
                right,
                bottom,
            },
            mode: PaddingMode::Constant,
            fill: [0.0; 3],
        }));
        let steps: Vec<Step> = steps.into_iter().map(|s| s.step).collect();
        assert_eq!(steps, want, "{picture:?} to {size:?}");
    }
}

#[test]
fn centre_crops_without_padding_refuse_what_is_smaller() {
    let op = CenterCrop {
        pad_if_needed: false,
        ..CenterCrop::new(8)
    };
    let fault = drawn(op).draw(
        0,
        (&DrawnPicture::of_size((7, 9)), (7, 9)),
        &LowestDraws,
        &mut Vec::new(),
    );
    let reason = fault.unwrap_err().reason;
    assert!(
        reason.ends_with("of it: use a resize before it"),
        "{reason}"
    );
}

/// If the image always fits, only a crop is left, which devices support.
#[test]
fn a_centre_crop_that_surely_fits_has_no_border() {
    let parts = |size| {
        let recipe = Recipe::new("r").then(Resize::shorter(64));
        let program = SampleProgram::compile(&recipe.then(CenterCrop::new(size))).unwrap();
        let [_, order, _] = program.units();
        order.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(parts(64), ["resize", "center_crop"]);
    let with_border = ["resize", "center_crop", "center_crop (its padding)"];
    assert_eq!(parts(65), with_border);
}
