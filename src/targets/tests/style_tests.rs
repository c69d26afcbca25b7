//! Rules in hand-made cases, and the objects that all styles share.

use super::{CaseNumbers, affine, crop, pad, resize, rotate, size};
use crate::recipe::{RotationStyle, Size, Step};
use crate::targets::{
    AlbumentationsRules, BoxFormat, Detectron2Rules, KeypointArray, KeypointSwap, PolygonArray,
    RotatedBoxes, RotatedFormat, SampleMotion, SampleObjects, TargetRules, TargetStyle,
    TorchvisionRules, UltralyticsRules, box_in_pixels, normalized_box, sanitize_boxes,
};

fn motion(of: Size, steps: &[Step]) -> SampleMotion {
    SampleMotion::of(of, steps.iter().enumerate())
}

fn boxes(boxes: &[[f64; 4]]) -> SampleObjects {
    SampleObjects {
        number: (0..boxes.len() as u32).collect(),
        boxes: boxes.to_vec(),
        ..SampleObjects::default()
    }
}

fn near(got: &[f64], want: &[f64]) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6)
}

#[test]
fn styles_have_the_names_of_their_libraries() {
    for style in TargetStyle::ALL {
        assert_eq!(TargetStyle::of_name(style.name()), Some(style));
    }
    assert_eq!(TargetStyle::of_name("Torchvision"), None);
}

#[test]
fn a_sample_without_objects_stays_without_objects() {
    let motion = motion(
        size(20, 30),
        &[Step::Mirror, crop(1, 2, 9, 8), resize(20, 20)],
    );
    for style in TargetStyle::ALL {
        let mut none = SampleObjects::default();
        let counts = style
            .rules()
            .move_objects(&motion, &mut none, None)
            .unwrap();
        assert_eq!((counts.total(), none), (0, SampleObjects::default()));
    }
}

#[test]
fn integers_are_truncated_and_minus_a_hundredth_is_not_sane() {
    let rules = TorchvisionRules {
        integers: true,
        ..TorchvisionRules::default()
    };
    let mut objects = boxes(&[[10.0, 10.0, 31.0, 31.0]]);
    let halved = motion(size(40, 40), &[resize(20, 20)]);
    let style = TargetRules::Torchvision(rules);
    style.move_objects(&halved, &mut objects, None).unwrap();
    assert_eq!(objects.boxes, [[5.0, 5.0, 15.0, 15.0]]);
    let rules = TorchvisionRules::default();
    let sane = |values| sanitize_boxes(&rules, &boxes(&[values]), size(20, 20), 1.0, 1.0);
    assert_eq!(sane([-0.01, 2.0, 9.0, 9.0]), [false]);
    assert_eq!(sane([0.0, 2.0, 20.0, 20.0]), [true]);
    assert_eq!(sane([0.0, 2.0, 20.1, 20.0]), [false]);
    assert_eq!(sane([3.0, 2.0, 3.9, 20.0]), [false]);
    assert_eq!(sane([f64::NAN, 2.0, 3.9, 20.0]), [false]);
}

#[test]
fn a_box_that_is_wholly_visible_passes_a_visibility_of_one() {
    let style = TargetRules::Albumentations(AlbumentationsRules {
        min_visibility: 1.0,
        ..AlbumentationsRules::default()
    });
    let mut objects = boxes(&[[5.0, 5.0, 9.0, 9.0], [0.0, 0.0, 4.0, 4.0]]);
    let cut = motion(size(20, 20), &[crop(2, 2, 15, 15)]);
    let counts = style.move_objects(&cut, &mut objects, None).unwrap();
    assert_eq!(objects.number, [0]);
    assert_eq!((counts.hidden, counts.total()), (1, 1));
}

/// The area is measured after the first operation, even if it drew nothing.
#[test]
fn operations_without_a_step_filter_too() {
    let style = TargetRules::Albumentations(AlbumentationsRules {
        min_area: 100.0,
        ..AlbumentationsRules::default()
    });
    let kept = |op: usize| {
        let mut objects = boxes(&[[1.0, 1.0, 9.0, 9.0]]);
        let larger = SampleMotion::of(size(20, 20), [(op, &resize(40, 40))]);
        style.move_objects(&larger, &mut objects, None).unwrap();
        objects.len()
    };
    assert_eq!((kept(0), kept(1)), (1, 0));
}

fn person() -> SampleObjects {
    SampleObjects {
        keypoints: KeypointArray {
            per_object: 3,
            points: vec![[4.0, 5.0], [10.0, 6.0], [0.0, 0.0]],
            visibility: vec![2, 1, 0],
        },
        ..boxes(&[[2.0, 3.0, 14.0, 12.0]])
    }
}

fn pair() -> KeypointSwap {
    KeypointSwap::new(vec![1, 0, 2]).unwrap()
}

#[test]
fn keypoints_flip_by_each_library() {
    let flip = motion(size(20, 30), &[Step::Mirror]);
    let moved = |style: TargetStyle| {
        let mut objects = person();
        let rules = style.rules();
        rules
            .move_objects(&flip, &mut objects, Some(&pair()))
            .unwrap();
        (objects.keypoints.points, objects.keypoints.visibility)
    };
    // W - 1 - x, never exchanged.
    for style in [TargetStyle::Torchvision, TargetStyle::Albumentations] {
        let (points, visibility) = moved(style);
        assert_eq!(points[..2], [[25.0, 5.0], [19.0, 6.0]], "{style:?}");
        assert_eq!(visibility, [2, 1, 0], "{style:?}");
    }
    // Half a pixel on load, then W - x, exchanged. What is not labelled is 0.
    let (points, visibility) = moved(TargetStyle::Detectron2);
    assert_eq!(points, [[19.5, 6.5], [25.5, 5.5], [0.0, 0.0]]);
    assert_eq!(visibility, [1, 2, 0]);
    // W - x, exchanged.
    let (points, visibility) = moved(TargetStyle::Ultralytics);
    assert_eq!(points, [[20.0, 6.0], [26.0, 5.0], [30.0, 0.0]]);
    assert_eq!(visibility, [1, 2, 0]);
}

#[test]
fn a_flip_without_partners_is_an_error() {
    let flip = motion(size(20, 30), &[Step::Mirror]);
    let still = motion(size(20, 30), &[crop(0, 0, 20, 20)]);
    for style in [TargetStyle::Detectron2, TargetStyle::Ultralytics] {
        let rules = style.rules();
        let fault = rules.move_objects(&flip, &mut person(), None).unwrap_err();
        assert!(
            fault.to_string().contains("the picture is flipped"),
            "{fault}"
        );
        rules.move_objects(&still, &mut person(), None).unwrap();
        // Objects without keypoints need none.
        let mut bare = boxes(&[[2.0, 3.0, 14.0, 12.0]]);
        rules.move_objects(&flip, &mut bare, None).unwrap();
        let other = KeypointSwap::new(vec![0]).unwrap();
        let fault = rules.move_objects(&flip, &mut person(), Some(&other));
        assert!(fault.unwrap_err().to_string().contains("objects have 3"));
    }
    for wrong in [vec![1, 2, 0], vec![5], vec![1, 1]] {
        assert!(KeypointSwap::new(wrong).is_err());
    }
}

#[test]
fn detectron2_clips_at_the_end_and_drops_what_is_empty() {
    let style = TargetRules::Detectron2(Detectron2Rules::default());
    let mut objects = boxes(&[
        [2.0, 3.0, 14.0, 12.0],
        [0.0, 0.0, 5.0, 5.0],
        [1.0, 1.0, 20.0, 9.0],
    ]);
    objects.crowd = vec![false, false, true];
    // The second box leaves the picture, and would be back after the pad.
    let steps = [crop(6, 6, 20, 10), pad(6, 6, 0, 0)];
    let counts = style.move_objects(&motion(size(20, 30), &steps), &mut objects, None);
    let counts = counts.unwrap();
    assert_eq!(
        objects.boxes,
        [[2.0, 3.0, 14.0, 12.0], [0.0, 0.0, 5.0, 5.0]]
    );
    assert_eq!((counts.crowd, counts.total()), (1, 1));
    let away = motion(size(20, 30), &[crop(6, 6, 20, 10)]);
    let counts = style.move_objects(&away, &mut objects, None).unwrap();
    assert_eq!((objects.number, counts.degenerate), (vec![0], 1));
    // The hull of a hull grows, where one rotation back would not.
    let turns = [30.0, -30.0].map(|d| rotate(d, size(200, 200), RotationStyle::Tensor));
    let mut objects = boxes(&[[90.0, 90.0, 110.0, 110.0]]);
    style
        .move_objects(&motion(size(200, 200), &turns), &mut objects, None)
        .unwrap();
    let [x0, _, x1, _] = objects.boxes[0];
    assert!(x1 - x0 > 30.0, "{x0} {x1}");
}

#[test]
fn keypoints_outside_lose_their_visibility() {
    let cut = motion(size(20, 30), &[crop(0, 0, 8, 20)]);
    for (style, points) in [
        (TargetStyle::Detectron2, [[4.5, 5.5], [0.0, 0.0]]),
        (TargetStyle::Ultralytics, [[4.0, 5.0], [8.0, 6.0]]),
        (TargetStyle::Albumentations, [[4.0, 5.0], [10.0, 6.0]]),
    ] {
        let mut objects = person();
        style
            .rules()
            .move_objects(&cut, &mut objects, None)
            .unwrap();
        assert_eq!(objects.keypoints.visibility, [2, 0, 0], "{style:?}");
        assert_eq!(objects.keypoints.points[..2], points, "{style:?}");
    }
}

#[test]
fn ultralytics_drops_small_hidden_and_long_boxes() {
    let rules = UltralyticsRules::default();
    let run = |rules: UltralyticsRules, values: [f64; 4], steps: &[Step]| {
        let mut objects = boxes(&[values]);
        let moved = motion(size(600, 600), steps);
        let style = TargetRules::Ultralytics(rules);
        let counts = style.move_objects(&moved, &mut objects, None).unwrap();
        (objects.boxes.first().copied(), counts)
    };
    let half = [resize(300, 300), crop(0, 0, 300, 300)];
    assert_eq!(run(rules, [0.0, 0.0, 4.0, 90.0], &half).1.small, 1);
    assert_eq!(run(rules, [0.0, 0.0, 4.2, 90.0], &half).1.total(), 0);
    let cut = [crop(95, 0, 300, 300)];
    assert_eq!(run(rules, [0.0, 0.0, 100.0, 100.0], &cut).1.hidden, 1);
    let (kept, _) = run(
        UltralyticsRules::with_polygons(),
        [0.0, 0.0, 100.0, 100.0],
        &cut,
    );
    assert_eq!(kept, Some([0.0, 0.0, 5.0, 100.0]));
    let whole = [crop(0, 0, 600, 600)];
    assert_eq!(run(rules, [0.0, 0.0, 500.0, 5.0], &whole).1.elongated, 1);
    assert_eq!(run(rules, [0.0, 0.0, 499.0, 5.0], &whole).1.total(), 0);
    // A letterbox and a flip drop only boxes without area.
    let boxed = [resize(300, 300), pad(0, 9, 0, 9), Step::Mirror];
    for (values, small) in [
        ([0.0, 0.0, 4.0, 90.0], 0),
        ([0.0, 0.0, 500.0, 5.0], 0),
        ([3.0, 3.0, 3.0, 90.0], 1),
    ] {
        let counts = run(rules, values, &boxed).1;
        assert_eq!((counts.small, counts.total()), (small, small), "{values:?}");
    }
    // A rotation changes the hull and no area.
    let turn = [rotate(45.0, size(600, 600), RotationStyle::Tensor)];
    let (kept, counts) = run(rules, [290.0, 290.0, 310.0, 310.0], &turn);
    let side = 20.0 * f64::sqrt(2.0) / 2.0;
    let hull = [300.0 - side, 300.0 - side, 300.0 + side, 300.0 + side];
    assert!(near(&kept.unwrap(), &hull) && counts.total() == 0);
}

#[test]
fn objects_that_no_output_shows_are_dropped() {
    let nowhere = motion(size(20, 30), &[affine([0.0; 6])]);
    for style in TargetStyle::ALL {
        let mut objects = person();
        let counts = style
            .rules()
            .move_objects(&nowhere, &mut objects, None)
            .unwrap();
        assert_eq!((objects.len(), counts.total()), (0, 1), "{style:?}");
        assert_eq!(objects.keypoints.points.len(), 0, "{style:?}");
        assert_eq!(counts.lost, 1, "{style:?}");
    }
}

fn everything() -> SampleObjects {
    let mut polygons = PolygonArray::default();
    let square = |by: f64| {
        [
            [by, by],
            [by + 4.0, by],
            [by + 4.0, by + 4.0],
            [by, by + 4.0],
        ]
    };
    let (a, b, c) = (square(1.0), square(6.0), square(12.0));
    polygons.push_object([&a[..], &b[..]]);
    polygons.push_object([]);
    polygons.push_object([&c[..]]);
    SampleObjects {
        number: vec![0, 1, 2],
        boxes: vec![
            [1.0, 1.0, 9.0, 9.0],
            [3.0, 3.0, 5.0, 5.0],
            [12.0, 12.0, 16.0, 16.0],
        ],
        box_format: BoxFormat::Xyxy,
        rotated: RotatedBoxes {
            format: Some(RotatedFormat::Cxcywhr),
            values: (0..3)
                .flat_map(|i| [f64::from(i), 1.0, 2.0, 3.0, 4.0])
                .collect(),
        },
        area: vec![1.0, 2.0, 3.0],
        crowd: vec![false, true, false],
        keypoints: KeypointArray {
            per_object: 2,
            points: (0..6).map(|i| [f64::from(i), 0.0]).collect(),
            visibility: vec![0, 1, 2, 0, 1, 2],
        },
        polygons,
    }
}

#[test]
fn dropping_an_object_drops_it_from_all_arrays() {
    let mut objects = everything();
    objects.check().unwrap();
    objects.retain(&[true, false, true]);
    objects.check().unwrap();
    assert_eq!(objects.number, [0, 2]);
    assert_eq!(objects.area, [1.0, 3.0]);
    assert_eq!(objects.crowd, [false, false]);
    assert_eq!(objects.rotated.values[5], 2.0);
    assert_eq!(objects.keypoints.visibility, [0, 1, 1, 2]);
    let rings: Vec<usize> = (0..2).map(|i| objects.polygons.rings(i).count()).collect();
    assert_eq!(rings, [2, 1]);
    assert_eq!(objects.polygons.rings(1).next().unwrap()[0], [12.0, 12.0]);
    assert_eq!(objects.polygons.rings(7).count(), 0);
    objects.retain(&[false, false]);
    objects.check().unwrap();
    assert!(objects.is_empty());
}

#[test]
fn arrays_of_other_lengths_are_refused() {
    type Damage = fn(&mut SampleObjects);
    let damages: [(&str, Damage); 8] = [
        ("boxes", |o| o.boxes.truncate(2)),
        ("area", |o| o.area.push(1.0)),
        ("crowd", |o| o.crowd.truncate(1)),
        ("rotated", |o| o.rotated.values.truncate(14)),
        ("keypoints", |o| o.keypoints.points.truncate(5)),
        ("visibility", |o| o.keypoints.visibility.truncate(1)),
        ("polygons", |o| o.polygons.object_ends[0] = 9),
        ("polygons", |o| o.polygons.points.truncate(3)),
    ];
    let still = motion(size(20, 30), &[]);
    for (field, damage) in damages {
        let mut objects = everything();
        damage(&mut objects);
        let rules = TargetStyle::Hf.rules();
        let fault = rules.move_objects(&still, &mut objects, None).unwrap_err();
        assert_eq!(fault.field, field, "{fault}");
    }
}

#[test]
fn polygons_and_rotated_boxes_go_through_the_one_map() {
    let steps = [Step::Mirror, crop(8, 1, 20, 18), resize(36, 40)];
    let moved = motion(size(20, 30), &steps);
    let path = moved.path();
    for style in TargetStyle::ALL {
        let mut objects = everything();
        let before = objects.polygons.rings(0).next().unwrap()[2];
        let swap = KeypointSwap::new(vec![1, 0]).unwrap();
        style
            .rules()
            .move_objects(&moved, &mut objects, Some(&swap))
            .unwrap();
        let after = objects.polygons.rings(0).next().unwrap()[2];
        assert_eq!(after, path.map(before), "{style:?}");
    }
}

#[test]
fn rotated_boxes_keep_their_sides_when_they_turn() {
    let mut numbers = CaseNumbers::new(21);
    for _ in 0..10_000 {
        let of = size(400, 400);
        let values = [
            numbers.between(150.0, 250.0),
            numbers.between(150.0, 250.0),
            numbers.between(5.0, 90.0),
            numbers.between(5.0, 90.0),
            numbers.between(-179.0, 179.0),
        ];
        let degrees = numbers.between(-180.0, 180.0);
        let turn = |steps: &[Step]| {
            let mut objects = SampleObjects {
                number: vec![0],
                rotated: RotatedBoxes {
                    format: Some(RotatedFormat::Cxcywhr),
                    values: values.to_vec(),
                },
                ..SampleObjects::default()
            };
            let rules = TargetStyle::Ultralytics.rules();
            rules
                .move_objects(&motion(of, steps), &mut objects, None)
                .unwrap();
            objects.rotated.values
        };
        let angle = |degrees: f64| degrees.rem_euclid(360.0);
        let turned = turn(&[rotate(degrees, of, RotationStyle::Tensor)]);
        assert!(
            (turned[2] - values[2]).abs() < 1e-3,
            "{values:?} {turned:?}"
        );
        assert!(
            (turned[3] - values[3]).abs() < 1e-3,
            "{values:?} {turned:?}"
        );
        let off = angle(turned[4] - values[4] - degrees);
        assert!(
            off.min(360.0 - off) < 1e-2,
            "{values:?} {degrees} {turned:?}"
        );
        // Flipped twice it is the same box.
        let same = turn(&[Step::Mirror, Step::Mirror]);
        let off = angle(same[4] - values[4]);
        assert!(off.min(360.0 - off) < 1e-2, "{values:?} {same:?}");
        assert!((same[0] - values[0]).abs() < 1e-3 && (same[3] - values[3]).abs() < 1e-3);
        // Flipped once its angle is the other way round.
        let flipped = turn(&[Step::Mirror]);
        let off = angle(flipped[4] + values[4]);
        assert!(
            off.min((off - 180.0).abs()).min(360.0 - off) < 1e-2,
            "{values:?} {flipped:?}"
        );
        assert!((flipped[0] - (400.0 - values[0])).abs() < 1e-3);
    }
}

#[test]
fn formats_of_boxes_lead_back() {
    let mut numbers = CaseNumbers::new(22);
    for _ in 0..10_000 {
        let (x, y) = (numbers.between(-50.0, 900.0), numbers.between(-50.0, 900.0));
        let values = [
            x,
            y,
            x + numbers.between(0.0, 90.0),
            y + numbers.between(0.0, 90.0),
        ];
        for format in [BoxFormat::Xyxy, BoxFormat::Xywh, BoxFormat::Cxcywh] {
            assert!(near(&format.to_xyxy(format.from_xyxy(values)), &values));
        }
        let of = size(numbers.whole(1, 900), numbers.whole(1, 900));
        assert!(near(
            &box_in_pixels(normalized_box(values, of), of),
            &values
        ));
    }
    assert_eq!(
        BoxFormat::Cxcywh.from_xyxy([2.0, 4.0, 6.0, 10.0]),
        [4.0, 7.0, 4.0, 6.0]
    );
    assert_eq!(
        BoxFormat::Xywh.from_xyxy([2.0, 4.0, 6.0, 10.0]),
        [2.0, 4.0, 4.0, 6.0]
    );
}

/// Every style keeps a box that every step shows wholly, and has it in the same place.
#[test]
fn styles_agree_on_boxes_that_stay_inside() {
    let mut numbers = CaseNumbers::new(23);
    for _ in 0..10_000 {
        let of = size(numbers.whole(120, 300), numbers.whole(120, 300));
        let values = [40.5, 41.25, 70.75, 80.5];
        let steps = [
            crop(numbers.whole(0, 40), numbers.whole(0, 41), 80, 80),
            match numbers.whole(0, 3) {
                0 => Step::Mirror,
                1 => Step::UpsideDown,
                2 => Step::Turn(numbers.whole(1, 3) as u8),
                _ => pad(numbers.whole(0, 9), 1, 2, 3),
            },
            resize(numbers.whole(60, 300), numbers.whole(60, 300)),
        ];
        let moved = motion(of, &steps);
        let inside = moved.steps()[0].matrix().unwrap();
        let shows = crate::targets::corners_of(values)
            .map(|at| inside.map(at))
            .iter()
            .flatten()
            .all(|v| (0.0..=80.0).contains(v));
        if !shows {
            continue;
        }
        let all = TargetStyle::ALL.map(|style| {
            let mut objects = boxes(&[values]);
            style
                .rules()
                .move_objects(&moved, &mut objects, None)
                .unwrap();
            objects.boxes
        });
        for other in &all[1..] {
            assert_eq!(other.len(), 1);
            let off = (0..4).map(|i| (other[0][i] - all[0][0][i]).abs());
            assert!(off.fold(0.0, f64::max) < 1e-3, "{steps:?} {all:?}");
        }
    }
}

#[test]
fn what_a_perspective_cannot_show_is_dropped_or_hidden() {
    // Points right of x = 10 lie behind the horizon.
    let horizon = super::perspective([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.1, 0.0]);
    let moved = motion(size(20, 30), &[horizon]);
    for style in TargetStyle::ALL {
        let mut polygons = PolygonArray::default();
        polygons.push_object([&[[1.0, 1.0], [5.0, 1.0], [5.0, 5.0]][..]]);
        polygons.push_object([&[[1.0, 1.0], [25.0, 1.0], [5.0, 5.0]][..]]);
        let mut objects = SampleObjects {
            number: vec![0, 1],
            polygons,
            ..SampleObjects::default()
        };
        let rules = style.rules();
        let counts = rules.move_objects(&moved, &mut objects, None).unwrap();
        assert_eq!((objects.number, counts.lost), (vec![0], 1), "{style:?}");
        let mut objects = person();
        objects.boxes.clear();
        objects.keypoints.points[1] = [f64::NAN, 3.0];
        rules.move_objects(&moved, &mut objects, None).unwrap();
        let seen = &objects.keypoints.visibility;
        assert_eq!(
            (seen[1], objects.keypoints.points[1]),
            (0, [0.0; 2]),
            "{style:?}"
        );
    }
}

/// Each style moves objects with an elastic deformation by about its displacement.
#[test]
fn objects_follow_a_displacement() {
    let of = size(90, 80);
    let step = super::elastic(9, [80.0, 80.0], [6.0, 6.0]);
    let moved = motion(of, &[step, Step::Mirror]);
    let path = moved.path();
    for style in TargetStyle::ALL {
        let mut objects = boxes(&[[30.0, 30.0, 50.0, 60.0]]);
        style
            .rules()
            .move_objects(&moved, &mut objects, None)
            .unwrap();
        let [x0, y0, x1, y1] = objects.boxes[0];
        let [cx, cy] = path.map([40.0, 45.0]);
        let off = ((x0 + x1) / 2.0 - cx).hypot((y0 + y1) / 2.0 - cy);
        assert!(off < 3.0, "{style:?}: {:?}, {cx} {cy}", objects.boxes);
    }
}
