//! Rows of tiles through real loaders. Tiles and overview have the values of transformers'
//! processors. They are alike for any number of workers, and from any point on.

use std::fs;
use std::path::Path;

use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::recipe::{
    CenterCrop, CutRule, Patches, RandomHorizontalFlip, TileCanvases, TileRule, Tiles,
};
use featherload::tests_support::unpack_goldens;
use featherload::{
    DataType, EpochTail, Loader, LoaderBuilder, MemoryLayout, ObjectOptions, OnError, Rank, Recipe,
    RowStatus, Sampler, State,
};
use serde::Deserialize;

use crate::common::rows::{assert_same, stream, take};
use crate::common::{Picture, builder, sized_folder};

const IMAGES: u64 = 23;

fn size(i: u64) -> (u16, u16) {
    (9 + (i * 37 % 90) as u16, 12 + (i * 53 % 110) as u16)
}

fn data() -> tempfile::TempDir {
    sized_folder(IMAGES, size)
}

fn styles() -> [Tiles; 2] {
    [Tiles::internvl(24, 6), Tiles::llava_next(20)]
}

fn make(dir: &Path, tiles: &Tiles, dtype: DataType) -> LoaderBuilder {
    let recipe = Recipe::new("tiles")
        .then(RandomHorizontalFlip::default())
        .then(tiles.clone())
        .with_dtype(dtype);
    builder(dir)
        .recipe(recipe)
        .batch_size(5)
        .on_error(OnError::Stop)
}

#[test]
fn streams_of_tiles_are_alike_for_any_workers_and_from_any_point() {
    let dir = data();
    for (tiles, dtype) in styles().iter().zip([DataType::Bf16, DataType::U8]) {
        let make = || make(dir.path(), tiles, dtype);
        let full = stream(&mut make().num_workers(0).build().unwrap(), 2);
        for workers in [1, 2, 8] {
            let mut loader = make().num_workers(workers).build().unwrap();
            let what = format!("{tiles:?}, {workers} workers");
            assert_same(&stream(&mut loader, 2), &full, &what);
        }
        for (taken, before, after) in [(1, 0, 2), (3, 2, 0), (7, 1, 1)] {
            let (head, state) = take(&mut make().num_workers(before).build().unwrap(), taken);
            let text = serde_json::to_string(&state).unwrap();
            let state: State = serde_json::from_str(&text).unwrap();
            let mut loader = make().num_workers(after).resume(state).build().unwrap();
            let tail = stream(&mut loader, 2);
            let what = format!("{tiles:?}: {taken} batches");
            assert_same(&[head, tail].concat(), &full, &what);
        }
    }
}

#[test]
fn all_tiles_of_a_batch_are_one_tensor() {
    let dir = data();
    let tiles = Tiles::internvl(32, 4);
    let loader = make(dir.path(), &tiles, DataType::U8).tail(EpochTail::Pad);
    let mut loader = loader.num_workers(1).build().unwrap();
    let rule = CutRule::Tiles(TileRule {
        tile_size: 32,
        canvases: TileCanvases::Count { min: 1, max: 4 },
    });
    let tile = 3 * 32 * 32;
    let (mut single, mut several) = (0, 0);
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let found = batch.patches().unwrap();
        assert_eq!(found.rule(), &rule);
        let all = batch.patch_values::<u8>().unwrap();
        let mut rows = Vec::new();
        let of_rows = batch.rows().zip(found.grids()).zip(found.counts());
        for ((row, grid), (count, image)) in of_rows
            .zip(found.image_sizes())
            .map(|((row_grid, count), image)| (row_grid, (count, image)))
        {
            let (height, width) = size(row.id());
            let is_padding = row.status() == RowStatus::Padding;
            let wanted = (!is_padding).then_some((u32::from(height), u32::from(width)));
            assert_eq!(image, wanted);
            assert_eq!(grid, wanted.map(|size| rule.grid(size).unwrap()));
            let in_grid = grid.map_or(0, |grid| grid.patches());
            assert_eq!(count, in_grid + u64::from(in_grid > 1));
            single += u64::from(count == 1);
            several += u64::from(count > 1);
            let canvas = grid.map_or((0, 0), |grid| grid.resized(32));
            assert_eq!(row.size(), (canvas.0 as usize, canvas.1 as usize));
            assert_eq!(row.shape(), [1, count as usize, tile]);
            let bytes = row.bytes().unwrap();
            assert_eq!(bytes.len(), count as usize * tile);
            rows.extend_from_slice(bytes);
        }
        assert_eq!(all, rows);
        assert_eq!(found.shape(), [all.len() / tile, 3, 32, 32]);
    }
    assert!(
        single > 0 && several > 10 && single + several == IMAGES,
        "{single}, {several}"
    );
}

#[test]
fn a_failed_image_keeps_its_tiles_as_zeros() {
    let dir = data();
    let whole = Picture::rgb(60, 40, 1).encode();
    fs::write(dir.path().join("broken.jpg"), &whole[..whole.len() * 2 / 3]).unwrap();
    fs::write(dir.path().join("text.jpg"), "no picture").unwrap();
    for tiles in styles() {
        let loader = make(dir.path(), &tiles, DataType::U8).on_error(OnError::Skip);
        let mut failed = Vec::new();
        for batch in loader.num_workers(2).build().unwrap().epoch() {
            let batch = batch.unwrap();
            let found = batch.patches().unwrap();
            for fault in batch.faults() {
                let bytes = batch.row(fault.row).unwrap().bytes().unwrap();
                assert!(bytes.iter().all(|v| *v == 0));
                let name = fault.path.file_name().unwrap().to_str().unwrap();
                let image = found.image_sizes().nth(fault.row).unwrap();
                let wanted = (name == "broken.jpg").then_some((40, 60));
                assert_eq!((image, bytes.is_empty()), (wanted, wanted.is_none()));
                failed.push(name.to_owned());
            }
        }
        failed.sort();
        assert_eq!(failed, ["broken.jpg", "text.jpg"]);
        let loader = make(dir.path(), &tiles, DataType::U8).on_error(OnError::Substitute);
        let text = loader.num_workers(1).build().unwrap_err().to_string();
        assert!(text.contains(tiles.style.name()), "{text}");
        assert!(text.contains("skip or stop"), "{text}");
    }
}

#[test]
fn a_budget_counts_the_overview() {
    let dir = data();
    let mut seen = Vec::new();
    for rank in 0..2 {
        let loader = make(dir.path(), &styles()[0], DataType::U8)
            .batch_size(16)
            .rank(Rank::new(rank, 2))
            .sampler(Sampler::PatchBudget { patches: 20 });
        for batch in loader.num_workers(1).build().unwrap().epoch() {
            let batch = batch.unwrap();
            let total: u64 = batch.patches().unwrap().counts().sum();
            assert!(total <= 20, "{total}");
            let rows = batch.rows().filter(|row| row.status() == RowStatus::Ok);
            seen.extend(rows.map(|row| row.id()));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..IMAGES).collect::<Vec<_>>());
    let loader = make(dir.path(), &styles()[0], DataType::U8);
    let loader = loader.sampler(Sampler::PatchBudget { patches: 6 });
    let text = loader.num_workers(0).build().unwrap_err().to_string();
    assert!(text.contains("has 7 patches"), "{text}");
    assert!(text.contains("lower max_tiles of tiles"), "{text}");
}

/// Boxes are in pixels of the canvas, with the border.
#[test]
fn objects_follow_the_canvas() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jpg"), Picture::rgb(80, 20, 1).encode()).unwrap();
    let mut list = ObjectList::new(ObjectListOptions::default());
    let item = ItemObjects {
        boxes: vec![[8.0, 4.0, 40.0, 16.0]],
        labels: vec![0],
        ..ItemObjects::default()
    };
    list.push(&item).unwrap();
    let objects = ObjectOptions::default().listed(list).unwrap();
    let recipe = Recipe::new("boxes").then(Tiles::llava_next(20).pinpoints([(40, 40)]));
    let mut loader = builder(dir.path())
        .recipe(recipe)
        .objects(objects)
        .num_workers(1)
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    // Half the size, in the middle of 40 x 40: a border of 15 at the top.
    let found = &batch.objects().unwrap().boxes[0];
    assert_eq!(*found, [4.0, 17.0, 20.0, 23.0]);
}

#[test]
fn what_tiles_cannot_be_is_refused() {
    let dir = data();
    let op = Tiles::internvl(24, 6);
    let recipes = [
        (
            Recipe::new("r").then(op.clone()).then(CenterCrop::new(8)),
            "center_crop: changes the size of images, which tiles sets",
        ),
        (
            Recipe::new("r").then(op.clone()).then(Patches::qwen(14)),
            "patches: comes after tiles",
        ),
        (
            Recipe::new("r").then(Patches::qwen(14)).then(op.clone()),
            "tiles: comes after patches",
        ),
        (
            Recipe::new("r")
                .then(op.clone())
                .with_layout(MemoryLayout::Nhwc),
            "layout: has no effect, since tiles sets the order",
        ),
        (
            Recipe::new("r").then(op.clone().pinpoints([(24, 24)])),
            "grid_pinpoints has an effect with style llava_next only",
        ),
        (
            Recipe::new("r").then(Tiles {
                max_tiles: Some(4),
                ..Tiles::llava_next(24)
            }),
            "max_tiles has an effect with style internvl only",
        ),
        (
            Recipe::new("r").with_crop(Recipe::new("c").then(op), 2),
            "makes tiles of each image",
        ),
    ];
    for (recipe, wanted) in recipes {
        let built = builder(dir.path()).recipe(recipe).num_workers(0).build();
        let text = built.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}\nhas not: {wanted}");
    }
}

#[derive(Debug, Deserialize)]
struct PixelImage {
    size: (u32, u32),
    at: usize,
    rows: Vec<PixelRow>,
}

#[derive(Debug, Deserialize)]
struct PixelRow {
    rule: Tiles,
    grid: (u32, u32),
    tiles: usize,
    at: usize,
}

/// Levels are those of transformers.
#[test]
fn tiles_are_those_of_transformers() {
    let goldens = tempfile::tempdir().unwrap();
    unpack_goldens("tiles", goldens.path()).unwrap();
    let read = |name: &str| fs::read(goldens.path().join(name)).unwrap();
    let cases: Vec<PixelImage> = serde_json::from_slice(&read("pixels.json")).unwrap();
    let bytes = read("pixels.bin");
    let mut all = 0;
    for case in &cases {
        let (height, width) = case.size;
        let pixels = &bytes[case.at..][..(3 * height * width) as usize];
        let dir = tempfile::tempdir().unwrap();
        let head = format!("P6 {width} {height} 255\n");
        fs::write(dir.path().join("a.ppm"), [head.as_bytes(), pixels].concat()).unwrap();
        for row in &case.rows {
            let recipe = Recipe::new("t")
                .then(row.rule.clone())
                .with_dtype(DataType::U8);
            let loader = builder(dir.path()).recipe(recipe).num_workers(0);
            let mut loader: Loader = loader.on_error(OnError::Stop).build().unwrap();
            let batch = loader.epoch().next().unwrap().unwrap();
            let found = batch.patches().unwrap();
            let grid = found.grids().next().unwrap().unwrap();
            assert_eq!((grid.rows, grid.columns), row.grid);
            let side = found.rule().side() as usize;
            assert_eq!(found.shape(), [row.tiles, 3, side, side]);
            let got = batch.patch_values::<u8>().unwrap();
            let wanted = &bytes[row.at..][..got.len()];
            assert!(got == wanted, "{row:?}");
            all += got.len();
        }
    }
    assert!(all > 100_000, "{all} levels");
}
