//! Operations for detectors: crops that read boxes, and pictures that do not fill their rows.

use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::recipe::{
    LargeScaleJitter, Letterbox, PadTo, RandomHorizontalFlip, RandomIouCrop, RandomRotate90,
    RandomShortestSize, RandomSizedBboxSafeCrop, RandomZoomOut, Resize, Span,
};
use featherload::targets::TargetStyle;
use featherload::{DataType, InstanceMasks, MaskOptions, MemoryLayout, ObjectRule, Recipe};

use crate::common::builder;
use crate::common::rows::{assert_same, stream, take};
use crate::objects::{COUNT, epoch, images, item, size_of, with_objects};

fn bytes(recipe: Recipe) -> Recipe {
    (recipe.with_dtype(DataType::U8)).with_layout(MemoryLayout::Nhwc)
}

fn keeps_all() -> ObjectRule {
    ObjectRule {
        min_size: Some(0.0),
        min_area: Some(0.0),
        ..ObjectRule::default()
    }
}

#[test]
fn crops_that_read_boxes_are_the_same_for_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipes = [
        Recipe::new("ssd")
            .then(RandomZoomOut {
                side_range: Span(1.0, 2.0),
                ..RandomZoomOut::default()
            })
            .then(RandomIouCrop::default())
            .then(Resize::exact(32, 40))
            .then(RandomHorizontalFlip::default()),
        Recipe::new("safe").then(RandomSizedBboxSafeCrop::new((32, 40))),
        Recipe::new("large").then(LargeScaleJitter::new((48, 40))),
    ];
    for style in TargetStyle::ALL {
        for recipe in &recipes {
            let make = |workers| {
                let rule = ObjectRule {
                    style,
                    masks: Some(InstanceMasks::Full),
                    ..ObjectRule::default()
                };
                let masks = MaskOptions::new("../masks/{stem}.png");
                (with_objects(dir.path(), rule).recipe(bytes(recipe.clone())))
                    .masks(masks)
                    .num_workers(workers)
                    .epochs(2)
            };
            let want = stream(&mut make(0).build().unwrap(), 2);
            assert_eq!(want.len(), 2 * COUNT as usize);
            for workers in [1, 2, 8] {
                let got = stream(&mut make(workers).build().unwrap(), 2);
                assert_same(&got, &want, &format!("{style:?}, {workers} workers"));
            }
            if style != TargetStyle::Torchvision {
                continue;
            }
            let killed = make(2).kill_workers_every(Duration::from_millis(4));
            assert_same(&stream(&mut killed.build().unwrap(), 2), &want, "killed");
            let (first, state) = take(&mut make(2).build().unwrap(), 2);
            let rest = stream(&mut make(3).resume(state).build().unwrap(), 2);
            assert_same(&[first, rest].concat(), &want, "resumed");
        }
    }
}

/// The images show their coordinates, so a row shows which part of its image it is.
#[test]
fn a_crop_keeps_the_objects_whose_centre_it_has() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    const SIDE: usize = 110;
    let recipe = bytes(
        Recipe::new("cropped")
            .then(RandomIouCrop::default())
            .then(PadTo::size(SIDE as u32)),
    );
    let masks = MaskOptions::new("../masks/{stem}.png");
    let (mut cropped, mut kept, mut gone) = (0, 0, 0);
    for seed in 0..8 {
        let builder = with_objects(dir.path(), keeps_all())
            .recipe(recipe.clone())
            .masks(masks.clone())
            .seed(seed)
            .num_workers(2);
        for batch in epoch(builder) {
            let objects = batch.objects().unwrap();
            for row in 0..batch.len() {
                let n = batch.ids()[row] as u32;
                let view = batch.row(row).unwrap();
                let pixels = view.bytes().unwrap();
                let mask: Vec<u8> = view.mask().unwrap().unwrap().to_vec();
                let [left, top, width, height] = objects.content[row];
                assert_eq!([left, top], [0, 0]);
                let at = |x: u32, y: u32| 3 * (y as usize * SIDE + x as usize);
                let (x0, y0) = (u32::from(pixels[0]), u32::from(pixels[1]));
                for (x, y) in [
                    (0, 0),
                    (width - 1, 0),
                    (0, height - 1),
                    (width - 1, height - 1),
                ] {
                    let want = [(x0 + x) as u8, (y0 + y) as u8, n as u8];
                    assert_eq!(pixels[at(x, y)..][..3], want, "image {n}");
                    // The mask shows columns, and goes through the same crop.
                    assert_eq!(mask[at(x, y) / 3], want[0], "image {n}");
                }
                let whole = size_of(n);
                if (width, height) == whole {
                    assert_eq!(objects.row(row).len(), item(n).boxes.len());
                } else {
                    cropped += 1;
                }
                let (x1, y1) = (f64::from(x0 + width), f64::from(y0 + height));
                let (x0, y0) = (f64::from(x0), f64::from(y0));
                let want: Vec<(i64, [f32; 4])> = (item(n).boxes.iter().zip(&item(n).ids))
                    .filter(|([x, y, w, h], _)| {
                        let (x, y) = (x + w / 2.0, y + h / 2.0);
                        x0 < x && x < x1 && y0 < y && y < y1
                    })
                    .map(|([x, y, w, h], id)| {
                        let across = |v: f64| (v - x0).clamp(0.0, x1 - x0) as f32;
                        let down = |v: f64| (v - y0).clamp(0.0, y1 - y0) as f32;
                        (*id, [across(*x), down(*y), across(x + w), down(y + h)])
                    })
                    .collect();
                let range = objects.row(row);
                let got: Vec<(i64, [f32; 4])> = range
                    .map(|object| (objects.ids[object], objects.boxes[object]))
                    .collect();
                assert_eq!(got, want, "image {n}");
                kept += got.len();
                let all = item(n).boxes.len();
                assert_eq!(objects.dropped[row].total() as usize, all - got.len());
                gone += all - got.len();
            }
        }
    }
    assert!(
        cropped > 40 && kept > 100 && gone > 100,
        "{cropped} {kept} {gone}"
    );
}

#[test]
fn all_boxes_stay_in_a_safe_crop() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = bytes(
        Recipe::new("safe")
            .then(RandomSizedBboxSafeCrop {
                size: None,
                ..RandomSizedBboxSafeCrop::new(1)
            })
            .then(PadTo::size(110)),
    );
    let (mut smaller, mut boxes) = (0, 0);
    for seed in 0..4 {
        let builder = with_objects(dir.path(), keeps_all())
            .recipe(recipe.clone())
            .seed(seed)
            .num_workers(2);
        for batch in epoch(builder) {
            let objects = batch.objects().unwrap();
            for row in 0..batch.len() {
                let n = batch.ids()[row] as u32;
                let [_, _, width, height] = objects.content[row];
                smaller += u32::from((width, height) != size_of(n));
                for (object, [.., w, h]) in objects.row(row).zip(item(n).boxes) {
                    let [x0, y0, x1, y1] = objects.boxes[object];
                    // Edges are whole pixels, so less than a pixel of a box is cut off.
                    assert!(f64::from(x1 - x0) > w - 1.0 && f64::from(y1 - y0) > h - 1.0);
                    boxes += 1;
                }
                assert_eq!(objects.row(row).len(), item(n).boxes.len());
            }
        }
    }
    assert!(smaller > 40 && boxes > 200, "{smaller} {boxes}");
}

/// What lies outside of the content is the border, and nothing inside is.
#[test]
fn rows_say_where_their_picture_is() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let fill = [9, 250, 77];
    let color = featherload::recipe::PerChannel(fill.map(f32::from));
    let recipes = [
        Recipe::new("shortest")
            .then(RandomShortestSize {
                max_size: Some(60),
                ..RandomShortestSize::new([20, 31, 47])
            })
            .then(RandomHorizontalFlip::default())
            .then(PadTo {
                fill: color,
                ..PadTo::size((60, 61))
            }),
        Recipe::new("letterbox")
            .then(Letterbox {
                fill: color,
                ..Letterbox::new((48, 57))
            })
            .then(RandomHorizontalFlip::default()),
        Recipe::new("jitter")
            .then(LargeScaleJitter {
                fill: color,
                scale: Span(0.4, 1.5),
                ..LargeScaleJitter::new(50)
            })
            .then(RandomRotate90::default()),
    ];
    for recipe in recipes {
        let name = recipe.name.clone();
        let mut borders = 0;
        let builder = with_objects(dir.path(), keeps_all())
            .recipe(bytes(recipe))
            .num_workers(2);
        for batch in epoch(builder) {
            let objects = batch.objects().unwrap();
            for row in 0..batch.len() {
                let view = batch.row(row).unwrap();
                let [_, width] = objects.sizes[row];
                let [left, top, right, bottom] = objects.content[row];
                let pixels = view.bytes().unwrap().chunks_exact(3).enumerate();
                for (i, pixel) in pixels {
                    let (x, y) = (i as u32 % width, i as u32 / width);
                    let inside = (left..right).contains(&x) && (top..bottom).contains(&y);
                    // No image has the border's blue.
                    assert_eq!(pixel == fill, !inside, "{name}: {x}, {y}");
                    borders += usize::from(!inside);
                }
            }
        }
        assert!(borders > 1000, "{name}: {borders}");
    }
}

#[test]
fn crops_without_objects_are_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = Recipe::new("ssd")
        .then(RandomIouCrop::default())
        .then(Resize::exact(32, 40));
    let e = builder(&dir.path().join("images")).recipe(recipe.clone());
    let e = e.build().unwrap_err().to_string();
    assert!(
        e.contains("random_iou_crop reads the boxes of objects: give `objects`"),
        "{e}"
    );
    let twice = with_objects(dir.path(), keeps_all()).recipe(recipe.then(RandomIouCrop::default()));
    let e = twice.build().unwrap_err().to_string();
    assert!(e.contains("second operation that reads boxes"), "{e}");
}
