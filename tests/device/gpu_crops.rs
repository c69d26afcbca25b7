//! Several crops of each image that a real device makes, and masks after its rows: bit for bit those
//! of the CPU, whatever the number of workers. Memory is what was planned, and rates are printed.
//! Without a device it says `SKIP`.

use std::fs;
use std::path::Path;
use std::time::Instant;

use featherload::recipe::{Normalize, RandomHorizontalFlip, RandomResizedCrop};
use featherload::{
    Batch, DataType, Device, LoaderBuilder, MaskOptions, MemoryLayout, NumberRule, OnError,
    RasterOptions, RasterRule, Recipe, UploadMode,
};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::{builder, cuda, photos};
use crate::crop_recipes::{dino, dino2, images, recipes, simclr};

/// Rows of an epoch.
fn epoch(make: LoaderBuilder, recipe: &Recipe) -> Vec<Row> {
    let mut loader = make.recipe(recipe.clone()).epochs(1).build().unwrap();
    let all = loader.epoch().flat_map(|batch| {
        let batch = batch.unwrap();
        match batch.on_device() {
            Some(_) => rows(&batch.to_host().unwrap()),
            None => rows(&batch),
        }
    });
    all.collect()
}

#[test]
fn gpu_crops_of_all_recipes_are_those_of_the_cpu() {
    if !cuda::is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    fs::write(dir.path().join("class/zzz.jpg"), "no image").unwrap();
    for recipe in recipes() {
        let make = |workers, batch| {
            builder(dir.path())
                .num_workers(workers)
                .batch_size(batch)
                .on_error(OnError::Skip)
        };
        for (workers, batch) in [(2, 5), (1, 1), (4, 14)] {
            let want = epoch(make(workers, batch), &recipe);
            let got = epoch(make(workers, batch).device(Device::Cuda(0)), &recipe);
            assert_same(&got, &want, &format!("{}, batches of {batch}", recipe.name));
        }
    }
}

/// Masks and depths follow the rows that the device makes: those of the CPU, bit for bit.
#[test]
fn gpu_rows_with_masks_are_those_of_the_cpu() {
    if !cuda::is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [pictures, masks] = ["images", "masks"].map(|name| dir.path().join(name));
    fs::create_dir(&pictures).unwrap();
    fs::create_dir(&masks).unwrap();
    for n in 0..33u32 {
        let (width, height) = (150 + 7 * n, 190 - 3 * n);
        let image = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x + n) as u8, (3 * y) as u8, (x * y) as u8])
        });
        image.save(pictures.join(format!("{n:02}.png"))).unwrap();
        let mask = image::GrayImage::from_fn(width, height, |x, y| {
            image::Luma([((x / 5 + 7 * (y / 5) + n) % 250) as u8])
        });
        mask.save(masks.join(format!("{n:02}.png"))).unwrap();
    }
    fs::write(masks.join("05.png"), "no mask").unwrap();
    let crop = Recipe::new("masks")
        .then(RandomResizedCrop::new(57))
        .then(RandomHorizontalFlip::default());
    let normal = crop.clone().then(Normalize::imagenet());
    let recipes = [
        crop.with_dtype(DataType::U8),
        normal.clone().with_dtype(DataType::F32),
        normal
            .with_dtype(DataType::F16)
            .with_layout(MemoryLayout::Nhwc),
    ];
    for recipe in recipes {
        for upload in [UploadMode::InPlace, UploadMode::Copied] {
            let make = || {
                builder(&pictures)
                    .recipe(recipe.clone())
                    .batch_size(7)
                    .num_workers(2)
                    .on_error(OnError::Skip)
                    .epochs(1)
            };
            let on_gpu = |make: LoaderBuilder| make.upload(upload).device(Device::Cuda(0));
            let with_masks = || {
                let depth = RasterRule::Numbers(NumberRule::depth());
                make()
                    .masks(MaskOptions::new("../masks/{stem}.png"))
                    .raster("depth", RasterOptions::new("../masks/{stem}.png", depth))
            };
            let mut cpu = with_masks().build().unwrap();
            let mut gpu = on_gpu(with_masks()).build().unwrap();
            let mut alone = on_gpu(make()).build().unwrap();
            let mut masked = 0;
            let all = cpu.epoch().zip(gpu.epoch()).zip(alone.epoch());
            for ((cpu, gpu), alone) in all.map(|((a, b), c)| ((a.unwrap(), b.unwrap()), c.unwrap()))
            {
                let (gpu, alone) = (gpu.to_host().unwrap(), alone.to_host().unwrap());
                assert_eq!(gpu.ids(), cpu.ids());
                assert_eq!(gpu.status(), cpu.status());
                assert!(gpu.masks().unwrap().bytes() == cpu.masks().unwrap().bytes());
                let depth = |batch: &Batch| batch.raster("depth").unwrap().bytes().to_vec();
                assert!(depth(&gpu) == depth(&cpu));
                // The kernel has sums of its own. Its rows do not depend on masks.
                for row in 0..gpu.len() {
                    let status = gpu.status()[row];
                    masked += usize::from(status.is_masked());
                    let [got, want] = [&gpu, &alone].map(|b| b.row(row).unwrap().bytes().unwrap());
                    let zeros = vec![0; got.len()];
                    let want = if status.is_masked() { &zeros } else { want };
                    assert!(got == want, "{} {upload} row {row}", recipe.name);
                }
            }
            assert_eq!(masked, 1);
        }
    }
}

/// Images in a second, and the memory of the device.
fn measure(folder: &Path, recipe: &Recipe, device: Device, batch: u32, workers: usize) -> f64 {
    let mut loader = builder(folder)
        .batch_size(batch)
        .num_workers(workers)
        .device(device)
        .recipe(recipe.clone())
        .epochs(1000)
        .build()
        .unwrap();
    loader.epoch().for_each(drop);
    let (began, mut images) = (Instant::now(), 0);
    for _ in 0..5 {
        for batch in loader.epoch() {
            images += batch.unwrap().len();
        }
    }
    let rate = images as f64 / began.elapsed().as_secs_f64();
    let report = loader.report().unwrap();
    let name = &recipe.name;
    println!("{name}, {device}, {workers} workers, batches of {batch}: {rate:.0} images/s");
    println!("  resized by workers: {}", report.resized_by_workers);
    if let Some(memory) = loader.device_memory().unwrap() {
        println!("  {memory:?} {:?}", report.device);
        assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
    }
    rate
}

#[test]
fn gpu_crops_of_photos_are_those_of_the_cpu_and_their_rates() {
    let name = "gpu_crops_of_photos_are_those_of_the_cpu_and_their_rates";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    for recipe in [dino(224, 96), simclr(224), dino2(224, 98)] {
        let make = || builder(&folder).num_workers(4).batch_size(16);
        let want = epoch(make(), &recipe);
        let got = epoch(make().device(Device::Cuda(0)), &recipe);
        assert_same(&got, &want, &recipe.name);
        for workers in [4, 15] {
            measure(&folder, &recipe, Device::Cpu, 64, workers);
            measure(&folder, &recipe, Device::Cuda(0), 64, workers);
        }
    }
}

/// Another loader of the same process may work on the device, too, and batches may be held.
#[test]
fn gpu_crops_are_right_while_batches_are_held() {
    if !cuda::is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    images(dir.path());
    let recipe = dino(48, 21);
    let make = || {
        builder(dir.path())
            .num_workers(2)
            .batch_size(3)
            .recipe(recipe.clone())
            .epochs(3)
    };
    let mut want = make().build().unwrap();
    let mut one = make().device(Device::Cuda(0)).build().unwrap();
    let mut other = make().device(Device::Cuda(0)).build().unwrap();
    for _ in 0..3 {
        let mut held: Option<(featherload::Batch, &Vec<Row>)> = None;
        let want: Vec<_> = want.epoch().map(|b| rows(&b.unwrap())).collect();
        for (batch, (a, b)) in want.iter().zip(one.epoch().zip(other.epoch())) {
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_same(&rows(&b.to_host().unwrap()), batch, "the second loader");
            if let Some((before, rows_before)) = held.replace((a, batch)) {
                assert_same(&rows(&before.to_host().unwrap()), rows_before, "held");
            }
        }
    }
}
