//! Rows of several samples: mosaics and mixed pictures with their objects. One stream for any
//! number of workers, through deaths, and from any point on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::order::{IdentityProb, SampleWeights};
use featherload::recipe::{
    CenterCrop, CutSamples, JointDraw, MixSamples, Mosaic, PixelRect, RandomAffine, RandomCrop,
    RandomHorizontalFlip, Resize, Span,
};
use featherload::targets::TargetStyle;
use featherload::{
    Batch, DataType, Loader, LoaderBuilder, MemoryLayout, ObjectOptions, ObjectOverflow,
    ObjectRule, OnError, Position, Recipe, RowStatus, Sampler, State,
};
use image::{Rgb, RgbImage};

use crate::common::builder;
use crate::common::rows::{assert_same, rows, stream, take};

const COUNT: u32 = 13;
/// The longer side of all pictures, so that their resize changes nothing.
const SIDE: u32 = 33;

/// Width and height: both odd and even, wide and high.
fn size_of(n: u32) -> (u32, u32) {
    let short = 9 + 2 * n + n % 2;
    if n.is_multiple_of(3) {
        (short.min(SIDE), SIDE)
    } else {
        (SIDE, short.min(SIDE))
    }
}

/// The one object of a picture: left, top, right, bottom. None in each fifth.
fn box_of(n: u32) -> Option<[u32; 4]> {
    let (width, height) = size_of(n);
    let (left, top) = (n % 5, (n + 2) % 4);
    let inside = [left, top, width - 1 - n % 3, height - n % 2];
    (n % 5 != 4).then_some(inside)
}

/// The object is painted in a colour that nothing else has.
fn picture(n: u32) -> RgbImage {
    let (width, height) = size_of(n);
    RgbImage::from_fn(width, height, |x, y| match box_of(n) {
        Some([left, top, right, bottom])
            if (left..right).contains(&x) && (top..bottom).contains(&y) =>
        {
            Rgb([255, n as u8, 7])
        }
        _ => Rgb([(5 * x) as u8, n as u8, 100 + y as u8]),
    })
}

fn write_images(dir: &Path, count: u32) {
    fs::create_dir(dir.join("images")).unwrap();
    for n in 0..count {
        let file = dir.join(format!("images/{n:02}.png"));
        picture(n).save(file).unwrap();
    }
}

fn list(count: u32) -> ObjectList {
    let mut list = ObjectList::new(ObjectListOptions {
        keypoints: 1,
        ..ObjectListOptions::default()
    });
    for n in 0..count {
        let boxes: Vec<[f64; 4]> = box_of(n)
            .map(|edges| edges.map(f64::from))
            .into_iter()
            .collect();
        list.push(&ItemObjects {
            labels: boxes.iter().map(|_| i64::from(n) + 40).collect(),
            ids: boxes.iter().map(|_| i64::from(n)).collect(),
            keypoints: (boxes.iter())
                .map(|[x, y, ..]| [*x as f32, *y as f32, 2.0])
                .collect(),
            boxes,
            ..ItemObjects::default()
        })
        .unwrap();
    }
    list
}

fn with_objects(dir: &Path, count: u32, rule: ObjectRule) -> LoaderBuilder {
    let objects = ObjectOptions::default().rule(rule);
    let objects = objects.listed(list(count)).unwrap();
    builder(&dir.join("images")).objects(objects)
}

/// The rule of ultralytics without its filter.
fn keeps_all() -> ObjectRule {
    ObjectRule {
        style: TargetStyle::Ultralytics,
        min_size: Some(0.0),
        min_visibility: Some(0.0),
        keypoint_swap: Some(vec![0]),
        ..ObjectRule::default()
    }
}

fn levels(recipe: Recipe) -> Recipe {
    recipe
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
}

fn mosaic(grid: u32) -> Mosaic {
    Mosaic {
        grid,
        ..Mosaic::new(SIDE)
    }
}

fn base() -> Recipe {
    Recipe::new("joined").then(Resize::longer(SIDE))
}

/// All operations that join, with others between them.
fn all_joints() -> Recipe {
    let affine = RandomAffine::new(Span(-5.0, 5.0));
    let recipe = base()
        .then(RandomHorizontalFlip::default())
        .then(Mosaic {
            p: 0.7,
            partner_window: Some(5),
            ..mosaic(2)
        })
        .then(affine)
        .then(RandomCrop::new(SIDE))
        .then(MixSamples {
            alpha: 2.0,
            p: 0.5,
            ..MixSamples::default()
        })
        .then(CutSamples {
            p: 0.8,
            ..CutSamples::default()
        })
        .then(RandomHorizontalFlip::default());
    levels(recipe)
}

#[test]
fn the_stream_is_the_same_for_any_number_of_workers_and_from_any_point() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    for style in [TargetStyle::Ultralytics, TargetStyle::Torchvision] {
        let make = |workers| {
            let rule = ObjectRule {
                style,
                keypoint_swap: (style == TargetStyle::Ultralytics).then(|| vec![0]),
                max_objects: Some(6),
                overflow: ObjectOverflow::Largest,
                ..ObjectRule::default()
            };
            let builder = with_objects(dir.path(), COUNT, rule).recipe(all_joints());
            builder.num_workers(workers).batch_size(4).epochs(2)
        };
        let want = stream(&mut make(0).build().unwrap(), 2);
        assert_eq!(want.len(), 2 * COUNT as usize);
        assert!(want.iter().all(|row| row.status == RowStatus::Ok));
        for workers in [1, 2, 8] {
            let got = stream(&mut make(workers).build().unwrap(), 2);
            assert_same(&got, &want, &format!("{style:?}, {workers} workers"));
        }
        let killed = make(2).kill_workers_every(Duration::from_millis(4));
        assert_same(&stream(&mut killed.build().unwrap(), 2), &want, "killed");
        let (first, state) = take(&mut make(2).build().unwrap(), 2);
        let text = serde_json::to_string(&state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let rest = stream(&mut make(3).resume(state.clone()).build().unwrap(), 2);
        assert_same(&[first, rest].concat(), &want, "resumed");
        let other = make(1).recipe(levels(base().then(mosaic(2))));
        let e = other.resume(state).build().unwrap_err();
        assert!(e.to_string().contains("recipe"), "{e}");
    }
}

/// All batches of the first epoch, and what was drawn for each row.
fn epoch(builder: LoaderBuilder) -> (Vec<Batch>, Vec<Vec<Vec<JointDraw>>>) {
    let mut loader: Loader = builder.shuffle(false).build().unwrap();
    let batches: Vec<Batch> = loader
        .epoch()
        .map(|batch| batch.unwrap().detach().unwrap())
        .collect();
    let drawn = batches.iter().map(|batch| {
        let rows = loader.drawn(Position::new(batch.epoch(), batch.number()));
        let joints = rows.into_iter().map(|row| {
            let joints = row.steps.unwrap().joints;
            joints.into_iter().map(|(_, draw)| draw).collect()
        });
        joints.collect()
    });
    let drawn = drawn.collect();
    (batches, drawn)
}

/// Places of pictures on the canvas by the rules of the four and of the nine.
fn places(ids: &[u32], center: Option<(u32, u32)>) -> Vec<[i64; 2]> {
    let s = i64::from(SIDE);
    let size = |at: usize| {
        let (w, h) = size_of(ids[at]);
        (i64::from(w), i64::from(h))
    };
    if let Some((x, y)) = center {
        let (x, y) = (i64::from(x), i64::from(y));
        let at = |n: usize| size(n);
        return vec![
            [x - at(0).0, y - at(0).1],
            [x, y - at(1).1],
            [x - at(2).0, y],
            [x, y],
        ];
    }
    let (w0, h0) = size(0);
    let rule = |n: usize| {
        let (w, h) = size(n);
        let (wp, hp) = if n > 0 { size(n - 1) } else { (0, 0) };
        let [x, y] = match n {
            0 => [s, s],
            1 => [s, s - h],
            2 => [s + wp, s - h],
            3 => [s + w0, s],
            4 => [s + w0, s + hp],
            5 => [s + w0 - w, s + h0],
            6 => [s + w0 - wp - w, s + h0],
            7 => [s - w, s + h0 - h],
            _ => [s - w, s + h0 - hp - h],
        };
        [x - s / 2, y - s / 2]
    };
    (0..9).map(rule).collect()
}

/// The canvas of a mosaic, pixel by pixel.
fn reference(ids: &[u32], places: &[[i64; 2]]) -> RgbImage {
    RgbImage::from_fn(2 * SIDE, 2 * SIDE, |x, y| {
        let mut color = Rgb([114; 3]);
        for (id, [left, top]) in ids.iter().zip(places) {
            let (u, v) = (i64::from(x) - left, i64::from(y) - top);
            let (width, height) = size_of(*id);
            if (0..i64::from(width)).contains(&u) && (0..i64::from(height)).contains(&v) {
                color = *picture(*id).get_pixel(u as u32, v as u32);
            }
        }
        color
    })
}

fn row_image(batch: &Batch, row: usize) -> RgbImage {
    let bytes = batch.row(row).unwrap();
    let bytes = bytes.parts().unwrap().concat();
    let side = ((bytes.len() / 3) as f64).sqrt() as u32;
    RgbImage::from_raw(side, side, bytes).unwrap()
}

#[test]
fn mosaics_are_those_of_a_reference_and_boxes_follow() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    for grid in [2, 3] {
        let mut alone = 0;
        for seed in 0..4 {
            let joint = Mosaic {
                p: 0.8,
                ..mosaic(grid)
            };
            let builder = with_objects(dir.path(), COUNT, keeps_all())
                .recipe(levels(base().then(joint)))
                .num_workers(2)
                .seed(seed);
            let (batches, drawn) = epoch(builder);
            for (batch, drawn) in batches.iter().zip(&drawn) {
                let objects = batch.objects().unwrap();
                for (row, draw) in drawn.iter().enumerate() {
                    let draw = &draw[0];
                    let own = batch.ids()[row] as u32;
                    let mut ids = vec![own];
                    ids.extend(draw.partners.iter().map(|id| *id as u32));
                    let places = match ids.len() {
                        1 => {
                            alone += 1;
                            let (w, h) = size_of(own);
                            let middle = |side| i64::from((2 * SIDE - side) / 2);
                            vec![[middle(w), middle(h)]]
                        }
                        _ => places(&ids, draw.center),
                    };
                    assert_eq!(places.len(), ids.len());
                    let want = reference(&ids, &places);
                    let got = row_image(batch, row);
                    assert!(
                        got == want,
                        "grid {grid}, row {row} of {ids:?} at {places:?}"
                    );
                    // Boxes by the formula: shifted, and clipped to the canvas.
                    let mut want = Vec::new();
                    for (id, [x, y]) in ids.iter().zip(&places) {
                        let Some([l, t, r, b]) = box_of(*id) else {
                            continue;
                        };
                        let clip = |v: u32, by: &i64| {
                            (i64::from(v) + by).clamp(0, 2 * i64::from(SIDE)) as f32
                        };
                        let edges = [clip(l, x), clip(t, y), clip(r, x), clip(b, y)];
                        if edges[2] > edges[0] && edges[3] > edges[1] {
                            let key = [(i64::from(l) + x) as f32, (i64::from(t) + y) as f32];
                            let seen = key.iter().all(|v| (0.0..=66.0).contains(v));
                            // The style moves keypoints outside to the edge.
                            let key = key.map(|v| v.clamp(0.0, 66.0));
                            want.push((*id, edges, key, seen));
                        }
                    }
                    let range = objects.row(row);
                    assert_eq!(range.len(), want.len());
                    for (object, (id, edges, key, seen)) in range.zip(&want) {
                        assert_eq!(objects.boxes[object], *edges);
                        assert_eq!(objects.ids[object], i64::from(*id));
                        assert_eq!(objects.labels[object], i64::from(*id) + 40);
                        let [x, y, visible] = objects.keypoints[object];
                        assert_eq!(([x, y], visible), (*key, if *seen { 2.0 } else { 0.0 }));
                    }
                    assert_eq!(objects.source_sizes[row], {
                        let (width, height) = size_of(own);
                        [height, width]
                    });
                }
            }
        }
        assert!((2..40).contains(&alone), "{alone}");
    }
}

/// The smallest box of all pixels of this colour.
fn painted(image: &RgbImage, id: u32) -> Option<[f32; 4]> {
    let mut all: Option<[u32; 4]> = None;
    for (x, y, pixel) in image.enumerate_pixels() {
        if pixel.0 == [255, id as u8, 7] {
            let [l, t, r, b] = all.unwrap_or([x, y, x + 1, y + 1]);
            all = Some([l.min(x), t.min(y), r.max(x + 1), b.max(y + 1)]);
        }
    }
    all.map(|edges| edges.map(|v| v as f32))
}

/// After a joint, boxes go on with the pixels: through crops, flips, and a second joint.
#[test]
fn boxes_are_where_the_painted_pixels_are() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let recipe = base()
        .then(RandomHorizontalFlip::default())
        .then(mosaic(2))
        .then(RandomCrop::new(50))
        .then(RandomHorizontalFlip::default());
    let mut compared = 0;
    for seed in 0..6 {
        let builder = with_objects(dir.path(), COUNT, keeps_all())
            .recipe(levels(recipe.clone()))
            .num_workers(1)
            .seed(seed);
        let (batches, drawn) = epoch(builder);
        for (batch, drawn) in batches.iter().zip(&drawn) {
            let objects = batch.objects().unwrap();
            for (row, draw) in drawn.iter().enumerate() {
                let mut ids: Vec<u64> = draw[0].partners.clone();
                ids.push(batch.ids()[row]);
                let image = row_image(batch, row);
                for object in objects.row(row) {
                    let id = objects.ids[object] as u64;
                    if ids.iter().filter(|other| **other == id).count() == 1 {
                        assert_eq!(Some(objects.boxes[object]), painted(&image, id as u32));
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn mixed_pictures_are_means_with_the_objects_of_both() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let recipe = base().then(mosaic(2)).then(CenterCrop::new(SIDE));
    let mix = MixSamples {
        alpha: 2.0,
        p: 0.6,
        ..MixSamples::default()
    };
    let mixed = levels(recipe.clone().then(mix));
    let plain = levels(recipe);
    let make = |recipe: &Recipe| {
        with_objects(dir.path(), COUNT, keeps_all())
            .recipe(recipe.clone())
            .num_workers(1)
    };
    let ((got, drawn), (own, _)) = (epoch(make(&mixed)), epoch(make(&plain)));
    let (mut changed, mut more) = (0, 0);
    for ((got, own), drawn) in got.iter().zip(&own).zip(&drawn) {
        for (row, draw) in drawn.iter().enumerate() {
            let [mosaic, mix] = &draw[..] else {
                panic!("{draw:?}")
            };
            assert_eq!(mosaic.partners.len(), 3);
            let (image, alone) = (row_image(got, row), row_image(own, row));
            let objects = [got, own].map(|batch| {
                let objects = batch.objects().unwrap();
                let range = objects.row(row);
                (
                    objects.boxes[range.clone()].to_vec(),
                    objects.ids[range].to_vec(),
                )
            });
            let count = objects[1].0.len();
            assert_eq!(objects[0].0[..count], objects[1].0);
            assert_eq!(objects[0].1[..count], objects[1].1);
            if mix.partners.is_empty() {
                assert!(image == alone && objects[0] == objects[1]);
                continue;
            }
            more += objects[0].0.len() - count;
            let weight = mix.weight.unwrap();
            // The other picture is a mosaic of its own: between its bounds each level is possible.
            for (new, old) in image.as_raw().iter().zip(alone.as_raw()) {
                let least = f64::from(*old) * weight;
                let most = least + 255.0 * (1.0 - weight);
                assert!((least.floor()..=most.floor()).contains(&f64::from(*new)));
            }
            changed += usize::from(image != alone);
        }
    }
    assert!(changed > 3 && more > 3, "{changed} {more}");
}

/// Pictures of one size that are mixed without a mosaic: the exact mean.
#[test]
fn a_mean_of_two_is_that_of_a_reference() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let recipe = Recipe::new("squares")
        .then(Resize::exact(16, 16))
        .then(MixSamples::default());
    let whole = Recipe::new("whole").then(Resize::exact(16, 16));
    let make = |recipe| {
        let builder = builder(&dir.path().join("images")).recipe(levels(recipe));
        epoch(builder.num_workers(0).batch_size(COUNT))
    };
    let ((got, drawn), (own, _)) = (make(recipe), make(whole));
    for (row, draw) in drawn[0].iter().enumerate() {
        let (partner, weight) = (draw[0].partners[0] as usize, draw[0].weight.unwrap());
        let [got, a, b] = [(&got, row), (&own, row), (&own, partner)]
            .map(|(batches, row)| row_image(&batches[0], row).into_raw());
        for ((got, a), b) in got.iter().zip(a).zip(b) {
            let want = f64::from(a) * weight + f64::from(b) * (1.0 - weight);
            assert_eq!(*got, want as u8);
        }
    }
}

#[test]
fn cut_boxes_touch_no_object_and_bring_those_of_the_partner() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let recipe = base().then(Mosaic {
        p: 0.0,
        ..mosaic(2)
    });
    let cut = recipe.clone().then(CutSamples::default());
    let make = |recipe: &Recipe, seed| {
        with_objects(dir.path(), COUNT, keeps_all())
            .recipe(levels(recipe.clone()))
            .num_workers(1)
            .batch_size(COUNT)
            .seed(seed)
    };
    let (mut cuts, mut kept) = (0, 0);
    for seed in 0..8 {
        let ((got, drawn), (own, _)) = (epoch(make(&cut, seed)), epoch(make(&recipe, seed)));
        let objects = [&got, &own].map(|batches| batches[0].objects().unwrap());
        for (row, draw) in drawn[0].iter().enumerate() {
            let draw = &draw[1];
            let partner = draw.partners[0] as usize;
            let share = |[l, t, r, b]: [f32; 4], rect: &PixelRect| {
                let (x, y) = (rect.left as f32, rect.top as f32);
                let wide = r.min(x + rect.width as f32) - l.max(x);
                let high = b.min(y + rect.height as f32) - t.max(y);
                wide.max(0.0) * high.max(0.0) / ((r - l) * (b - t))
            };
            let boxes = |row: usize| objects[1].boxes[objects[1].row(row)].to_vec();
            let free = |rect: &&PixelRect| boxes(row).iter().all(|own| share(*own, rect) == 0.0);
            let rect = draw.boxes.iter().find(free);
            let brought = |rect: &PixelRect| {
                let mut others = boxes(partner).into_iter();
                others.any(|other| share(other, rect) >= 0.1)
            };
            let rect = rect.filter(|rect| brought(rect));
            let [new, old, other] = [(&got, row), (&own, row), (&own, partner)]
                .map(|(batches, row)| row_image(&batches[0], row));
            let count = objects[0].row(row).len();
            match rect {
                None => {
                    kept += 1;
                    assert!(new == old && count == boxes(row).len());
                }
                Some(rect) => {
                    cuts += 1;
                    assert!(count > boxes(row).len());
                    for (x, y, pixel) in new.enumerate_pixels() {
                        let inside = (rect.left..rect.left + rect.width).contains(&x)
                            && (rect.top..rect.top + rect.height).contains(&y);
                        let want = if inside { &other } else { &old };
                        assert_eq!(pixel, want.get_pixel(x, y));
                    }
                    let added = objects[0].row(row).start + boxes(row).len();
                    let [l, t, r, b] = objects[0].boxes[added];
                    assert!(l >= rect.left as f32 && t >= rect.top as f32);
                    assert!(r <= (rect.left + rect.width) as f32);
                    assert!(b <= (rect.top + rect.height) as f32);
                    assert_eq!(objects[0].ids[added], partner as i64);
                }
            }
        }
    }
    assert!(cuts > 10 && kept > 10, "{cuts} {kept}");
}

/// Also of an order whose batches have rows without a sample, and with weights of 0.
#[test]
fn partners_are_samples_of_the_order() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    const NONE: u64 = u64::MAX;
    let given = Sampler::Given { num_samples: 12 };
    let weighted = Sampler::Weighted {
        weights: SampleWeights::Given,
        num_samples: Some(40),
    };
    for (sampler, batch, partner_window) in [
        (given, 2, None),
        (given, 3, None),
        (given, 3, Some(4)),
        (weighted, 4, None),
        (weighted, 4, Some(9)),
    ] {
        let make = |workers| {
            let joint = Mosaic {
                partner_window,
                ..mosaic(2)
            };
            let recipe = levels(base().then(joint));
            let builder = builder(&dir.path().join("images")).recipe(recipe);
            let builder = match sampler == weighted {
                true => builder.sample_weights((0..COUNT).map(|n| f64::from(n % 2)).collect()),
                false => builder,
            };
            let builder = builder.sampler(sampler).num_workers(workers);
            let mut loader = builder.batch_size(batch).epochs(1).build().unwrap();
            if sampler == given {
                let rows = [1, NONE, 3, 5, 7, NONE, 9, 11, 5, NONE, 3, 11];
                let of_three = [1, NONE, NONE, 3, 5, NONE, 7, 9, 11, 3, NONE, NONE];
                let order = if batch == 2 { rows } else { of_three };
                loader.set_order(0, &order).unwrap();
            }
            loader
        };
        let mut seen = BTreeSet::new();
        let mut loader = make(0);
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let rows = batch.status().iter().enumerate();
            for (row, _) in rows.filter(|(_, status)| **status == RowStatus::Ok) {
                let pixels = row_image(&batch, row);
                seen.extend(pixels.pixels().filter(|p| p.0 != [114; 3]).map(|p| p.0[1]));
            }
        }
        assert!(seen.iter().all(|id| id % 2 == 1), "{sampler:?}: {seen:?}");
        assert!(seen.len() >= 4, "{sampler:?}: {seen:?}");
        let (want, got) = (stream(&mut make(0), 1), stream(&mut make(2), 1));
        assert_same(&got, &want, &format!("{sampler:?}"));
    }
}

/// Of a mosaic, and of the mosaics that are mixed with it. The last window overlaps the one before.
#[test]
fn partners_of_a_window_are_beside_the_sample() {
    const WINDOW: u64 = 4;
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let window = Some(WINDOW as u32);
    let joint = Mosaic {
        partner_window: window,
        ..mosaic(2)
    };
    let mix = MixSamples {
        partner_window: window,
        ..MixSamples::default()
    };
    let recipe = levels(base().then(joint).then(RandomCrop::new(SIDE)).then(mix));
    let builder = builder(&dir.path().join("images")).recipe(recipe);
    let (batches, drawn) = epoch(builder.num_workers(2));
    let mut offsets = BTreeSet::new();
    for (batch, drawn) in batches.iter().zip(&drawn) {
        for (row, joints) in drawn.iter().enumerate() {
            let own = batch.ids()[row];
            let first = (own - own % WINDOW).min(u64::from(COUNT) - WINDOW);
            for id in joints.iter().flat_map(|draw| &draw.partners) {
                assert!((first..first + WINDOW).contains(id), "{own}: {id}");
                offsets.insert(*id as i64 - own as i64);
            }
        }
    }
    assert!(offsets.len() > 4, "{offsets:?}");
}

/// A partner that cannot be read fails the row. Its text names the partner, and the row gets a
/// substitute with partners of its own.
#[test]
fn a_bad_partner_fails_the_row_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let bad = 5;
    fs::write(dir.path().join("images/05.png"), b"no picture").unwrap();
    let make = |on_error, workers| {
        with_objects(dir.path(), COUNT, keeps_all())
            .recipe(levels(base().then(mosaic(2))))
            .on_error(on_error)
            .num_workers(workers)
            .epochs(1)
    };
    let mut loader = make(OnError::Skip, 2).shuffle(false).build().unwrap();
    let batches: Vec<Batch> = loader
        .epoch()
        .map(|batch| batch.unwrap().detach().unwrap())
        .collect();
    let mut named = 0;
    for batch in &batches {
        let drawn = loader.drawn(Position::new(batch.epoch(), batch.number()));
        for (row, drawn) in drawn.iter().enumerate() {
            let joints = drawn.steps.as_ref().map(|steps| &steps.joints);
            let has_bad = joints.is_none_or(|joints| joints[0].1.partners.contains(&bad));
            let failed = batch.status()[row] == RowStatus::Failed;
            assert_eq!(failed, has_bad, "row {row}");
            let fault = batch.faults().iter().find(|fault| fault.row == row);
            if let (Some(fault), true) = (fault, batch.ids()[row] != bad) {
                let reason = &fault.fault.reason;
                let want = "its partner, sample 5 (";
                assert!(
                    reason.contains(want) && reason.contains("05.png"),
                    "{reason}"
                );
                named += 1;
            }
        }
    }
    assert!(named > 0);
    let want = stream(&mut make(OnError::Substitute, 0).build().unwrap(), 1);
    let replaced = want
        .iter()
        .filter(|row| row.status == RowStatus::Substituted);
    assert!(replaced.count() > 1);
    for workers in [1, 3] {
        let got = stream(&mut make(OnError::Substitute, workers).build().unwrap(), 1);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
}

#[test]
fn a_data_set_of_one_picture_is_its_own_partner() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), 1);
    let builder = with_objects(dir.path(), 1, keeps_all())
        .recipe(levels(base().then(mosaic(2))))
        .num_workers(1);
    let (batches, drawn) = epoch(builder);
    assert_eq!(drawn[0][0][0].partners, [0, 0, 0]);
    let places = places(&[0; 4], drawn[0][0][0].center);
    assert!(row_image(&batches[0], 0) == reference(&[0; 4], &places));
    assert_eq!(rows(&batches[0]).len(), 1);
}

#[test]
fn what_joints_cannot_have_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let images = dir.path().join("images");
    let joined = || levels(base().then(mosaic(2)));
    let refused = |builder: LoaderBuilder, text: &str| {
        let e = builder.num_workers(0).build().unwrap_err().to_string();
        assert!(e.contains(text), "{e}");
    };
    let cut = levels(base().then(mosaic(2)).then(CutSamples::default()));
    refused(builder(&images).recipe(cut), "give `objects`");
    refused(
        builder(&images).recipe(joined()).max_scratch(15_000),
        "`max_scratch` allows",
    );
    let window = Mosaic {
        partner_window: Some(4),
        ..mosaic(2)
    };
    let identities = Sampler::Identity {
        per_id: 1,
        prob: IdentityProb::IdAvg,
    };
    let windows = builder(&images).recipe(levels(base().then(window)));
    refused(windows.sampler(identities), "remove partner_window");
    for partner_window in [Some(0), Some(1), Some(1_000_001)] {
        let window = Mosaic {
            partner_window,
            ..mosaic(2)
        };
        refused(
            builder(&images).recipe(levels(base().then(window))),
            "use 2 to 1000000",
        );
    }
    let errors = ObjectRule {
        max_objects: Some(1),
        overflow: ObjectOverflow::Error,
        ..keeps_all()
    };
    let mut loader = with_objects(dir.path(), COUNT, errors)
        .recipe(joined())
        .on_error(OnError::Skip)
        .num_workers(1)
        .build()
        .unwrap();
    let faults = loader
        .epoch()
        .flat_map(|batch| batch.unwrap().faults().to_vec());
    let reasons: Vec<String> = faults.map(|fault| fault.fault.reason).collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("over `max_objects` = 1"))
    );
}

/// The plan counts the room of partners' objects, the canvases, and the steps on them.
#[test]
fn the_plan_counts_partners() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path(), COUNT);
    let memory = |recipe: Recipe, rule: ObjectRule| {
        let builder = with_objects(dir.path(), COUNT, rule).recipe(levels(recipe));
        builder.num_workers(2).memory_plan(0).unwrap().memory
    };
    let large = Mosaic::new(1000);
    let alone = base().then(CenterCrop::new(16));
    let joined = base().then(large).then(CenterCrop::new(16));
    let (a, b) = (
        memory(alone, keeps_all()),
        memory(joined.clone(), keeps_all()),
    );
    assert!(b.slot_bytes > a.slot_bytes);
    let canvases = 3 * (2000 * 2000 + 1000 * 1000);
    assert!(b.scratch_bytes >= a.scratch_bytes + canvases, "{b:?}");
    let one = ObjectRule {
        max_objects: Some(1),
        ..keeps_all()
    };
    assert!(memory(joined, one).slot_bytes < b.slot_bytes);
}
