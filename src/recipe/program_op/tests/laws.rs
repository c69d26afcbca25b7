//! Compares roundings, the bounded crop and erasing with tables made by
//! `scripts/op_goldens/laws.py`, and with their distributions.

use serde::Deserialize;

use super::*;
use crate::recipe::OneStream;
use crate::recipe::{AspectDistribution, BoundedResizedCrop, CenterCrop, LengthRounding};

/// Height, width.
type Sides = (u32, u32);
/// Left, top, width, height.
type Table = (u32, u32, u32, u32);

/// Lowest and highest.
type Ends = (f64, f64);
/// Size, picture, top and left to the nearest, and cut.
type Center = (Sides, Sides, Sides, Sides);
/// Picture, scale, ratio, logarithm, numbers, box.
type Bounded = (Sides, Ends, Ends, bool, Vec<u32>, Table);
/// The same with attempts, and perhaps no box.
type Erasings = (Sides, Ends, Ends, bool, u32, Vec<u32>, Option<Table>);

#[derive(Deserialize)]
struct Cases {
    shorter: Vec<(u32, Sides, Sides)>,
    longer: Vec<(u32, Sides, Sides)>,
    center: Vec<Center>,
    bounded: Vec<Bounded>,
    erasing: Vec<Erasings>,
}

fn cases() -> Cases {
    let text = crate::tests_support::golden("laws", "cases.json").unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// These numbers, then a panic.
struct Listed(std::vec::IntoIter<f64>);

impl Listed {
    fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        Self(numbers.into_iter().collect::<Vec<_>>().into_iter())
    }
}

impl UniformSource for Listed {
    fn next_f64(&mut self) -> f64 {
        self.0.next().expect("more numbers than the law takes")
    }
}

impl UniformSource for &mut Listed {
    fn next_f64(&mut self) -> f64 {
        (**self).next_f64()
    }
}

fn parts(numbers: &[u32]) -> impl Iterator<Item = f64> {
    numbers.iter().map(|n| f64::from(*n) / 65_536.0)
}

fn aspect(log: bool) -> AspectDistribution {
    match log {
        true => AspectDistribution::Log,
        false => AspectDistribution::Uniform,
    }
}

/// The first step with these numbers.
fn first(op: impl Into<Op>, size: Sides, random: &mut Listed) -> Option<Step> {
    let drawn = ProgramOp {
        op: op.into(),
        stream: 0,
        known: PixelState::after_decode(ColorOrder::Rgb),
    };
    let mut steps = Vec::new();
    drawn
        .draw(
            0,
            (&DrawnPicture::of_size(size), size),
            &OneStream::new(random),
            &mut steps,
        )
        .unwrap();
    steps.first().map(|s| s.step)
}

fn table(r: PixelRect) -> Table {
    (r.left, r.top, r.width, r.height)
}

#[test]
fn resizes_round_as_python_does() {
    let nearest = |resize| Resize {
        rounding: LengthRounding::Nearest,
        ..resize
    };
    let cases = cases();
    let mut other = 0;
    for (side, from, want) in &cases.shorter {
        assert_eq!(nearest(Resize::shorter(*side)).output(*from), *want);
        other += u32::from(Resize::shorter(*side).output(*from) != *want);
    }
    assert!(other > 20, "only {other} are not cut");
    for (side, from, want) in &cases.longer {
        assert_eq!(nearest(Resize::longer(*side)).output(*from), *want);
    }
    // The shorter side always has the requested length.
    for side in 1..300 {
        for short in 1..200 {
            let (h, w) = nearest(Resize::shorter(side)).output((short, short + 77));
            assert_eq!(h, side, "{short}");
            assert!(w >= side);
        }
    }
    let limited = nearest(Resize {
        max_size: Some(300),
        ..Resize::shorter(256)
    });
    assert_eq!(limited.output((480, 640)), (225, 300));
    assert_eq!(limited.output((375, 500)), (225, 300));
}

#[test]
fn limited_sides_are_those_of_detr() {
    let detr = Resize {
        max_size: Some(1333),
        rounding: LengthRounding::Detr,
        ..Resize::shorter(800)
    };
    // `get_size_with_aspect_ratio` of transformers 5.24.
    for (from, want) in [
        ((427, 640), (800, 1199)),
        ((640, 427), (1199, 800)),
        ((360, 640), (750, 1333)),
        ((640, 360), (1333, 750)),
        ((800, 1333), (800, 1333)),
        ((800, 1334), (799, 1333)),
        ((100, 2000), (67, 1333)),
        ((231, 498), (618, 1333)),
        ((2508, 28), (1333, 15)),
        ((500, 500), (800, 800)),
        // In floats the longer side loses a pixel.
        ((232, 601), (515, 1332)),
        ((601, 269), (1332, 597)),
        // Without a limit here: 400 x 1334, and a side of 0.
        ((400, 1334), (400, 1333)),
        ((1, 3000), (1, 1333)),
    ] {
        assert_eq!(detr.output(from), want, "{from:?}");
    }
    let down = Resize {
        rounding: LengthRounding::Down,
        ..detr
    };
    assert_eq!(down.output((360, 640)), (749, 1333));
}

#[test]
fn middles_are_rounded_or_cut() {
    let mut other = 0;
    for (size, picture, nearest, down) in cases().center {
        for (rounding, want) in [
            (LengthRounding::Nearest, nearest),
            (LengthRounding::Down, down),
        ] {
            let op = CenterCrop {
                rounding,
                ..CenterCrop::new(size)
            };
            let Some(Step::Crop(rect)) = first(op, picture, &mut Listed::of([])) else {
                panic!("no crop");
            };
            let want = (want.1, want.0, size.1, size.0);
            assert_eq!(table(rect), want, "{size:?} of {picture:?}");
        }
        other += u32::from(nearest != down);
    }
    assert!(other > 3, "only {other} differ");
}

#[test]
fn bounded_crops_are_those_of_their_law() {
    for (size, scale, ratio, log, numbers, want) in cases().bounded {
        let op = BoundedResizedCrop {
            scale: Span(scale.0, scale.1),
            ratio: Span(ratio.0, ratio.1),
            aspect: aspect(log),
            ..BoundedResizedCrop::new(32)
        };
        let mut random = Listed::of(parts(&numbers));
        let Some(Step::Crop(rect)) = first(op, size, &mut random) else {
            panic!("no crop");
        };
        assert_eq!(table(rect), want, "{op:?} of {size:?}");
        assert_eq!(random.0.len(), 0, "all four are drawn");
    }
}

#[test]
fn bounded_crops_lie_inside_whatever_the_size_and_the_ratio() {
    let most = 1.0 - f64::EPSILON / 2.0;
    let numbers = [0.0, 0.37, most];
    let ratios = [
        Span(0.75, 4.0 / 3.0),
        Span(1e-9, 1e9),
        Span(1e-300, 1e300),
        Span(f64::MIN_POSITIVE, f64::MAX / 2.0),
        Span(50.0, 60.0),
        Span(0.01, 0.02),
    ];
    for (width, height) in (1..=60).flat_map(|w| (1..=60).map(move |h| (w, h))) {
        for ratio in ratios {
            for log in [false, true] {
                for scale in [(1e-12, 1e-9), (0.08, 1.0), (1.0, 1.0)] {
                    for a in numbers {
                        for b in [0.0, most] {
                            let r = bounded_box(
                                width,
                                height,
                                scale,
                                (ratio.0, ratio.1),
                                aspect(log),
                                &mut Listed::of([a, b, most, most]),
                            );
                            assert!(
                                r.width >= 1
                                    && r.height >= 1
                                    && r.left + r.width == width
                                    && r.top + r.height == height,
                                "{r:?} of {width}x{height}, {ratio:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

fn bounded(scale: Span, ratio: Span, aspect: AspectDistribution) -> Vec<PixelRect> {
    let op = BoundedResizedCrop {
        scale,
        ratio,
        aspect,
        ..BoundedResizedCrop::new(224)
    };
    crops(&levels(op, SQUARE))
}

#[test]
fn areas_of_bounded_crops_are_uniform_up_to_what_their_ratio_allows() {
    let all = bounded(Span(0.08, 1.0), Span(1.0, 1.0), AspectDistribution::Uniform);
    assert_uniform_but(WHOLE, all.iter().map(area), (0.08, 1.0), "area");
    let all = bounded(Span(0.08, 1.0), Span(2.0, 2.0), AspectDistribution::Uniform);
    assert_uniform_but(WHOLE, all.iter().map(area), (0.08, 0.5), "of two squares");
    // No box has that much area: all are as large as possible.
    let all = bounded(Span(0.6, 1.0), Span(0.25, 0.25), AspectDistribution::Log);
    assert!(all.iter().all(|r| (r.width, r.height) == (1024, 4096)));
}

#[test]
fn aspects_of_bounded_crops_are_uniform_or_their_logarithms() {
    let (low, high) = (0.5, 3.0);
    let scale = Span(0.25, 0.25);
    let shape = |r: &PixelRect| f64::from(r.width) / f64::from(r.height);
    let all = bounded(scale, Span(low, high), AspectDistribution::Uniform);
    assert_uniform_but(WHOLE, all.iter().map(shape), (low, high), "width by height");
    let all = bounded(scale, Span(low, high), AspectDistribution::Log);
    let logs = all.iter().map(|r| shape(r).ln());
    assert_uniform_but(WHOLE, logs, (low.ln(), high.ln()), "its logarithm");
}

#[test]
fn bounded_crops_lie_anywhere() {
    let all = bounded(
        Span(0.25, 0.25),
        Span(1.0, 1.0),
        AspectDistribution::Uniform,
    );
    let tops = all.iter().map(|r| place(r.top, 2049));
    assert_uniform(tops, (0.0, 1.0), "top");
    let lefts = all.iter().map(|r| place(r.left, 2049));
    assert_uniform(lefts, (0.0, 1.0), "left");
    let both: Vec<_> = all
        .iter()
        .map(|r| (f64::from(r.top), f64::from(r.left)))
        .collect();
    assert_uncorrelated(&both, "top and left");
}

#[test]
fn erased_boxes_are_those_of_their_law() {
    let mut none = 0;
    for (size, scale, ratio, log, attempts, numbers, want) in cases().erasing {
        let op = RandomErasing {
            p: 1.0,
            scale: Span(scale.0, scale.1),
            ratio: Span(ratio.0, ratio.1),
            aspect: aspect(log),
            attempts,
            value: EraseFill::Value(1.0.into()),
        };
        // Drawn before the box: whether it erases, and the key of the noise.
        let numbers = [0.0, 0.0].into_iter().chain(parts(&numbers));
        let what = format!("{op:?} of {size:?}");
        let got = match first(op, size, &mut Listed::of(numbers)) {
            Some(Step::Erase { rect, .. }) => Some(table(rect)),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(got, want, "{what}");
        none += u32::from(want.is_none());
    }
    assert!((3..40).contains(&none), "{none} draw in vain");
}

#[test]
fn aspects_of_erased_boxes_may_be_uniform() {
    let (low, high) = (0.3, 1.0 / 0.3);
    let op = RandomErasing {
        p: 1.0,
        scale: Span(0.1, 0.1),
        ratio: Span(low, high),
        aspect: AspectDistribution::Uniform,
        value: EraseFill::Value(3.0.into()),
        ..RandomErasing::default()
    };
    let all = erased(op, ValueKind::Levels, SQUARE);
    let aspects = all
        .iter()
        .map(|(r, _)| f64::from(r.height) / f64::from(r.width));
    assert_uniform_but(WHOLE, aspects, (low, high), "height by width");
}

/// The first box that fits is used, whatever the number of attempts left.
#[test]
fn attempts_are_as_many_as_are_said() {
    let op = |attempts| RandomErasing {
        p: 1.0,
        scale: Span(0.5, 1.0),
        ratio: Span(0.3, 3.3),
        attempts,
        value: EraseFill::Value(3.0.into()),
        ..RandomErasing::default()
    };
    let boxes = |attempts| draws(op(attempts), ValueKind::Levels, (100, 100));
    let (one, ten, many) = (boxes(1), boxes(10), boxes(1000));
    let hits = |all: &[Vec<Step>]| all.iter().filter(|s| !s.is_empty()).count();
    assert!(hits(&one) < hits(&ten) && hits(&ten) < hits(&many));
    assert_eq!(hits(&many), many.len());
    // Each attempt fits with the same probability.
    let p = hits(&one) as f64 / one.len() as f64;
    assert_share(hits(&ten), POSITIONS, 1.0 - (1.0 - p).powi(10), "of ten");
    for (a, b) in one.iter().zip(&ten).filter(|(a, _)| !a.is_empty()) {
        assert_eq!(a, b);
    }
    assert_eq!(RandomErasing::default().attempts, 10);
    assert_eq!(RandomErasing::default().aspect, AspectDistribution::Log);
}
