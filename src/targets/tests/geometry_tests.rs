//! Laws of the geometry, over random cases.

use super::{
    CaseNumbers, affine, crop, elastic, pad, perspective, resize, rotate, size, tensor_affine,
};
use crate::recipe::{RotationStyle, Size, Step};
use crate::targets::{PointMatrix, SampleMotion, StepMotion, corners_of, hull_of};

const CASES: u64 = 10_000;

fn picture(numbers: &mut CaseNumbers) -> Size {
    size(numbers.whole(1, 3000), numbers.whole(1, 3000))
}

fn point(numbers: &mut CaseNumbers, within: Size) -> [f64; 2] {
    [
        numbers.between(-10.0, f64::from(within.width) + 10.0),
        numbers.between(-10.0, f64::from(within.height) + 10.0),
    ]
}

fn near(a: [f64; 2], b: [f64; 2], within: f64) -> bool {
    (a[0] - b[0]).abs() < within && (a[1] - b[1]).abs() < within
}

/// A step with a matrix.
fn any_step(numbers: &mut CaseNumbers, of: Size) -> Step {
    let (w, h) = (of.width, of.height);
    match numbers.whole(0, 9) {
        0 => {
            let (cw, ch) = (numbers.whole(1, w), numbers.whole(1, h));
            crop(numbers.whole(0, w - cw), numbers.whole(0, h - ch), cw, ch)
        }
        1 => pad(
            numbers.whole(0, 50),
            numbers.whole(0, 50),
            numbers.whole(0, 50),
            numbers.whole(0, 50),
        ),
        2 => resize(numbers.whole(1, 2000), numbers.whole(1, 2000)),
        3 => Step::Mirror,
        4 => Step::UpsideDown,
        5 => Step::Turn(numbers.whole(1, 3) as u8),
        6 => {
            let style = match numbers.whole(0, 1) {
                0 => RotationStyle::Tensor,
                _ => RotationStyle::Opencv,
            };
            rotate(numbers.between(-360.0, 360.0), of, style)
        }
        7 => affine(invertible(numbers)),
        8 => tensor_affine(invertible(numbers)),
        _ => {
            let [a, b, c, d, e, f] = invertible(numbers);
            // Small enough that the horizon is far away.
            let mut tilt = || numbers.between(-1e-5, 1e-5);
            perspective([a, b, c, d, e, f, tilt(), tilt()])
        }
    }
}

fn invertible(numbers: &mut CaseNumbers) -> [f64; 6] {
    let mut part = |low, high| numbers.between(low, high);
    [
        part(0.5, 1.5),
        part(-0.4, 0.4),
        part(-50.0, 50.0),
        part(-0.4, 0.4),
        part(0.5, 1.5),
        part(-50.0, 50.0),
    ]
}

#[test]
fn two_flips_are_none() {
    let mut numbers = CaseNumbers::new(1);
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let at = point(&mut numbers, of);
        let turn = numbers.whole(1, 3) as u8;
        for steps in [
            [Step::Mirror, Step::Mirror],
            [Step::UpsideDown, Step::UpsideDown],
            [Step::Turn(turn), Step::Turn(4 - turn)],
        ] {
            let motion = SampleMotion::of(of, steps.iter().enumerate());
            assert!(near(motion.path().map(at), at, 1e-9), "{steps:?}");
            assert_eq!(motion.output(), of);
        }
        // Two flips are half a turn.
        let flips = SampleMotion::of(of, [(0, &Step::Mirror), (1, &Step::UpsideDown)]);
        let turn = SampleMotion::of(of, [(0, &Step::Turn(2))]);
        assert!(near(flips.path().map(at), turn.path().map(at), 1e-9));
        assert!(!flips.is_mirrored());
    }
}

#[test]
fn a_crop_of_a_crop_is_one_crop() {
    let mut numbers = CaseNumbers::new(2);
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let (w, h) = (numbers.whole(1, of.width), numbers.whole(1, of.height));
        let (left, top) = (
            numbers.whole(0, of.width - w),
            numbers.whole(0, of.height - h),
        );
        let (w2, h2) = (numbers.whole(1, w), numbers.whole(1, h));
        let (left2, top2) = (numbers.whole(0, w - w2), numbers.whole(0, h - h2));
        let steps = [crop(left, top, w, h), crop(left2, top2, w2, h2)];
        let two = SampleMotion::of(of, steps.iter().enumerate());
        let one = crop(left + left2, top + top2, w2, h2);
        let one = SampleMotion::of(of, [(0, &one)]);
        assert_eq!(two.output(), one.output());
        let at = point(&mut numbers, of);
        assert_eq!(two.path().map(at), one.path().map(at));
    }
}

#[test]
fn areas_grow_by_the_determinant() {
    let mut numbers = CaseNumbers::new(4);
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let step = affine(invertible(&mut numbers));
        let matrix = *StepMotion::of(0, &step, of).matrix().unwrap();
        let [x, y] = point(&mut numbers, of);
        let (w, h) = (numbers.between(1.0, 90.0), numbers.between(1.0, 90.0));
        let corners = corners_of([x, y, x + w, y + h]).map(|at| matrix.map(at));
        // Twice the area, by the outline.
        let twice: f64 = (0..4)
            .map(|i| {
                let ([ax, ay], [bx, by]) = (corners[i], corners[(i + 1) % 4]);
                ax * by - bx * ay
            })
            .sum();
        let wanted = w * h * matrix.area_factor([x, y]);
        assert!((twice / 2.0 - wanted).abs() < 1e-6 * wanted.abs().max(1.0) * 1e3);
        let [x0, y0, x1, y1] = hull_of(corners);
        assert!((x1 - x0) * (y1 - y0) >= wanted.abs() * (1.0 - 1e-9));
    }
}

#[test]
fn one_matrix_is_all_steps_in_their_order() {
    let mut numbers = CaseNumbers::new(5);
    let mut orders = 0;
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let mut motion = SampleMotion::new(of);
        let mut steps = Vec::new();
        for op in 0..numbers.whole(1, 6) {
            let step = any_step(&mut numbers, motion.output());
            motion.push(op as usize, &step);
            steps.push(step);
        }
        let at = point(&mut numbers, of);
        let walked = (motion.steps().iter()).fold(at, |at, step| step.matrix().unwrap().map(at));
        let once = motion.matrix().unwrap().map(at);
        let scale = walked[0].abs().max(walked[1].abs()).max(1.0);
        if walked[0].is_finite() && once[0].is_finite() && scale < 1e7 {
            assert!(
                near(walked, once, 1e-7 * scale),
                "{steps:?}: {walked:?} {once:?}"
            );
            assert_eq!(once, motion.path().map(at));
            let growth = motion.path().area_factor(at);
            assert_eq!(growth, motion.matrix().unwrap().area_factor(at));
        }
        // Sizes follow each other, and the order counts.
        for pair in motion.steps().windows(2) {
            assert_eq!(pair[0].after, pair[1].before);
        }
        let back = SampleMotion::of(of, steps.iter().rev().enumerate());
        if steps.len() > 1 && !near(back.path().map(at), once, 1e-3) {
            orders += 1;
        }
    }
    assert!(orders > CASES / 2, "{orders}");
}

#[test]
fn an_inverse_leads_back() {
    let mut numbers = CaseNumbers::new(6);
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let step = any_step(&mut numbers, of);
        let matrix = *StepMotion::of(0, &step, of).matrix().unwrap();
        let inverse = matrix.inverse().unwrap();
        let at = point(&mut numbers, of);
        let back = inverse.map(matrix.map(at));
        assert!(near(back, at, 1e-6), "{step:?}: {at:?} {back:?}");
        let one = matrix.then(&inverse);
        let off = |row: usize, column: usize| {
            (one.0[row][column] - PointMatrix::IDENTITY.0[row][column]).abs()
        };
        assert!((0..9).all(|i| off(i / 3, i % 3) < 1e-6));
    }
}

#[test]
fn a_displaced_point_is_shown_where_it_goes() {
    let mut numbers = CaseNumbers::new(7);
    for key in 0..40 {
        let of = size(numbers.whole(9, 60), numbers.whole(9, 60));
        let step = elastic(key, [60.0, 40.0], [5.0, 4.0]);
        let map = StepMotion::of(0, &step, of).displacement().unwrap();
        for _ in 0..250 {
            let at = [
                numbers.between(3.0, f64::from(of.width) - 3.0),
                numbers.between(3.0, f64::from(of.height) - 3.0),
            ];
            let to = map.output_of(at);
            assert!(near(map.source_of(to), at, 1e-6), "{at:?} {to:?}");
        }
    }
}

/// Where crops are boxes, the box that a crop shows is what the inverse makes of its frame.
#[test]
fn boxes_of_crops_are_those_of_the_map() {
    use crate::decode_plan::CropGeometry;
    use crate::recipe::steps::OpStep;

    let mut numbers = CaseNumbers::new(8);
    for _ in 0..CASES {
        let of = picture(&mut numbers);
        let mut motion = SampleMotion::new(of);
        let mut steps = Vec::new();
        for op in 0..numbers.whole(1, 6) as usize {
            let step = loop {
                let step = any_step(&mut numbers, motion.output());
                if !matches!(step, Step::Rotate { .. } | Step::Augment(_)) {
                    break step;
                }
            };
            motion.push(op, &step);
            steps.push(OpStep::new(op, step));
        }
        let frame = motion.output();
        let frame = [0.0, 0.0, f64::from(frame.width), f64::from(frame.height)];
        let inverse = motion.matrix().unwrap().inverse().unwrap();
        let shown = hull_of(corners_of(frame).map(|at| inverse.map(at)));
        let bounds = CropGeometry::of((of.height, of.width), &steps).bounds;
        let scale = shown.iter().fold(1.0f64, |most, v| most.max(v.abs()));
        for (bound, shown) in bounds.iter().zip(shown) {
            let off = (f64::from(*bound) - shown).abs();
            assert!(off < 1e-5 * scale, "{steps:?}: {bounds:?} {shown:?}");
        }
    }
}
