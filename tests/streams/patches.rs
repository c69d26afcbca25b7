//! Rows of patches through real loaders: the values of transformers' processors, dense batches of
//! rows with any number of patches, alike for any number of workers.

use std::fs;
use std::path::Path;

use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::recipe::{
    CenterCrop, CutRule, Grayscale, PatchGrid, PatchRule, PatchStyle, Patches, RandomApply,
    RandomHorizontalFlip, Resize, Rotate90,
};
use featherload::tests_support::unpack_goldens;
use featherload::{
    Batch, DataType, EpochTail, FaultKind, InstanceMasks, Loader, LoaderBuilder, MemoryLayout,
    ObjectOptions, ObjectRule, OnError, Rank, Recipe, RowStatus, Sampler, State,
};
use serde::Deserialize;

use crate::common::rows::{assert_same, stream, take};
use crate::common::{Picture, builder, sized_folder};
use crate::full::with_orientation;

const IMAGES: u64 = 23;

fn size(i: u64) -> (u16, u16) {
    (9 + (i * 37 % 90) as u16, 12 + (i * 53 % 110) as u16)
}

fn data() -> tempfile::TempDir {
    sized_folder(IMAGES, size)
}

fn patches(style: PatchStyle) -> Patches {
    match style {
        PatchStyle::Qwen => Patches::qwen(7).between(784, 5000),
        PatchStyle::Siglip2 => Patches::siglip2(8, 30),
        PatchStyle::Pix2struct => Patches::pix2struct(8, 30),
    }
}

fn rule(style: PatchStyle) -> PatchRule {
    match style {
        PatchStyle::Qwen => PatchRule::qwen(7, 784, 5000),
        PatchStyle::Siglip2 => PatchRule::siglip2(8, 30),
        PatchStyle::Pix2struct => PatchRule::pix2struct(8, 30),
    }
}

const STYLES: [PatchStyle; 3] = [
    PatchStyle::Qwen,
    PatchStyle::Siglip2,
    PatchStyle::Pix2struct,
];

fn make(dir: &Path, style: PatchStyle, dtype: DataType) -> LoaderBuilder {
    let recipe = Recipe::new("patches")
        .then(RandomHorizontalFlip::default())
        .then(patches(style))
        .with_dtype(dtype);
    builder(dir)
        .recipe(recipe)
        .batch_size(5)
        .on_error(OnError::Stop)
}

fn grids(batch: &Batch) -> Vec<Option<PatchGrid>> {
    batch.patches().unwrap().grids().collect()
}

#[test]
fn streams_of_patches_are_alike_for_any_workers_and_from_any_point() {
    let dir = data();
    let types = [DataType::Bf16, DataType::U8, DataType::F32];
    for (style, dtype) in STYLES.into_iter().zip(types) {
        let make = || make(dir.path(), style, dtype);
        let full = stream(&mut make().num_workers(0).build().unwrap(), 2);
        for workers in [1, 2, 8] {
            let mut loader = make().num_workers(workers).build().unwrap();
            let what = format!("{style:?}, {workers} workers");
            assert_same(&stream(&mut loader, 2), &full, &what);
        }
        for (taken, before, after) in [(1, 0, 2), (3, 2, 0), (7, 1, 1)] {
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
fn all_patches_of_a_batch_are_one_tensor() {
    let dir = data();
    for style in STYLES {
        let rule = rule(style);
        let mut loader = make(dir.path(), style, DataType::U8)
            .tail(EpochTail::Pad)
            .num_workers(1)
            .build()
            .unwrap();
        let (mut images, mut padding) = (0, 0);
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let found = batch.patches().unwrap();
            assert_eq!(found.rule(), &CutRule::Patches(rule));
            let all = batch.patch_values::<u8>().unwrap();
            let values = rule.patch_values();
            let mut rows = Vec::new();
            for ((row, grid), count) in batch.rows().zip(found.grids()).zip(found.counts()) {
                let wanted = match row.status() {
                    RowStatus::Padding => None,
                    _ => {
                        let (height, width) = size(row.id());
                        Some(rule.grid((height.into(), width.into())).unwrap())
                    }
                };
                assert_eq!(grid, wanted);
                assert_eq!(count, grid.map_or(0, |grid| grid.patches()));
                let resized = grid.map_or((0, 0), |grid| grid.resized(rule.patch_size));
                assert_eq!(row.size(), (resized.0 as usize, resized.1 as usize));
                let bytes = row.bytes().unwrap();
                let in_row = match style {
                    PatchStyle::Qwen => count as usize,
                    PatchStyle::Siglip2 | PatchStyle::Pix2struct => 30,
                };
                assert_eq!(row.shape(), [1, in_row, values]);
                assert_eq!(bytes.len(), in_row * values);
                let (own, after) = bytes.split_at(count as usize * values);
                assert!(after.iter().all(|v| *v == 0));
                assert_eq!(own.iter().any(|v| *v != 0), wanted.is_some());
                rows.extend_from_slice(bytes);
                images += u64::from(wanted.is_some());
                padding += u64::from(wanted.is_none());
            }
            assert_eq!(all, rows);
            let shape = match style {
                PatchStyle::Qwen => vec![all.len() / values, values],
                PatchStyle::Siglip2 | PatchStyle::Pix2struct => vec![5, 30, values],
            };
            assert_eq!(found.shape(), shape);
            assert!(batch.pixels().unwrap_err().to_string().contains("patches"));
            assert!(batch.shape().is_err());
            assert!(batch.patch_values::<f32>().is_err());
        }
        assert_eq!((images, padding), (IMAGES, 2));
    }
}

#[test]
fn images_that_fail_keep_the_places_of_the_others() {
    let dir = data();
    // Its header can be read, and the rest cannot.
    let whole = Picture::rgb(60, 40, 1).encode();
    fs::write(dir.path().join("broken.jpg"), &whole[..whole.len() * 2 / 3]).unwrap();
    fs::write(dir.path().join("text.jpg"), "no picture").unwrap();
    fs::write(
        dir.path().join("thin.jpg"),
        Picture::rgb(401, 2, 3).encode(),
    )
    .unwrap();
    for style in STYLES {
        let rule = rule(style);
        let make = || {
            let loader = make(dir.path(), style, DataType::U8).on_error(OnError::Skip);
            loader.num_workers(2).build().unwrap()
        };
        let mut reasons = Vec::new();
        for batch in make().epoch() {
            let batch = batch.unwrap();
            let patches = grids(&batch);
            for fault in batch.faults() {
                let name = fault.path.file_name().unwrap().to_str().unwrap().to_owned();
                let row = batch.row(fault.row).unwrap();
                assert_eq!(row.status(), RowStatus::Failed);
                assert!(row.bytes().unwrap().iter().all(|v| *v == 0));
                let wanted = match &*name {
                    "broken.jpg" => rule.grid((40, 60)).ok(),
                    "thin.jpg" => rule.grid((2, 401)).ok(),
                    _ => None,
                };
                assert_eq!(patches[fault.row], wanted, "{name}");
                reasons.push((name, fault.fault.kind, fault.fault.reason.clone()));
            }
        }
        reasons.sort_by(|a, b| a.0.cmp(&b.0));
        let names: Vec<&str> = reasons.iter().map(|of| &*of.0).collect();
        match style {
            PatchStyle::Qwen => {
                assert_eq!(names, ["broken.jpg", "text.jpg", "thin.jpg"]);
                assert_eq!(reasons[2].1, FaultKind::TooLarge);
                assert!(reasons[2].2.contains("200 times"), "{}", reasons[2].2);
            }
            PatchStyle::Siglip2 | PatchStyle::Pix2struct => {
                assert_eq!(names, ["broken.jpg", "text.jpg"]);
            }
        }
    }
    // Rows of siglip2 have room for any substitute.
    let loader = make(dir.path(), PatchStyle::Siglip2, DataType::U8);
    let loader = loader.on_error(OnError::Substitute).num_workers(1);
    let mut replaced = 0;
    for batch in loader.build().unwrap().epoch() {
        let batch = batch.unwrap();
        for fault in batch.faults() {
            let (height, width) = size(fault.substitute.unwrap());
            let wanted = rule(PatchStyle::Siglip2).grid((height.into(), width.into()));
            assert_eq!(grids(&batch)[fault.row], wanted.ok());
            replaced += 1;
        }
    }
    assert_eq!(replaced, 2);
    let loader = make(dir.path(), PatchStyle::Qwen, DataType::U8);
    let refused = loader.on_error(OnError::Substitute).num_workers(1).build();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("skip or stop"), "{text}");
}

#[test]
fn ranks_share_the_images() {
    let dir = data();
    let mut seen = Vec::new();
    for rank in 0..3 {
        let loader = make(dir.path(), PatchStyle::Qwen, DataType::U8);
        let loader = loader.rank(Rank::new(rank, 3)).num_workers(1);
        for batch in loader.build().unwrap().epoch() {
            let batch = batch.unwrap();
            let rows = batch.rows().filter(|row| row.status() == RowStatus::Ok);
            seen.extend(rows.map(|row| row.id()));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..IMAGES).collect::<Vec<_>>());
}

/// The grid is that of the upright image.
#[test]
fn patches_follow_the_orientation_of_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let picture = Picture::rgb(90, 30, 7).encode();
    for orientation in 1..=8 {
        let turned = with_orientation(&picture, orientation);
        fs::write(dir.path().join(format!("{orientation}.jpg")), turned).unwrap();
    }
    for style in STYLES {
        let loader = make(dir.path(), style, DataType::U8).sampler(Sampler::Sequential);
        let mut rows = 0;
        for batch in loader.num_workers(1).build().unwrap().epoch() {
            let batch = batch.unwrap();
            for (row, grid) in batch.rows().zip(grids(&batch)) {
                let upright = if row.id() < 4 { (30, 90) } else { (90, 30) };
                assert_eq!(grid, rule(style).grid(upright).ok());
                rows += 1;
            }
        }
        assert_eq!(rows, 8);
    }
}

#[test]
fn a_batch_may_have_no_patch() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jpg"), "no picture").unwrap();
    for (style, workers) in [
        (STYLES[0], 0),
        (STYLES[0], 1),
        (STYLES[1], 1),
        (STYLES[2], 1),
    ] {
        let loader = make(dir.path(), style, DataType::U8).on_error(OnError::Skip);
        let mut loader = loader.num_workers(workers).build().unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        let wanted: &[usize] = match style {
            PatchStyle::Qwen => &[0, 2 * 3 * 49],
            PatchStyle::Siglip2 => &[1, 30, 3 * 64],
            PatchStyle::Pix2struct => &[1, 30, 2 + 3 * 64],
        };
        assert_eq!(batch.patches().unwrap().shape(), wanted);
        assert_eq!(batch.faults().len(), 1);
        let batch = batch.detach().unwrap();
        assert!(batch.patch_values::<u8>().unwrap().iter().all(|v| *v == 0));
    }
}

/// Boxes are in pixels of the resized image.
#[test]
fn objects_follow_the_resized_image() {
    let dir = data();
    let form = ObjectListOptions {
        polygons: true,
        ..ObjectListOptions::default()
    };
    let mut list = ObjectList::new(form);
    for _ in 0..IMAGES {
        let item = ItemObjects {
            boxes: vec![[1.0, 2.0, 5.0, 8.0]],
            labels: vec![0],
            polygons: vec![vec![vec![[1.0, 2.0], [5.0, 2.0], [5.0, 8.0]]]],
            ..ItemObjects::default()
        };
        list.push(&item).unwrap();
    }
    let objects = ObjectOptions::default().listed(list).unwrap();
    let recipe = Recipe::new("boxes").then(patches(PatchStyle::Qwen));
    let make = |rule: ObjectRule| {
        builder(dir.path())
            .recipe(recipe.clone())
            .objects(objects.clone().rule(rule))
            .num_workers(1)
            .build()
    };
    let rule = ObjectRule::default();
    let mut seen = 0;
    for batch in make(rule.clone()).unwrap().epoch() {
        let batch = batch.unwrap();
        let objects = batch.objects().unwrap();
        for (n, row) in batch.rows().enumerate() {
            let (height, width) = size(row.id());
            let (to_height, to_width) = row.size();
            let x = to_width as f32 / f32::from(width);
            let y = to_height as f32 / f32::from(height);
            let found = &objects.boxes[objects.row(n)][0];
            for (got, wanted) in found.iter().zip([x, 2.0 * y, 5.0 * x, 8.0 * y]) {
                assert!((got - wanted).abs() < 1e-3, "{found:?}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, IMAGES);
    let masks = ObjectRule {
        masks: Some(InstanceMasks::Full),
        ..rule
    };
    let text = make(masks).unwrap_err().to_string();
    assert!(text.contains("instance masks"), "{text}");
}

#[test]
fn what_patches_cannot_be_is_refused() {
    let dir = data();
    let op = patches(PatchStyle::Qwen);
    let recipes = [
        (
            Recipe::new("r").then(op).then(CenterCrop::new(8)),
            "center_crop: changes the size of images",
        ),
        (
            Recipe::new("r").then(Resize::shorter(64)).then(op),
            "resize: changes the size of images",
        ),
        (
            Recipe::new("r").then(Rotate90 { times: 1 }).then(op),
            "rotate90: changes the size of images",
        ),
        (Recipe::new("r").then(op).then(op), "written twice"),
        (
            Recipe::new("r").then(op).with_layout(MemoryLayout::Nhwc),
            "layout: has no effect",
        ),
        (
            Recipe::new("r").then(Grayscale::default()).then(op),
            "num_output_channels: 3",
        ),
        (
            Recipe::new("r").then(RandomApply {
                transforms: vec![op.into()],
                p: 0.5,
            }),
            "patches in transforms: changes the size of images",
        ),
        (
            Recipe::new("r").then(Patches {
                max_num_patches: Some(9),
                ..op
            }),
            "max_num_patches has an effect with styles siglip2 and pix2struct only",
        ),
        (
            Recipe::new("r").then(Patches {
                merge_size: Some(2),
                ..patches(PatchStyle::Siglip2)
            }),
            "merge_size has an effect with style qwen only",
        ),
        (
            Recipe::new("r").then(op.between(1000, 999)),
            "min_pixels 1000 must be 1 to 999",
        ),
        (
            Recipe::new("r").with_crop(Recipe::new("c").then(op), 2),
            "makes patches of each image",
        ),
    ];
    for (recipe, wanted) in recipes {
        let built = builder(dir.path()).recipe(recipe).num_workers(0).build();
        let text = built.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}\nhas not: {wanted}");
    }
}

#[derive(Debug, Deserialize)]
struct PixelCases {
    images: Vec<PixelImage>,
}

#[derive(Debug, Deserialize)]
struct PixelImage {
    size: (u32, u32),
    at: usize,
    rows: Vec<PixelRow>,
}

#[derive(Debug, Deserialize)]
struct PixelRow {
    rule: PatchRule,
    grid: (u32, u32),
    torchvision: usize,
}

fn op_of(rule: &PatchRule) -> Patches {
    match rule.style {
        PatchStyle::Qwen => Patches {
            merge_size: Some(rule.merge_size),
            temporal_patch_size: Some(rule.temporal_patch_size),
            ..Patches::qwen(rule.patch_size).between(rule.min_pixels, rule.max_pixels)
        },
        PatchStyle::Siglip2 => Patches::siglip2(rule.patch_size, rule.max_num_patches),
        PatchStyle::Pix2struct => Patches::pix2struct(rule.patch_size, rule.max_num_patches),
    }
}

/// Levels, in the order of the processor, are those of transformers.
#[test]
fn patches_are_those_of_transformers() {
    let goldens = tempfile::tempdir().unwrap();
    unpack_goldens("patches", goldens.path()).unwrap();
    let read = |name: &str| fs::read(goldens.path().join(name)).unwrap();
    let cases: PixelCases = serde_json::from_slice(&read("pixels.json")).unwrap();
    let bytes = read("pixels.bin");
    let mut all = 0;
    for case in &cases.images {
        let (height, width) = case.size;
        let pixels = &bytes[case.at..][..(3 * height * width) as usize];
        let dir = tempfile::tempdir().unwrap();
        let head = format!("P6 {width} {height} 255\n");
        fs::write(dir.path().join("a.ppm"), [head.as_bytes(), pixels].concat()).unwrap();
        for row in &case.rows {
            let PatchRule {
                patch_size,
                temporal_patch_size,
                ..
            } = row.rule;
            let recipe = Recipe::new("p")
                .then(op_of(&row.rule))
                .with_dtype(DataType::U8);
            let loader = builder(dir.path()).recipe(recipe).num_workers(0);
            let mut loader: Loader = loader.on_error(OnError::Stop).build().unwrap();
            let batch = loader.epoch().next().unwrap().unwrap();
            let (rows, columns) = row.grid;
            assert_eq!(grids(&batch), [Some(PatchGrid { rows, columns })]);
            let patches = (rows * columns) as usize;
            let plane = (patch_size * patch_size) as usize;
            let copies = temporal_patch_size as usize;
            let wanted = &bytes[row.torchvision..][..patches * 3 * plane];
            let got = batch.row(0).unwrap().bytes().unwrap();
            // Each plane once for each copy. The channels of siglip2 are no planes.
            let piece = match row.rule.style {
                PatchStyle::Qwen => plane,
                PatchStyle::Siglip2 | PatchStyle::Pix2struct => 3 * plane,
            };
            for (n, wanted) in wanted.chunks_exact(piece).enumerate() {
                for copy in 0..copies {
                    let got = &got[(n * copies + copy) * piece..][..piece];
                    assert!(got == wanted, "{case:?}: patch {n}");
                    all += got.len();
                }
            }
        }
    }
    assert!(all > 50_000, "{all} levels");
}
