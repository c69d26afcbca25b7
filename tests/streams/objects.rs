//! Objects of images: one stream for any number of workers, through deaths, and from any point on.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::objects::{BoxForm, ItemObjects, ObjectList, ObjectListOptions, RotatedForm};
use featherload::recipe::{
    CenterCrop, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, Resize, Span,
};
use featherload::targets::TargetStyle;
use featherload::{
    Batch, DataType, InstanceMasks, LabelNumbers, LoaderBuilder, MaskOptions, ObjectOptions,
    ObjectOverflow, ObjectRule, OnError, Recipe, RowStatus, State,
};
use image::{GrayImage, Luma, Rgb, RgbImage};

use crate::common::builder;
use crate::common::rows::{assert_same, rows, stream, take};

pub const COUNT: u32 = 21;

pub fn size_of(n: u32) -> (u32, u32) {
    (30 + 3 * n, 71 - 2 * n)
}

/// The objects of image `n`: none in each fourth, up to 11 in the others.
pub fn item(n: u32) -> ItemObjects {
    let (width, height) = size_of(n);
    let count = if n.is_multiple_of(4) {
        0
    } else {
        (n * 7 + 1) % 12
    };
    let at = |k: u32, side: u32| f64::from((k * 5 + n) % (side - 9));
    let boxes: Vec<[f64; 4]> = (0..count)
        .map(|k| {
            [
                at(k, width),
                at(k + 1, height),
                8.5,
                5.25 + f64::from(k % 3),
            ]
        })
        .collect();
    ItemObjects {
        labels: (0..count).map(|k| i64::from(10 * (k % 3) + 5)).collect(),
        ids: (0..count).map(|k| i64::from(1000 * n + k)).collect(),
        crowd: (0..count).map(|k| k == 2).collect(),
        keypoints: (boxes.iter())
            .flat_map(|[x, y, ..]| [[*x as f32, *y as f32, 2.0], [*x as f32 + 1.0, 3.0, 1.0]])
            .collect(),
        rotated: (boxes.iter())
            .flat_map(|[x, y, w, h]| [x + w / 2.0, y + h / 2.0, *w, *h, 30.0])
            .collect(),
        polygons: (boxes.iter())
            .map(|[x, y, w, h]| vec![vec![[*x, *y], [x + w, *y], [x + w, y + h], [*x, y + h]]])
            .collect(),
        boxes,
        image_id: Some(i64::from(n) + 500),
        size: Some((height, width)),
        ..ItemObjects::default()
    }
}

fn list(count: u32) -> ObjectList {
    let mut list = ObjectList::new(ObjectListOptions {
        boxes: BoxForm::Xywh,
        keypoints: 2,
        keypoint_swap: vec![1, 0],
        rotated: Some(RotatedForm::Centre),
        polygons: true,
        ..ObjectListOptions::default()
    });
    for n in 0..count {
        list.push(&item(n)).unwrap();
    }
    list
}

pub fn images(dir: &Path) {
    for folder in ["images", "masks"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    for n in 0..COUNT {
        let (width, height) = size_of(n);
        let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, n as u8]));
        image.save(dir.join(format!("images/{n:02}.png"))).unwrap();
        let mask = GrayImage::from_fn(width, height, |x, _| Luma([x as u8]));
        mask.save(dir.join(format!("masks/{n:02}.png"))).unwrap();
    }
}

pub fn with_objects(dir: &Path, rule: ObjectRule) -> LoaderBuilder {
    let objects = ObjectOptions::default().rule(rule);
    let objects = objects.listed(list(COUNT)).unwrap();
    builder(&dir.join("images")).objects(objects)
}

fn augmented() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(32))
        .then(RandomHorizontalFlip::default())
        .then(RandomRotation::new(Span(-20.0, 20.0)))
        .with_dtype(DataType::U8)
}

#[test]
fn the_stream_is_the_same_for_any_number_of_workers_and_from_any_point() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    for (n, style) in TargetStyle::ALL.into_iter().enumerate() {
        let make = |workers| {
            let rule = ObjectRule {
                style,
                masks: Some([InstanceMasks::Full, InstanceMasks::Quarter][n % 2]),
                max_objects: Some(7),
                overflow: ObjectOverflow::Largest,
                ..ObjectRule::default()
            };
            // Masks lie between images and objects.
            let masks = MaskOptions::new("../masks/{stem}.png");
            let builder = with_objects(dir.path(), rule)
                .recipe(augmented())
                .masks(masks);
            builder.num_workers(workers).epochs(2)
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
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let rest = stream(&mut make(3).resume(state.clone()).build().unwrap(), 2);
        assert_same(&[first, rest].concat(), &want, "resumed");
        let other = with_objects(dir.path(), ObjectRule::default()).recipe(augmented());
        let masks = MaskOptions::new("../masks/{stem}.png");
        let e = other
            .masks(masks)
            .epochs(2)
            .resume(state)
            .build()
            .unwrap_err();
        assert!(e.to_string().contains("the objects"), "{e}");
    }
}

/// All batches of one epoch.
pub fn epoch(builder: LoaderBuilder) -> Vec<Batch> {
    let mut loader = builder.shuffle(false).build().unwrap();
    let batches: Vec<Batch> = loader.epoch().map(Result::unwrap).collect();
    batches
}

#[test]
fn boxes_are_where_the_pixels_go() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let resized = Recipe::new("resized")
        .then(Resize::exact(40, 60))
        .with_dtype(DataType::U8);
    let full = Recipe::full().with_dtype(DataType::U8);
    let cropped = Recipe::new("cropped")
        .then(CenterCrop::new(24))
        .with_dtype(DataType::U8);
    let keeps_all = ObjectRule {
        min_size: Some(0.0),
        min_area: Some(0.0),
        ..ObjectRule::default()
    };
    for (recipe, is_full) in [(resized, false), (full, true)] {
        let builder = with_objects(dir.path(), keeps_all.clone())
            .recipe(recipe)
            .num_workers(2);
        let mut id = 0;
        for batch in epoch(builder) {
            let objects = batch.objects().unwrap();
            assert_eq!(objects.offsets.len(), batch.len() + 1);
            for row in 0..batch.len() {
                let want = item(id);
                let (width, height) = size_of(id);
                let (out_w, out_h) = if is_full { (width, height) } else { (60, 40) };
                let scale =
                    |v: f64, from: u32, to: u32| (v * f64::from(to) / f64::from(from)) as f32;
                let range = objects.row(row);
                assert_eq!(objects.labels[range.clone()], want.labels);
                assert_eq!(objects.ids[range.clone()], want.ids);
                assert_eq!(objects.crowd[range.clone()], want.crowd);
                assert_eq!(objects.image_ids[row], i64::from(id) + 500);
                assert_eq!(objects.source_sizes[row], [height, width]);
                assert_eq!(objects.sizes[row], [out_h, out_w]);
                for (object, [x, y, w, h]) in range.zip(&want.boxes) {
                    let want = [
                        scale(*x, width, out_w),
                        scale(*y, height, out_h),
                        scale(x + w, width, out_w),
                        scale(y + h, height, out_h),
                    ];
                    for (got, want) in objects.boxes[object].iter().zip(want) {
                        assert!((got - want).abs() < 1e-4, "{id}: {got} is not {want}");
                    }
                    let [kx, ky, seen] = objects.keypoints[2 * object];
                    assert!((kx - want[0]).abs() < 1e-4 && (ky - want[1]).abs() < 1e-4);
                    assert_eq!(seen, 2.0);
                }
                id += 1;
            }
        }
        assert_eq!(id, COUNT);
    }
    let builder = with_objects(dir.path(), ObjectRule::default())
        .recipe(cropped)
        .num_workers(1);
    let mut dropped = 0;
    for batch in epoch(builder) {
        let objects = batch.objects().unwrap();
        assert!(
            objects
                .boxes
                .iter()
                .flatten()
                .all(|v| (0.0..=24.0).contains(v))
        );
        dropped += objects
            .dropped
            .iter()
            .map(|counts| counts.total())
            .sum::<u32>();
    }
    assert!(dropped > 20, "{dropped}");
}

/// Masks of boxes are where the boxes are, in both ways to draw them, and in rows of own sizes.
#[test]
fn masks_of_objects_are_where_their_boxes_are() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let resized = Recipe::new("resized").then(Resize::exact(142, 90));
    for recipe in [resized, Recipe::full(), augmented_without_turns()] {
        let recipe = recipe.with_dtype(DataType::U8);
        for style in [TargetStyle::Torchvision, TargetStyle::Detectron2] {
            for masks in [InstanceMasks::Full, InstanceMasks::Quarter] {
                let rule = ObjectRule {
                    style,
                    masks: Some(masks),
                    ..ObjectRule::default()
                };
                let builder = with_objects(dir.path(), rule)
                    .recipe(recipe.clone())
                    .num_workers(2);
                let mut seen = 0;
                for batch in epoch(builder) {
                    let objects = batch.objects().unwrap();
                    for row in 0..batch.len() {
                        let pixels = batch.instance_masks(row).unwrap();
                        let [count, height, width] = pixels.shape();
                        assert_eq!(count, objects.row(row).len());
                        let [high, wide] = objects.sizes[row];
                        let step = match masks {
                            InstanceMasks::Full => 1,
                            InstanceMasks::Quarter => 4,
                        };
                        assert_eq!(
                            [height as u32, width as u32],
                            [high, wide].map(|n| n.div_ceil(step))
                        );
                        let masks = pixels.bytes().chunks_exact(height * width);
                        for (object, mask) in objects.row(row).zip(masks) {
                            seen += check_mask(mask, width, objects.boxes[object], step as f32);
                        }
                    }
                }
                assert!(seen > 100, "{style:?} {masks:?}: {seen}");
            }
        }
    }
}

fn augmented_without_turns() -> Recipe {
    Recipe::new("augmented")
        .then(RandomResizedCrop::new(48))
        .then(RandomHorizontalFlip::default())
}

/// Pixels of the mask, which must lie in the box but for a pixel of rounding, and fill it but for
/// two.
fn check_mask(mask: &[u8], width: usize, bounds: [f32; 4], step: f32) -> usize {
    let [x0, y0, x1, y1] = bounds.map(|v| v / step);
    let mut inside = 0;
    for (at, pixel) in mask.iter().enumerate() {
        assert!(*pixel <= 1);
        let (x, y) = ((at % width) as f32 + 0.5, (at / width) as f32 + 0.5);
        let slack = |by: f32| x > x0 - by && x < x1 + by && y > y0 - by && y < y1 + by;
        if *pixel == 1 {
            assert!(slack(2.0), "{x} {y} is not in {bounds:?}");
            inside += 1;
        } else {
            assert!(!slack(-2.5), "{x} {y} is in {bounds:?}");
        }
    }
    inside
}

#[test]
fn more_objects_than_allowed_are_dropped_by_a_named_rule() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let make = |overflow, max_objects| {
        let rule = ObjectRule {
            max_objects,
            overflow,
            labels: Some(LabelNumbers::Contiguous),
            ..ObjectRule::default()
        };
        with_objects(dir.path(), rule)
            .recipe(Recipe::full())
            .num_workers(1)
    };
    let all: Vec<Batch> = epoch(make(ObjectOverflow::First, None));
    for overflow in [ObjectOverflow::First, ObjectOverflow::Largest] {
        for (few, all) in epoch(make(overflow, Some(3))).iter().zip(&all) {
            let (few, all) = (few.objects().unwrap(), all.objects().unwrap());
            for row in 0..few.sizes.len() {
                let (few_ids, all_ids) = (&few.ids[few.row(row)], &all.ids[all.row(row)]);
                assert_eq!(few_ids.len(), all_ids.len().min(3));
                let over = all_ids.len().saturating_sub(3) as u32;
                assert_eq!(few.dropped[row].over, over);
                if overflow == ObjectOverflow::First {
                    assert_eq!(few_ids, &all_ids[..few_ids.len()]);
                }
                assert!(few_ids.is_sorted());
                assert!(few.labels.iter().all(|label| (0..3).contains(label)));
            }
        }
    }
    let mut loader = make(ObjectOverflow::Error, Some(3)).build().unwrap();
    let e = loader
        .epoch()
        .find_map(|batch| batch.err())
        .unwrap()
        .to_string();
    assert!(e.contains("over `max_objects` = 3"), "{e}");
}

#[test]
fn rows_without_a_sample_have_no_objects() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    fs::write(dir.path().join("images/05.png"), "no image").unwrap();
    let make = |policy| {
        with_objects(dir.path(), ObjectRule::default())
            .recipe(
                Recipe::new("small")
                    .then(Resize::exact(16, 16))
                    .with_dtype(DataType::U8),
            )
            .on_error(policy)
    };
    let mut skipping = make(OnError::Skip).num_workers(2).build().unwrap();
    let mut failed = 0;
    for batch in skipping.epoch() {
        let batch = batch.unwrap();
        let objects = batch.objects().unwrap();
        for row in 0..batch.len() {
            if batch.status()[row] == RowStatus::Failed {
                assert!(objects.row(row).is_empty());
                assert_eq!(objects.sizes[row], [0, 0]);
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 1);
    let of = |workers| {
        let mut loader = make(OnError::Substitute)
            .num_workers(workers)
            .build()
            .unwrap();
        let mut all = Vec::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let objects = batch.objects().unwrap();
            for row in 0..batch.len() {
                // Objects belong to the sample whose pixels are there.
                assert_eq!(objects.image_ids[row], batch.ids()[row] as i64 + 500);
                let all = item(batch.ids()[row] as u32);
                assert!(
                    objects.ids[objects.row(row)]
                        .iter()
                        .all(|id| all.ids.contains(id))
                );
            }
            all.extend(rows(&batch));
        }
        all
    };
    assert_same(&of(2), &of(0), "substitutes");
}

#[test]
fn wrong_objects_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let refused = |builder: LoaderBuilder| builder.build().unwrap_err().to_string();
    let few = ObjectOptions::default().listed(list(3)).unwrap();
    let e = refused(builder(&dir.path().join("images")).objects(few));
    assert!(
        e.contains("those of 3 images, and there are 21 images"),
        "{e}"
    );
    let rule = ObjectRule {
        style: TargetStyle::Detectron2,
        keypoint_swap: Some(vec![0]),
        ..ObjectRule::default()
    };
    let e = refused(with_objects(dir.path(), rule));
    assert!(e.contains("`keypoint_swap` has 1 numbers"), "{e}");
    // An annotation of another size.
    let (width, height) = size_of(6);
    RgbImage::new(width + 1, height)
        .save(dir.path().join("images/06.png"))
        .unwrap();
    let make = |any_size| {
        let rule = ObjectRule {
            any_size,
            ..ObjectRule::default()
        };
        with_objects(dir.path(), rule)
            .recipe(Recipe::new("small").then(Resize::exact(16, 16)))
            .build()
            .unwrap()
    };
    let e = make(false)
        .epoch()
        .find_map(|batch| batch.err())
        .unwrap()
        .to_string();
    assert!(
        e.contains("states 48 x 59 pixels, and the image has 49 x 59"),
        "{e}"
    );
    assert!(make(true).epoch().all(|batch| batch.is_ok()));
}
