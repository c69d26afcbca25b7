//! Objects that are pasted onto other pictures, with their masks and the masks of classes: compared
//! with a reference, and one stream for any number of workers, through deaths, from any point on.

use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::order::MultiScale;
use featherload::recipe::{
    CenterCrop, CopyPaste, CutSamples, JointDraw, MixSamples, Mosaic, RandomCrop,
    RandomHorizontalFlip, RandomResizedCrop, Resize, Size,
};
use featherload::targets::TargetStyle;
use featherload::{
    Batch, DataType, InstanceMasks, LoaderBuilder, MaskOptions, MaskRule, MemoryLayout,
    ObjectOptions, ObjectRule, Position, Recipe, RowStatus, State,
};
use image::{GrayImage, Luma, Rgb, RgbImage};

use crate::common::rows::{assert_same, stream, take};
use crate::common::{builder, npy};

pub(super) const COUNT: u32 = 14;
/// Odd sides.
const WIDTH: u32 = 37;
const HEIGHT: u32 = 29;
const SIZE: Size = Size {
    height: HEIGHT,
    width: WIDTH,
};
const IGNORE: u8 = 255;

/// An object: rectangles of left, top, right and bottom, which are its outline.
struct Painted {
    rings: Vec<[u32; 4]>,
    crowd: bool,
    has_outline: bool,
}

impl Painted {
    fn contains(&self, x: u32, y: u32) -> bool {
        let inside = |[l, t, r, b]: &[u32; 4]| (*l..*r).contains(&x) && (*t..*b).contains(&y);
        self.rings.iter().any(inside)
    }

    fn bounds(&self) -> [f32; 4] {
        bounds(|x, y| self.contains(x, y)).unwrap()
    }

    /// The pixels of its mask. None are set without an outline.
    fn mask(&self) -> Vec<bool> {
        let pixels = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        let pixels = pixels.map(|(x, y)| self.has_outline && self.contains(x, y));
        pixels.collect()
    }
}

/// The smallest box of the pixels inside.
fn bounds(inside: impl Fn(u32, u32) -> bool) -> Option<[f32; 4]> {
    let mut all: Option<[u32; 4]> = None;
    for y in 0..HEIGHT {
        for x in (0..WIDTH).filter(|x| inside(*x, y)) {
            let [l, t, r, b] = all.unwrap_or([x, y, x + 1, y + 1]);
            all = Some([l.min(x), t.min(y), r.max(x + 1), b.max(y + 1)]);
        }
    }
    all.map(|edges| edges.map(|v| v as f32))
}

/// The objects of picture `n`, which touch no other: none in each fourth, one large one in each
/// fifth, one in each cell of a grid in the others.
fn painted(n: u32) -> Vec<Painted> {
    let one = |rings, crowd, has_outline| Painted {
        rings,
        crowd,
        has_outline,
    };
    if n.is_multiple_of(4) {
        return Vec::new();
    }
    if n.is_multiple_of(5) {
        return vec![one(vec![[1, 2, WIDTH - 1, HEIGHT]], false, true)];
    }
    let cell = |k: u32| {
        let (left, top) = (12 * (k % 3) + (n + k) % 3, 14 * (k / 3) + (n * k) % 3);
        let (width, height) = (4 + (n + 2 * k) % 5, 4 + (2 * n + k) % 4);
        let mut rings = vec![[left, top, left + width, top + height]];
        if k % 2 == 1 {
            // Not a rectangle, and of two rings.
            rings.push([left, top + height, left + 2, top + height + 3]);
        }
        one(rings, k == 3, k != 4)
    };
    (0..5 + n % 2).map(cell).collect()
}

fn colour(n: u32, k: usize) -> Rgb<u8> {
    Rgb([200 + k as u8, n as u8, 99])
}

fn picture(n: u32) -> RgbImage {
    let painted = painted(n);
    RgbImage::from_fn(WIDTH, HEIGHT, |x, y| {
        match painted.iter().position(|object| object.contains(x, y)) {
            Some(k) => colour(n, k),
            None => Rgb([x as u8, n as u8, y as u8]),
        }
    })
}

/// The label of a class for a pixel of this colour.
fn label(color: &Rgb<u8>) -> u8 {
    match color.0 {
        [114, 114, 114] => IGNORE,
        [red, n, _] if red >= 200 => n + 20 * (red - 199),
        [_, n, _] => n,
    }
}

pub(super) fn write_images(dir: &Path) {
    for folder in ["images", "labels"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    for n in 0..COUNT {
        let image = picture(n);
        let labels = GrayImage::from_fn(WIDTH, HEIGHT, |x, y| Luma([label(image.get_pixel(x, y))]));
        image.save(dir.join(format!("images/{n:02}.png"))).unwrap();
        labels.save(dir.join(format!("labels/{n:02}.png"))).unwrap();
    }
}

fn id(n: u32, k: usize) -> i64 {
    i64::from(n) * 100 + k as i64
}

fn list(polygons: bool) -> ObjectList {
    let mut list = ObjectList::new(ObjectListOptions {
        keypoints: 1,
        keypoint_swap: vec![0],
        polygons,
        ..ObjectListOptions::default()
    });
    for n in 0..COUNT {
        let painted = painted(n);
        let ring = |[l, t, r, b]: &[u32; 4]| {
            [[l, t], [r, t], [r, b], [l, b]].map(|[x, y]| [f64::from(*x), f64::from(*y)])
        };
        let rings = painted.iter().map(|object| match object.has_outline {
            true => object
                .rings
                .iter()
                .map(|edges| ring(edges).to_vec())
                .collect(),
            false => Vec::new(),
        });
        list.push(&ItemObjects {
            labels: (0..painted.len()).map(|k| k as i64 + 7).collect(),
            ids: (0..painted.len()).map(|k| id(n, k)).collect(),
            crowd: painted.iter().map(|object| object.crowd).collect(),
            boxes: painted
                .iter()
                .map(|object| object.bounds().map(f64::from))
                .collect(),
            keypoints: painted.iter().map(keypoint).collect(),
            polygons: if polygons {
                rings.collect()
            } else {
                Vec::new()
            },
            ..ItemObjects::default()
        })
        .unwrap();
    }
    list
}

/// In the middle of the first pixel.
fn keypoint(object: &Painted) -> [f32; 3] {
    let [left, top, ..] = object.rings[0];
    [left as f32 + 0.5, top as f32 + 0.5, 2.0]
}

pub(super) fn with_objects(dir: &Path, rule: ObjectRule) -> LoaderBuilder {
    let objects = ObjectOptions::default().rule(rule);
    let objects = objects.listed(list(true)).unwrap();
    builder(&dir.join("images")).objects(objects)
}

pub(super) fn with_labels(builder: LoaderBuilder) -> LoaderBuilder {
    let rule = MaskRule {
        ignore: Some(i64::from(IGNORE)),
        ..MaskRule::default()
    };
    builder.masks(MaskOptions::new("../labels/{stem}.png").rule(rule))
}

/// Drops nothing but what joints drop.
pub(super) fn keeps_all(masks: Option<InstanceMasks>) -> ObjectRule {
    ObjectRule {
        min_size: Some(0.0),
        min_area: Some(0.0),
        masks,
        ..ObjectRule::default()
    }
}

pub(super) fn levels(recipe: Recipe) -> Recipe {
    recipe
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
}

fn base() -> Recipe {
    Recipe::new("pasted").then(CenterCrop::new(SIZE))
}

/// All batches of the first epoch, and what was drawn for each row.
fn epoch(builder: LoaderBuilder) -> Vec<(Batch, Vec<Vec<JointDraw>>)> {
    let mut loader = builder.shuffle(false).build().unwrap();
    let batches: Vec<Batch> = loader
        .epoch()
        .map(|batch| batch.unwrap().detach().unwrap())
        .collect();
    let drawn = batches.into_iter().map(|batch| {
        let rows = loader.drawn(Position::new(batch.epoch(), batch.number()));
        let joints = rows.into_iter().map(|row| {
            let joints = row.steps.unwrap().joints;
            joints.into_iter().map(|(_, draw)| draw).collect()
        });
        let joints = joints.collect();
        (batch, joints)
    });
    drawn.collect()
}

fn row_image(batch: &Batch, row: usize, (width, height): (u32, u32)) -> RgbImage {
    let bytes = batch.row(row).unwrap();
    RgbImage::from_raw(width, height, bytes.parts().unwrap().concat()).unwrap()
}

/// One object of a row.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    id: i64,
    label: i64,
    edges: [f32; 4],
    seen: f32,
    mask: Vec<bool>,
}

fn expected(n: u32) -> Vec<Expected> {
    let objects = painted(n).into_iter().enumerate();
    objects
        .map(|(k, object)| Expected {
            id: id(n, k),
            label: k as i64 + 7,
            edges: object.bounds(),
            seen: 2.0,
            mask: object.mask(),
        })
        .collect()
}

fn got(batch: &Batch, row: usize) -> Vec<Expected> {
    let objects = batch.objects().unwrap();
    let masks = batch.instance_masks(row).unwrap();
    assert_eq!(masks.shape()[1..], [HEIGHT as usize, WIDTH as usize]);
    let masks = masks.bytes().chunks_exact((WIDTH * HEIGHT) as usize);
    assert_eq!(masks.len(), objects.row(row).len());
    let one = |(object, mask): (usize, &[u8])| Expected {
        id: objects.ids[object],
        label: objects.labels[object],
        edges: objects.boxes[object],
        seen: objects.keypoints[object][2],
        mask: mask.iter().map(|byte| *byte == 1).collect(),
    };
    objects.row(row).zip(masks).map(one).collect()
}

/// The share of a box that another one covers.
fn share_covered(own: [f32; 4], other: [f32; 4]) -> f64 {
    let ([x0, y0, x1, y1], [l, t, r, b]) = (own.map(f64::from), other.map(f64::from));
    let inside = (x1.min(r) - x0.max(l)).max(0.0) * (y1.min(b) - y0.max(t)).max(0.0);
    inside / ((x1 - x0) * (y1 - y0))
}

/// torchvision's rule, pixel by pixel: the partner's pixels under the pasted masks, own masks without
/// them, boxes of what is left, and no object without a pixel.
#[test]
fn pasted_objects_are_those_of_a_reference() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let plain = CopyPaste::default();
    let cases = [
        plain,
        CopyPaste { p: 0.5, ..plain },
        CopyPaste {
            max_overlap: 0.3,
            ..plain
        },
        CopyPaste {
            min_visibility: 0.6,
            ..plain
        },
    ];
    for (case, op) in cases.into_iter().enumerate() {
        let (mut alone, mut none, mut dropped, mut cut, mut pasted_count) = (0, 0, 0, 0, 0);
        let (mut candidates, mut refused, mut own_less) = (0, 0, 0);
        for seed in 0..6 {
            let rule = keeps_all(Some(InstanceMasks::Full));
            let builder = with_labels(with_objects(dir.path(), rule))
                .recipe(levels(base().then(op)))
                .num_workers(1)
                .seed(seed);
            for (batch, drawn) in epoch(builder) {
                for (row, draw) in drawn.iter().enumerate() {
                    let own_id = batch.ids()[row] as u32;
                    let (got, image) = (got(&batch, row), row_image(&batch, row, (WIDTH, HEIGHT)));
                    let own = expected(own_id);
                    let Some(partner) = draw[0].partners.first().map(|id| *id as u32) else {
                        alone += 1;
                        assert!(got == own && image == picture(own_id));
                        continue;
                    };
                    // Of a picture with itself it cannot be seen which objects were pasted.
                    if partner == own_id {
                        continue;
                    }
                    own_less += usize::from(own.is_empty());
                    let other = painted(partner);
                    let may_be: Vec<_> = expected(partner)
                        .into_iter()
                        .zip(&other)
                        .filter(|(_, object)| object.has_outline && !object.crowd)
                        .map(|(object, _)| object)
                        .collect();
                    let all = may_be.len();
                    let covers = |object: &Expected| {
                        let mut own = own.iter();
                        own.all(|own| share_covered(own.edges, object.edges) <= op.max_overlap)
                    };
                    let may_be: Vec<_> = may_be.into_iter().filter(|o| covers(o)).collect();
                    refused += all - may_be.len();
                    let is_chosen = |object: &&Expected| got.iter().any(|got| got.id == object.id);
                    let pasted: Vec<_> = may_be.iter().filter(is_chosen).cloned().collect();
                    assert_eq!(pasted.is_empty(), may_be.is_empty(), "{own_id} {partner}");
                    none += usize::from(pasted.is_empty());
                    candidates += may_be.len();
                    pasted_count += pasted.len();
                    let alpha: Vec<bool> = (0..(WIDTH * HEIGHT) as usize)
                        .map(|at| pasted.iter().any(|object| object.mask[at]))
                        .collect();
                    let mut want = Vec::new();
                    for mut object in own {
                        let [x, y] = [object.edges[0] as u32, object.edges[1] as u32];
                        if alpha[(y * WIDTH + x) as usize] {
                            object.seen = 1.0;
                        }
                        let count = |mask: &[bool]| mask.iter().filter(|set| **set).count();
                        let before = count(&object.mask);
                        let rest = object
                            .mask
                            .iter()
                            .zip(&alpha)
                            .map(|(own, new)| *own && !new);
                        object.mask = rest.collect();
                        let left = count(&object.mask);
                        if left == before {
                            want.push(object);
                            continue;
                        }
                        let is_enough = left as f64 / before as f64 >= op.min_visibility;
                        let inside = |x: u32, y: u32| object.mask[(y * WIDTH + x) as usize];
                        match bounds(inside).filter(|_| is_enough) {
                            Some(edges) => {
                                cut += 1;
                                object.edges = edges;
                                want.push(object);
                            }
                            None => dropped += 1,
                        }
                    }
                    want.extend(pasted);
                    assert_eq!(got, want, "case {case}: {own_id} with {partner}");
                    let (below, above) = (picture(own_id), picture(partner));
                    let labels = batch.row(row).unwrap().mask().unwrap().unwrap();
                    for (at, (x, y, pixel)) in image.enumerate_pixels().enumerate() {
                        let from = if alpha[at] { &above } else { &below };
                        assert_eq!(pixel, from.get_pixel(x, y));
                        assert_eq!(labels[at], label(pixel));
                    }
                }
            }
        }
        let counts = (alone, none, dropped, candidates, refused, own_less);
        assert_eq!(alone > 20, op.p < 1.0, "{counts:?}");
        assert_eq!(refused > 20, op.max_overlap < 1.0, "{counts:?}");
        assert!(none > 5 && own_less > 5, "{counts:?}");
        let covers_much = cut > 10 && dropped > 5;
        assert!(covers_much || op.max_overlap < 1.0, "{counts:?} {cut}");
        // 1 - (1 - 1/n)^n of n objects: 68 % of four, 70 % of three, and each lone one.
        let share = f64::from(pasted_count as u32) / f64::from(candidates as u32);
        assert!((0.6..0.95).contains(&share), "{share}, {counts:?}");
    }
}

/// Through all joints, crops and flips, masks of objects and of classes go where the pixels go.
#[test]
fn masks_are_where_the_painted_pixels_are() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let mosaic = |grid| Mosaic {
        grid,
        p: 0.8,
        ..Mosaic::new(SIZE)
    };
    let crop = RandomCrop::new(Size {
        height: 41,
        width: 45,
    });
    let recipe = |grid| {
        let recipe = base()
            .then(RandomHorizontalFlip::default())
            .then(mosaic(grid))
            .then(crop)
            .then(CutSamples {
                p: 0.7,
                // So each object of which a pixel is shown is in the row.
                min_visibility: 0.0,
                ..CutSamples::default()
            });
        recipe
            .then(CopyPaste {
                p: 0.8,
                ..CopyPaste::default()
            })
            .then(RandomHorizontalFlip::default())
    };
    for (grid, masks, step) in [
        (2, InstanceMasks::Full, 1),
        (3, InstanceMasks::Quarter, 4),
        (3, InstanceMasks::Full, 1),
    ] {
        let (mut compared, mut filled) = (0, 0);
        for seed in 0..3 {
            let builder = with_labels(with_objects(dir.path(), keeps_all(Some(masks))))
                .recipe(levels(recipe(grid)))
                .num_workers(2)
                .seed(seed);
            for (batch, _) in epoch(builder) {
                let objects = batch.objects().unwrap();
                for row in 0..batch.len() {
                    assert_eq!(batch.status()[row], RowStatus::Ok);
                    let image = row_image(&batch, row, (45, 41));
                    let labels = batch.row(row).unwrap().mask().unwrap().unwrap();
                    for (pixel, found) in image.pixels().zip(labels) {
                        assert_eq!(*found, label(pixel), "{pixel:?}");
                        filled += usize::from(*found == IGNORE);
                    }
                    let pixels = batch.instance_masks(row).unwrap();
                    let [_, height, width] = pixels.shape();
                    let mut each = pixels.bytes().chunks_exact(height * width);
                    let range = objects.row(row);
                    let ids = &objects.ids[range.clone()];
                    for number in ids {
                        let mask = each.next().unwrap();
                        let (n, k) = ((number / 100) as u32, (number % 100) as usize);
                        // Two of one picture cannot be told apart.
                        let is_alone = ids.iter().filter(|id| *id == number).count() == 1;
                        if !is_alone || !painted(n)[k].has_outline {
                            continue;
                        }
                        for (at, inside) in mask.iter().enumerate() {
                            let (x, y) = ((at % width) as u32 * step, (at / width) as u32 * step);
                            let pixel = image.get_pixel(x, y);
                            let is_own = *pixel == colour(n, k);
                            assert_eq!(*inside == 1, is_own, "{number} at {x}, {y}");
                            compared += usize::from(is_own);
                        }
                    }
                    assert!(each.next().is_none());
                }
            }
        }
        assert!(compared > 2000 / (step * step) as usize, "{compared}");
        assert!(filled > 300, "{filled}");
    }
}

/// All joints that masks can go through, with a resize and several sizes of batches.
fn all_joints() -> Recipe {
    let recipe = base()
        .then(RandomHorizontalFlip::default())
        .then(Mosaic {
            p: 0.7,
            ..Mosaic::new(SIZE)
        })
        .then(RandomResizedCrop::new(33))
        .then(CutSamples {
            p: 0.5,
            ..CutSamples::default()
        })
        .then(CopyPaste {
            p: 0.8,
            max_overlap: 0.9,
            min_visibility: 0.05,
            partner_window: Some(7),
        })
        .then(RandomHorizontalFlip::default());
    levels(recipe)
}

#[test]
fn the_stream_is_the_same_for_any_number_of_workers_and_from_any_point() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    for (style, masks) in [
        (TargetStyle::Torchvision, Some(InstanceMasks::Full)),
        (TargetStyle::Ultralytics, Some(InstanceMasks::Quarter)),
        (TargetStyle::Hf, None),
    ] {
        let make = |workers| {
            let rule = ObjectRule {
                style,
                masks,
                max_objects: Some(9),
                ..ObjectRule::default()
            };
            let builder = with_labels(with_objects(dir.path(), rule)).recipe(all_joints());
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
        let rest = stream(&mut make(3).resume(state).build().unwrap(), 2);
        assert_same(&[first, rest].concat(), &want, "resumed");
    }
}

/// Masks change no draw and no pixel, so pasted pixels are the same without masks in batches.
#[test]
fn masks_in_batches_change_no_pixel() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let of = |masks, labels| {
        let builder = with_objects(dir.path(), keeps_all(masks)).recipe(all_joints());
        let builder = if labels {
            with_labels(builder)
        } else {
            builder
        };
        let batches = epoch(builder.num_workers(1));
        let rows = batches.iter().flat_map(|(batch, _)| {
            let objects = batch.objects().unwrap();
            (0..batch.len()).map(|row| (row_image(batch, row, (33, 33)), objects.row_bytes(row)))
        });
        rows.collect::<Vec<_>>()
    };
    let want = of(None, false);
    assert!(of(Some(InstanceMasks::Full), false) == want);
    assert!(of(Some(InstanceMasks::Quarter), true) == want);
    assert!(of(None, true) == want);
}

/// The sizes of batches are those of the last stage.
#[test]
fn batches_of_several_sizes_are_joined_before_they_get_their_size() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let recipe = levels(
        base()
            .then(Mosaic::new(SIZE))
            .then(CopyPaste::default())
            .then(Resize::exact(32, 32)),
    );
    let scales = MultiScale::new([(32, 32), (64, 32), (32, 96)]);
    let make = |workers| {
        let rule = keeps_all(Some(InstanceMasks::Full));
        let builder = with_labels(with_objects(dir.path(), rule)).recipe(recipe.clone());
        let builder = builder.multi_scale(scales.clone()).epochs(1);
        builder.num_workers(workers).batch_size(3)
    };
    let want = stream(&mut make(0).build().unwrap(), 1);
    for workers in [1, 3] {
        let got = stream(&mut make(workers).build().unwrap(), 1);
        assert_same(&got, &want, &format!("{workers} workers"));
    }
    let mut sizes = Vec::new();
    for batch in make(2).build().unwrap().epoch() {
        let batch = batch.unwrap();
        let objects = batch.objects().unwrap();
        for row in 0..batch.len() {
            let [height, width] = objects.sizes[row];
            sizes.push([height, width]);
            let masks = batch.instance_masks(row).unwrap();
            assert_eq!(masks.shape()[1..], [height as usize, width as usize]);
            let labels = batch.row(row).unwrap().mask().unwrap().unwrap();
            assert_eq!(labels.len(), (height * width) as usize);
            // All of the canvas is in the row, so is what it was made of.
            assert!(labels.iter().any(|label| *label != IGNORE));
            let counts = masks.bytes().chunks_exact((height * width) as usize);
            assert!(counts.clone().any(|mask| mask.contains(&1)) || counts.len() == 0);
            for edges in &objects.boxes[objects.row(row)] {
                let [_, _, right, bottom] = *edges;
                assert!(
                    right <= width as f32 && bottom <= height as f32,
                    "{edges:?}"
                );
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 1, "{sizes:?}");
}

#[test]
fn what_cannot_be_pasted_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let images = dir.path().join("images");
    let refused = |builder: LoaderBuilder, text: &str| {
        let e = builder.num_workers(0).build().unwrap_err().to_string();
        assert!(e.contains(text), "{e}");
    };
    let pasted = || levels(base().then(CopyPaste::default()));
    let none = "copy_paste pastes objects, and these images have none with polygons";
    refused(builder(&images).recipe(pasted()), none);
    let without = ObjectOptions::default().listed(list(false)).unwrap();
    refused(builder(&images).objects(without).recipe(pasted()), none);
    let mixed = levels(base().then(MixSamples::default()));
    refused(
        with_labels(builder(&images)).recipe(mixed),
        "mix_samples mixes pixels of two images, so a pixel has no single label",
    );
}

/// The plan counts the masks' own files, which may be larger than all canvases.
#[test]
fn the_plan_counts_the_files_of_masks() {
    let dir = tempfile::tempdir().unwrap();
    let [images, masks] = ["images", "masks"].map(|name| dir.path().join(name));
    fs::create_dir(&images).unwrap();
    fs::create_dir(&masks).unwrap();
    for n in 0..2 {
        let image = RgbImage::from_pixel(600, 400, Rgb([n, 1, 2]));
        image.save(images.join(format!("{n}.png"))).unwrap();
        let mask = npy("(400, 600)", u64::from(n));
        fs::write(masks.join(format!("{n}.npy")), mask).unwrap();
    }
    let recipe = levels(
        Recipe::new("small")
            .then(Resize::exact(16, 16))
            .then(Mosaic::new(16))
            .then(CenterCrop::new(16)),
    );
    let bytes = |masks: bool| {
        let builder = builder(&images).recipe(recipe.clone()).num_workers(2);
        let builder = match masks {
            true => builder.masks(MaskOptions::new("../masks/{stem}.npy")),
            false => builder,
        };
        builder.memory_plan(0).unwrap().memory.scratch_bytes
    };
    let (with, without) = (bytes(true), bytes(false));
    assert!(with >= without + 3 * 600 * 400, "{with} and {without}");
}

/// The plan counts the labels of canvases, and the bits of the masks of all pictures.
#[test]
fn the_plan_counts_masks() {
    let dir = tempfile::tempdir().unwrap();
    write_images(dir.path());
    let side = 1000;
    let recipe = levels(
        Recipe::new("large")
            .then(Resize::exact(side, side))
            .then(CopyPaste::default())
            .then(CenterCrop::new(16)),
    );
    let memory = |masks, labels: bool, recipe: &Recipe| {
        let builder = with_objects(dir.path(), keeps_all(masks)).recipe(recipe.clone());
        let builder = if labels {
            with_labels(builder)
        } else {
            builder
        };
        builder.num_workers(2).memory_plan(0).unwrap().memory
    };
    let pixels = u64::from(side * side);
    let mixed = levels(
        Recipe::new("large")
            .then(Resize::exact(side, side))
            .then(MixSamples::default())
            .then(CenterCrop::new(16)),
    );
    let without = memory(None, false, &mixed).scratch_bytes;
    let pasted = memory(None, false, &recipe).scratch_bytes;
    // Six objects of two pictures, a bit for each pixel, and the labels of a row and a canvas.
    assert!(
        pasted >= without + 12 * pixels / 8 + 2 * 3 * pixels,
        "{pasted}"
    );
    let both = memory(None, true, &recipe).scratch_bytes;
    assert!(both >= pasted + 2 * 3 * pixels, "{both}");
    let rows = memory(Some(InstanceMasks::Full), false, &recipe).slot_bytes;
    assert!(rows > memory(None, false, &recipe).slot_bytes + 16 * 16 * 12);
}
