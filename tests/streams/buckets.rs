//! Aspect-ratio buckets through real loaders: each image once an epoch over all ranks, in batches of
//! its bucket's size, alike for any number of workers and from any point on.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use featherload::batch::SizeCondition;
use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::recipe::{
    BucketRule, BucketStyle, CoverCrop, OrientationMode, RandomHorizontalFlip, RandomResizedCrop,
    TrimBorder,
};
use featherload::tests_support::unpack_goldens;
use featherload::{
    DataType, EpochTail, FaultKind, InstanceMasks, Loader, LoaderBuilder, MemoryLayout,
    ObjectOptions, ObjectRule, OnError, Rank, Recipe, RowStatus, SampleFault, Sampler, State,
};
use serde::Deserialize;

use crate::common::rows::{assert_same, stream, take};
use crate::common::{Picture, builder, sized_folder};
use crate::full::with_orientation;

const IMAGES: u64 = 61;

const STYLES: [BucketStyle; 4] = [
    BucketStyle::SdScripts,
    BucketStyle::Diffusers,
    BucketStyle::AiToolkit,
    BucketStyle::SimpleTuner,
];

fn rule(style: BucketStyle) -> BucketRule {
    BucketRule {
        area: 64 * 64,
        step: Some(16),
        style,
        sides: (style == BucketStyle::SdScripts).then_some((32, 128)),
        upscale: true,
    }
}

fn size(i: u64) -> (u16, u16) {
    (40 + (i * 37 % 90) as u16, 40 + (i * 53 % 110) as u16)
}

fn data() -> tempfile::TempDir {
    sized_folder(IMAGES, size)
}

fn recipe() -> Recipe {
    Recipe::new("cover")
        .then(RandomHorizontalFlip::default())
        .then(CoverCrop::random(64))
        .with_dtype(DataType::U8)
}

fn make(dir: &Path, style: BucketStyle) -> LoaderBuilder {
    builder(dir)
        .recipe(recipe())
        .batch_size(4)
        .on_error(OnError::Stop)
        .sampler(Sampler::Buckets(rule(style)))
}

/// Batch, id, status and size of a row, and how it was cropped.
type CroppedRow = (u64, u64, RowStatus, (usize, usize), SizeCondition);

/// The rows of an epoch.
fn epoch(loader: &mut Loader) -> Vec<CroppedRow> {
    let mut rows = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let conditions = batch.size_conditions().unwrap();
        assert_eq!(conditions.len(), batch.len());
        for (row, condition) in batch.rows().zip(conditions) {
            let key = (batch.number(), row.id(), row.status());
            rows.push((key.0, key.1, key.2, row.size(), *condition));
        }
    }
    rows
}

#[test]
fn streams_are_alike_for_any_workers_and_from_any_point() {
    let dir = data();
    for style in STYLES {
        let make = || make(dir.path(), style);
        let full = stream(&mut make().num_workers(0).build().unwrap(), 2);
        for workers in [1, 2, 8] {
            let mut loader = make().num_workers(workers).build().unwrap();
            let what = format!("{style:?}, {workers} workers");
            assert_same(&stream(&mut loader, 2), &full, &what);
        }
        for (taken, before, after) in [(1, 0, 2), (7, 2, 0), (20, 1, 1)] {
            let (head, state) = take(&mut make().num_workers(before).build().unwrap(), taken);
            let text = serde_json::to_string(&state).unwrap();
            let state: State = serde_json::from_str(&text).unwrap();
            let mut loader = make().num_workers(after).resume(state).build().unwrap();
            let tail = stream(&mut loader, 2);
            let what = format!("{style:?}: {taken} batches");
            assert_same(&[head, tail].concat(), &full, &what);
        }
    }
}

#[test]
fn each_image_comes_once_an_epoch_over_three_ranks() {
    let dir = data();
    for (style, tail) in STYLES.into_iter().zip([
        EpochTail::Short,
        EpochTail::Pad,
        EpochTail::Short,
        EpochTail::Pad,
    ]) {
        let mut seen = Vec::new();
        let mut shapes: Vec<Vec<_>> = Vec::new();
        for rank in 0..3 {
            let mut loader = make(dir.path(), style)
                .tail(tail)
                .rank(Rank::new(rank, 3))
                .num_workers(1)
                .build()
                .unwrap();
            let rows = epoch(&mut loader);
            shapes.push(rows.iter().map(|row| (row.0, row.3)).collect());
            seen.extend(
                rows.iter()
                    .filter(|row| row.2 == RowStatus::Ok)
                    .map(|row| row.1),
            );
        }
        assert!(shapes.iter().all(|rank| *rank == shapes[0]), "ranks differ");
        seen.sort_unstable();
        assert_eq!(seen, (0..IMAGES).collect::<Vec<_>>(), "{style:?}");
    }
}

#[test]
fn batches_have_the_crops_of_their_images() {
    let dir = data();
    for style in STYLES {
        let mut loader = make(dir.path(), style).num_workers(1).build().unwrap();
        let (first, second) = (epoch(&mut loader), epoch(&mut loader));
        let mut of_batch = HashMap::new();
        let mut crops = HashSet::new();
        for (batch, id, _, row, condition) in &first {
            let (height, width) = size(*id);
            assert_eq!(condition.original, (height.into(), width.into()));
            assert_eq!(condition.target, (row.0 as u32, row.1 as u32));
            assert_eq!(of_batch.entry(*batch).or_insert(*row), row, "one size");
            crops.insert((*id, condition.crop));
        }
        let moved = second
            .iter()
            .filter(|row| !crops.contains(&(row.1, row.4.crop)));
        assert!(
            moved.count() > 10,
            "{style:?}: each epoch has its own crops"
        );
        assert!(of_batch.values().collect::<HashSet<_>>().len() > 2);
    }
    // Other recipes have no such crop.
    let other = Recipe::new("r").then(RandomResizedCrop::new(64));
    let mut loader = make(dir.path(), BucketStyle::SdScripts)
        .recipe(other)
        .num_workers(0)
        .build()
        .unwrap();
    let mut shapes = HashSet::new();
    let mut rows = 0;
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        assert!(batch.size_conditions().is_none());
        shapes.insert(batch.row(0).unwrap().size());
        rows += batch.len() as u64;
    }
    assert_eq!(rows, IMAGES);
    assert!(shapes.len() > 2, "{shapes:?}");
}

/// An image without a header, and one whose row would have no height.
#[test]
fn images_without_a_bucket_fail_or_are_replaced_from_their_batch() {
    let dir = data();
    fs::write(dir.path().join("bad.jpg"), "no picture").unwrap();
    let tiny = Picture::rgb(90, 9, 3).encode();
    fs::write(dir.path().join("tiny.jpg"), tiny).unwrap();
    let rule = BucketRule {
        upscale: false,
        sides: None,
        ..rule(BucketStyle::SdScripts)
    };
    let make = |on_error| {
        let loader = make(dir.path(), rule.style).on_error(on_error);
        let loader = loader.sampler(Sampler::Buckets(rule)).num_workers(1);
        loader.build().unwrap()
    };
    let mut reasons = Vec::new();
    let mut seen = 0;
    for batch in make(OnError::Skip).epoch() {
        let batch = batch.unwrap();
        seen += batch.len() as u64;
        let conditions = batch.size_conditions().unwrap();
        for fault in batch.faults() {
            assert_eq!(conditions[fault.row], SizeCondition::default());
            let name = fault.path.file_name().unwrap().to_str().unwrap().to_owned();
            reasons.push((name, fault.fault.reason.clone()));
        }
    }
    reasons.sort();
    assert_eq!((seen, reasons.len()), (IMAGES + 2, 2), "{reasons:?}");
    assert_eq!(reasons[0].0, "bad.jpg");
    assert_eq!(reasons[1].0, "tiny.jpg");
    assert!(reasons[1].1.contains("90 x 9 pixels") || reasons[1].1.contains("too small for any"));
    let mut loader = make(OnError::Substitute);
    let mut replaced = 0;
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let conditions = batch.size_conditions().unwrap();
        for fault in batch.faults() {
            let id = fault.substitute.unwrap();
            assert!(id < IMAGES && id != fault.id);
            assert_ne!(conditions[fault.row], SizeCondition::default());
            replaced += 1;
        }
    }
    assert_eq!(replaced, 2);
}

/// The crop of an image follows from the size that its header had at the start, and so does its
/// batch.
#[test]
fn images_of_another_size_than_at_the_start_fail() {
    let dir = data();
    let unreadable = dir.path().join("unreadable.jpg");
    fs::write(&unreadable, "no picture").unwrap();
    for (workers, style) in [(0, STYLES[0]), (1, STYLES[1]), (2, STYLES[3])] {
        let make = || {
            let loader = make(dir.path(), style).on_error(OnError::Skip);
            loader.num_workers(workers).build().unwrap()
        };
        let order: Vec<u64> = epoch(&mut make()).iter().map(|row| row.1).collect();
        let mut loader = make();
        // Of the second epoch, for which no worker has opened a file yet.
        let seen = epoch(&mut loader).len();
        assert_eq!(seen, order.len());
        let (one, other) = (7, 30);
        let turned = |id| -> (u16, u16) { (size(id).1 * 2, size(id).0) };
        let nudged = |id| -> (u16, u16) { (size(id).0 + 1, size(id).1) };
        let write = |id: u64, (height, width)| {
            let picture = Picture::rgb(width, height, id).encode();
            fs::write(dir.path().join(format!("{id:03}.jpg")), picture).unwrap();
        };
        write(one, turned(one));
        write(other, nudged(other));
        fs::write(&unreadable, Picture::rgb(64, 64, 1).encode()).unwrap();
        let mut found = HashMap::new();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for fault in batch.faults() {
                let SampleFault { kind, reason, .. } = fault.fault.clone();
                assert_eq!(kind, FaultKind::Changed, "{reason}");
                found.insert(fault.id, reason);
            }
        }
        let was = |id: u64, (height, width): (u16, u16)| {
            let (h, w) = size(id);
            format!("the image is now {width} x {height}, and was {w} x {h} when headers were read")
        };
        let wanted = HashMap::from([
            (one, was(one, turned(one))),
            (other, was(other, nudged(other))),
            (
                IMAGES,
                "the image is now 64 x 64, and could not be read when headers were".to_owned(),
            ),
        ]);
        assert_eq!(found, wanted, "{workers} workers");
        write(one, size(one));
        write(other, size(other));
        fs::write(&unreadable, "no picture").unwrap();
    }
}

/// Resumes after each batch, also after short ones, on two ranks.
#[test]
fn ranks_resume_after_any_batch() {
    let dir = data();
    for tail in [EpochTail::Short, EpochTail::Pad, EpochTail::Drop] {
        for rank in 0..2 {
            let make = || {
                make(dir.path(), BucketStyle::Diffusers)
                    .tail(tail)
                    .rank(Rank::new(rank, 2))
                    .num_workers(0)
            };
            let mut loader = make().build().unwrap();
            let batches = loader.batches_per_epoch();
            let full = stream(&mut loader, 2);
            for taken in 0..=batches + 1 {
                let (head, state) = take(&mut make().build().unwrap(), taken);
                let mut loader = make().resume(state).build().unwrap();
                let all = [head, stream(&mut loader, 2)].concat();
                assert_same(
                    &all,
                    &full,
                    &format!("{tail:?}, rank {rank}, {taken} batches"),
                );
            }
        }
    }
}

/// An image that EXIF turns is in the bucket of its upright size, or of its stored one.
#[test]
fn buckets_follow_the_orientation_of_the_recipe() {
    let dir = tempfile::tempdir().unwrap();
    let picture = Picture::rgb(128, 64, 1);
    fs::write(
        dir.path().join("turned.jpg"),
        with_orientation(&picture.encode(), 6),
    )
    .unwrap();
    for (orientation, want) in [
        (OrientationMode::Exif, (128, 64)),
        (OrientationMode::Stored, (64, 128)),
    ] {
        let mut loader = make(dir.path(), BucketStyle::AiToolkit)
            .recipe(recipe().with_orientation(orientation))
            .num_workers(0)
            .build()
            .unwrap();
        let rows = epoch(&mut loader);
        assert_eq!(rows[0].4.original, want, "{orientation:?}");
        assert_eq!((rows[0].3.0 > rows[0].3.1), (want.0 > want.1));
    }
}

/// Boxes and instance masks follow rows of any bucket.
#[test]
fn objects_follow_the_rows_of_buckets() {
    let dir = data();
    let form = ObjectListOptions {
        polygons: true,
        ..ObjectListOptions::default()
    };
    let mut list = ObjectList::new(form);
    for i in 0..IMAGES {
        let (height, width) = size(i);
        let (right, bottom) = (f64::from(width), f64::from(height));
        let item = ItemObjects {
            boxes: vec![[0.0, 0.0, right, bottom]],
            labels: vec![0],
            polygons: vec![vec![vec![
                [0.0, 0.0],
                [right, 0.0],
                [right, bottom],
                [0.0, bottom],
            ]]],
            ..ItemObjects::default()
        };
        list.push(&item).unwrap();
    }
    let rule = ObjectRule {
        masks: Some(InstanceMasks::Full),
        ..ObjectRule::default()
    };
    let objects = ObjectOptions::default().listed(list).unwrap().rule(rule);
    for style in STYLES {
        let mut loader = make(dir.path(), style)
            .objects(objects.clone())
            .num_workers(1)
            .build()
            .unwrap();
        let mut seen = 0;
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for row in 0..batch.len() {
                let (height, width) = batch.row(row).unwrap().size();
                // The object is the whole image, and the row is a part of it.
                let masks = batch.instance_masks(row).unwrap();
                assert_eq!(masks.shape(), [1, height, width]);
                let inside = masks.bytes().iter().filter(|byte| **byte != 0).count();
                assert_eq!(inside, height * width, "{style:?}");
                seen += 1;
            }
        }
        assert_eq!(seen, IMAGES);
    }
}

#[test]
fn recipes_and_options_without_buckets_are_refused() {
    let dir = data();
    let refused = |builder: LoaderBuilder| {
        let error = builder.num_workers(0).build().unwrap_err();
        assert!(error.is_usage(), "{error}");
        (error.option_name().map(str::to_owned), error.to_string())
    };
    let usual = || make(dir.path(), BucketStyle::Diffusers);
    let (option, text) = refused(usual().recipe(Recipe::full()));
    assert_eq!(option.as_deref(), Some("sampler"));
    assert!(text.contains("cover_crop"), "{text}");
    let trimmed = Recipe::new("r")
        .then(TrimBorder { pixels: 2 })
        .then(CoverCrop::new(64));
    let (_, text) = refused(usual().recipe(trimmed));
    assert!(
        text.contains("cover_crop comes after trim_border"),
        "{text}"
    );
    let other = CoverCrop {
        buckets: Some(rule(BucketStyle::AiToolkit)),
        ..CoverCrop::new(64)
    };
    let (_, text) = refused(usual().recipe(Recipe::new("r").then(other)));
    assert!(text.contains("the buckets of ai-toolkit"), "{text}");
    let without = usual().recipe(Recipe::new("r").then(other));
    let (_, text) = refused(without.sampler(Sampler::Shuffle));
    assert!(text.contains("the sampler makes none"), "{text}");
    let scales = featherload::order::MultiScale::new([(64, 64)]);
    let (option, _) = refused(usual().multi_scale(scales));
    assert_eq!(option.as_deref(), Some("multi_scale"));
    let (_, text) = refused(usual().batch_size(IMAGES as u32).tail(EpochTail::Drop));
    assert!(text.contains("in any bucket"), "{text}");
    let wrong = BucketRule {
        area: 3,
        ..rule(BucketStyle::Diffusers)
    };
    let (option, _) = refused(usual().sampler(Sampler::Buckets(wrong)));
    assert_eq!(option.as_deref(), Some("sampler"));
}

#[test]
fn an_epoch_of_buckets_keeps_its_batches() {
    let dir = data();
    let usual = || make(dir.path(), BucketStyle::SdScripts).num_workers(0);
    let (_, within) = take(&mut usual().build().unwrap(), 2);
    let refused = |builder: LoaderBuilder, state: &State| {
        let built = builder.resume(state.clone()).build();
        built.err().map(|error| error.to_string())
    };
    let text = refused(usual().batch_size(2), &within).unwrap();
    assert!(text.contains("`batch_size` was 4 and is now 2"), "{text}");
    let text = refused(usual().rank(Rank::new(0, 2)), &within).unwrap();
    assert!(
        text.contains("number of ranks was 1 and is now 2"),
        "{text}"
    );
    let mut loader = usual().build().unwrap();
    let batches = loader.batches_per_epoch();
    let (_, end) = take(&mut loader, batches);
    assert_eq!((end.epoch, end.samples), (1, 0));
    assert_eq!(
        refused(usual().batch_size(2).rank(Rank::new(1, 2)), &end),
        None
    );
}

/// Slots have room for the largest bucket.
#[test]
fn slots_have_room_for_the_largest_bucket() {
    let dir = data();
    let bytes = |rule: BucketRule| {
        let plan = make(dir.path(), rule.style)
            .sampler(Sampler::Buckets(rule))
            .num_workers(1)
            .memory_plan(100)
            .unwrap();
        plan.memory.slot_bytes
    };
    for style in STYLES {
        let mut loader = make(dir.path(), style).num_workers(0).build().unwrap();
        let most = epoch(&mut loader).iter().map(|row| row.3.0 * row.3.1).max();
        let slot = bytes(rule(style));
        let want = 4 * 3 * most.unwrap() as u64;
        assert!(
            (want..want + 8192).contains(&slot),
            "{style:?}: {slot}, {want}"
        );
    }
}

/// A rule, and what its trainer makes of images: `scripts/op_goldens/bucket_crops.py`.
#[derive(Debug, Deserialize)]
struct GoldenRule {
    rule: BucketRule,
    cases: Vec<GoldenCrop>,
}

/// Sizes are height and width. `pixels`: the name of a PNG.
#[derive(Debug, Deserialize)]
struct GoldenCrop {
    image: String,
    row: (usize, usize),
    crop: (u32, u32),
    pixels: String,
}

/// Sizes and crops are those of the trainers. Pixels are those of trainers that resize with Pillow.
/// OpenCV and SimpleTuner's library round otherwise.
#[test]
fn centre_crops_are_those_of_the_trainers() {
    let goldens = tempfile::tempdir().unwrap();
    unpack_goldens("bucket_crops", goldens.path()).unwrap();
    let rules = fs::read(goldens.path().join("cases.json")).unwrap();
    let rules: Vec<GoldenRule> = serde_json::from_slice(&rules).unwrap();
    let decoded = |name: &str| {
        let image = image::open(goldens.path().join(name)).unwrap();
        image.into_rgb8().into_raw()
    };
    let mut compared = 0;
    for GoldenRule { rule, cases } in &rules {
        let dir = tempfile::tempdir().unwrap();
        for (number, case) in cases.iter().enumerate() {
            let copy = dir.path().join(format!("{number:03}.png"));
            fs::copy(goldens.path().join(&case.image), copy).unwrap();
        }
        let recipe = Recipe::new("golden")
            .then(CoverCrop::new(64))
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc);
        let mut loader = builder(dir.path())
            .recipe(recipe)
            .batch_size(3)
            .on_error(OnError::Stop)
            .sampler(Sampler::Buckets(*rule))
            .num_workers(1)
            .build()
            .unwrap();
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            for (row, condition) in batch.rows().zip(batch.size_conditions().unwrap()) {
                let case = &cases[row.id() as usize];
                let what = format!("{rule:?}: {case:?}");
                assert_eq!(
                    (row.size(), condition.crop),
                    (case.row, case.crop),
                    "{what}"
                );
                let (got, want) = (row.bytes().unwrap(), decoded(&case.pixels));
                assert_eq!(got.len(), want.len());
                let largest = got.iter().zip(&want).map(|(a, b)| a.abs_diff(*b)).max();
                let is_of_pillow =
                    matches!(rule.style, BucketStyle::Diffusers | BucketStyle::AiToolkit);
                let most = u8::from(!is_of_pillow);
                assert!(largest <= Some(most), "{what}: {largest:?} levels");
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared} crops");
}
