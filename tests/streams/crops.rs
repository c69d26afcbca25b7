//! Several crops of each image: the stream is the same for any number of workers, through deaths
//! and from any point on. Each crop is that of its recipe alone, and an image is decoded once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use featherload::recipe::{
    CenterCrop, CornerCrop, ImageCorner, Normalize, RandomHorizontalFlip, RandomResizedCrop,
    Resize, Span,
};
use featherload::{
    Batch, DataType, DecodeMode, EpochTail, Loader, LoaderBuilder, OnError, Recipe, RowStatus,
};
use nix::sys::signal::Signal;

use crate::common::processes::send;
use crate::common::rows::{assert_same, rows, stream, take};
use crate::common::{Random, builder, data};

fn crop(size: u32, scale: (f64, f64)) -> Recipe {
    let mut crop = RandomResizedCrop::new(size);
    crop.scale = Span(scale.0, scale.1);
    Recipe::new("crop")
        .then(crop)
        .then(RandomHorizontalFlip::default())
        .then(Normalize::imagenet())
}

fn global() -> Recipe {
    crop(57, (0.32, 1.0))
}

fn local() -> Recipe {
    crop(24, (0.05, 0.32))
}

fn dino() -> Recipe {
    Recipe::new("dino")
        .with_crop(global(), 2)
        .with_crop(local(), 8)
}

fn make(dir: &Path, recipe: Recipe) -> LoaderBuilder {
    builder(dir).recipe(recipe)
}

/// Two classes, with a PNG beside the JPEGs.
fn files() -> tempfile::TempDir {
    let dir = data(2, 9);
    let picture = image::RgbImage::from_fn(131, 97, |x, y| {
        image::Rgb([(x * 2) as u8, (y * 2) as u8, (x ^ y) as u8])
    });
    picture.save(dir.path().join("class0/900.png")).unwrap();
    dir
}

/// Elements of each crop of each sample of one epoch.
fn crops(loader: &mut Loader) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in batch.good_rows() {
            let parts = row.parts().unwrap();
            all.insert(row.id(), parts.into_iter().map(<[u8]>::to_vec).collect());
        }
    }
    all
}

#[test]
fn crops_stream_alike_for_any_workers() {
    let dir = files();
    let want = stream(
        &mut make(dir.path(), dino()).num_workers(0).build().unwrap(),
        2,
    );
    assert_eq!(want.len(), 38);
    for workers in 1..4 {
        let mut loader = make(dir.path(), dino())
            .num_workers(workers)
            .build()
            .unwrap();
        assert_same(
            &stream(&mut loader, 2),
            &want,
            &format!("{workers} workers"),
        );
        let report = loader.report().unwrap();
        // Each image once for its ten crops.
        assert_eq!((report.times.rows, report.decoded_images), (38, 38));
    }
}

#[test]
fn crops_stream_alike_through_kills_and_resumes() {
    let dir = files();
    let want = stream(
        &mut make(dir.path(), dino()).num_workers(0).build().unwrap(),
        6,
    );
    let mut loader = make(dir.path(), dino()).num_workers(2).build().unwrap();
    let mut random = Random(5);
    let mut got = Vec::new();
    let mut kills = 0;
    while loader.state().epoch < 6 {
        let mut epoch = loader.epoch();
        while let Some(batch) = epoch.next() {
            got.extend(rows(&batch.unwrap()));
            std::thread::sleep(Duration::from_micros(random.below(3000)));
            let workers = epoch.report().unwrap().processes.workers;
            if !workers.is_empty() && random.below(2) == 0 {
                let victim = workers[random.below(workers.len() as u64) as usize];
                kills += u32::from(send(victim, Signal::SIGKILL));
            }
        }
    }
    assert!(kills > 0);
    assert_same(&got, &want, "through kills");
    for batches in [0, 1, 4] {
        let fresh = || make(dir.path(), dino()).num_workers(1).build().unwrap();
        let (before, state) = take(&mut fresh(), batches);
        let mut resumed = fresh();
        resumed.resume(&state).unwrap();
        let behind = stream(&mut resumed, 2);
        assert_same(&behind, &want[before.len()..38], "resumed");
    }
    // Another count is another recipe.
    let (_, state) = take(
        &mut make(dir.path(), dino()).num_workers(1).build().unwrap(),
        1,
    );
    let other = Recipe::new("dino")
        .with_crop(global(), 2)
        .with_crop(local(), 7);
    let mut other = make(dir.path(), other).num_workers(1).build().unwrap();
    let e = other.resume(&state).unwrap_err();
    assert!(e.to_string().contains("recipe"), "{e}");
}

/// The first crop is that of its recipe alone, since it has the same random numbers. The numbers of
/// a crop depend on its place in the list, not on the other crops.
#[test]
fn each_crop_is_that_of_its_recipe_alone() {
    let dir = files();
    let load = |recipe: Recipe| {
        let recipe = recipe.with_decode(DecodeMode::Full);
        crops(&mut make(dir.path(), recipe).num_workers(1).build().unwrap())
    };
    let all = load(dino());
    let first = load(global());
    let others = load(
        Recipe::new("others")
            .with_crop(local(), 1)
            .with_crop(global(), 1)
            .with_crop(local(), 2),
    );
    assert_eq!(all.len(), 19);
    for (id, crops) in &all {
        assert_eq!(crops.len(), 10);
        assert!(crops[0] == first[id][0]);
        assert!(crops[1] == others[id][1]);
        assert!(crops[2] == others[id][2] && crops[3] == others[id][3]);
        // Each crop has numbers of its own.
        assert!(crops[0] != crops[1] && crops[2] != crops[3]);
    }
}

#[test]
fn a_batch_has_a_tensor_and_geometries_for_each_crop() {
    let dir = data(2, 10);
    let recipe = dino().with_dtype(DataType::U8);
    let builder = make(dir.path(), recipe).tail(EpochTail::Pad).num_workers(2);
    let mut loader = builder.build().unwrap();
    for batch in loader.epoch() {
        let batch: Batch = batch.unwrap();
        assert_eq!(batch.crop_count(), Some(10));
        let masked: Vec<_> = batch.status().iter().map(|s| s.is_masked()).collect();
        for number in 0..10 {
            let side = if number < 2 { 57 } else { 24 };
            let crop = batch.crop(number).unwrap();
            assert_eq!(crop.shape(), [8, 3, side, side]);
            let row = 3 * side * side;
            let pixels = crop.as_slice::<u8>().unwrap();
            for (row, pixels) in pixels.chunks(row).enumerate() {
                let zeros = pixels.iter().all(|v| *v == 0);
                assert_eq!(zeros, masked[row]);
                assert_eq!(batch.row(row).unwrap().crop(number).unwrap(), pixels);
            }
            for (of, masked) in batch.geometry(number).unwrap().iter().zip(&masked) {
                let [left, top, right, bottom] = of.bounds;
                let [height, width] = of.image.map(|side| side as f32);
                if *masked {
                    assert_eq!((of.bounds, of.image), ([0.0; 4], [0, 0]));
                } else {
                    assert!(0.0 <= left && left < right && right <= width, "{of:?}");
                    assert!(0.0 <= top && top < bottom && bottom <= height, "{of:?}");
                    let share = (right - left) * (bottom - top) / (width * height);
                    let most = if number < 2 { 1.0 } else { 0.36 };
                    assert!(share <= most, "{share}");
                }
            }
        }
        // Neighbours of one size are one tensor.
        let bytes = batch.crop(2).unwrap().bytes().len();
        assert_eq!(
            batch.crop_offset(3).unwrap(),
            batch.crop_offset(2).unwrap() + bytes
        );
        assert!(
            batch
                .crop(10)
                .unwrap_err()
                .to_string()
                .contains("have 10 crops")
        );
        assert!(
            batch
                .pixels()
                .unwrap_err()
                .to_string()
                .contains("Batch::crop")
        );
        let detached = batch.detach().unwrap();
        assert_eq!(detached.crop(9).unwrap().shape()[0], 8);
    }
}

#[test]
fn a_bad_sample_fails_with_all_its_crops() {
    let dir = data(1, 8);
    fs::write(dir.path().join("class0/003.jpg"), b"\xff\xd8 no image").unwrap();
    let load = |on_error| {
        let builder = make(dir.path(), dino()).on_error(on_error).num_workers(2);
        let mut loader = builder.build().unwrap();
        let batch = loader.epoch().next().unwrap();
        batch.map(|batch| batch.detach().unwrap())
    };
    assert!(load(OnError::Stop).unwrap_err().is_sample());
    let skipped = load(OnError::Skip).unwrap();
    let bad = skipped
        .status()
        .iter()
        .position(|s| *s == RowStatus::Failed);
    let parts = skipped.row(bad.unwrap()).unwrap().parts().unwrap();
    assert_eq!(parts.len(), 10);
    assert!(parts.iter().all(|part| part.iter().all(|byte| *byte == 0)));
    let replaced = load(OnError::Substitute).unwrap();
    assert_eq!(replaced.good_rows().count(), 8);
}

/// torchvision's FiveCrop: the four corners and the centre.
#[test]
fn five_crops_are_the_corners_and_the_centre() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("c")).unwrap();
    let pixel = |x: u32, y: u32| [x as u8, y as u8, 7];
    let picture = image::RgbImage::from_fn(61, 43, |x, y| image::Rgb(pixel(x, y)));
    picture.save(dir.path().join("c/0.png")).unwrap();
    let corners = [
        ImageCorner::TopLeft,
        ImageCorner::TopRight,
        ImageCorner::BottomLeft,
        ImageCorner::BottomRight,
    ];
    let mut recipe = Recipe::new("five");
    for corner in corners {
        recipe = recipe.with_crop(Recipe::new("c").then(CornerCrop::new((20, 30), corner)), 1);
    }
    recipe = recipe.with_crop(Recipe::new("c").then(CenterCrop::new((20, 30))), 1);
    let recipe = recipe.with_dtype(DataType::U8);
    let mut loader = make(dir.path(), recipe).num_workers(1).build().unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    for (number, (left, top)) in [(0, 0), (31, 0), (0, 23), (31, 23), (16, 12)]
        .into_iter()
        .enumerate()
    {
        let pixels = batch.crop(number).unwrap();
        assert_eq!(pixels.shape(), [1, 3, 20, 30]);
        let pixels = pixels.as_slice::<u8>().unwrap();
        for channel in 0..3 {
            for y in 0..20 {
                for x in 0..30 {
                    let want = pixel(left + x, top + y)[channel];
                    let at = (channel * 20 + y as usize) * 30 + x as usize;
                    assert_eq!(pixels[at], want, "crop {number} at {x}, {y}");
                }
            }
        }
    }
    let small = Recipe::new("s").with_crop(
        Recipe::new("c").then(CornerCrop::new((44, 30), corners[0])),
        1,
    );
    let mut loader = make(dir.path(), small).num_workers(1).build().unwrap();
    let fault = loader.epoch().next().unwrap().unwrap_err().to_string();
    assert!(fault.contains("corner_crop"), "{fault}");
}

#[test]
fn the_plan_counts_every_crop() {
    let dir = files();
    let plan = make(dir.path(), dino())
        .num_workers(2)
        .memory_plan(1)
        .unwrap();
    let pixels = 4 * 3 * (2 * 57 * 57 + 8 * 24 * 24);
    let per_sample = pixels + 10 * 32;
    assert!((8 * per_sample..8 * per_sample + 64).contains(&plan.memory.slot_bytes));
    assert_eq!(plan.outline.crops.len(), 2);
    let drawn = plan.drawn[0].steps.as_ref().unwrap();
    assert!(
        drawn
            .steps
            .iter()
            .any(|(name, _)| name.starts_with("crop 9: "))
    );
    // A limit below one slot is refused.
    let tight = make(dir.path(), dino())
        .num_workers(2)
        .memory_limit(1 << 20);
    assert!(tight.memory_plan(0).is_err());
    let scales = featherload::order::MultiScale::new([(32, 32)]);
    let refused = make(dir.path(), dino()).multi_scale(scales);
    let e = refused.num_workers(1).build().unwrap_err();
    assert_eq!(e.option_name(), Some("multi_scale"), "{e}");
    // A resize alone keeps the sizes of images.
    let own = Recipe::new("own").with_crop(Recipe::new("r").then(Resize::shorter(9)), 1);
    let e = make(dir.path(), own).num_workers(1).build().unwrap_err();
    assert!(e.is_config(), "{e}");
}
