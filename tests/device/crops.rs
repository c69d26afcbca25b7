//! Several crops of each image with a device, and the stand-in for its driver. The stand-in runs
//! the kernel's own code, so the crops must be those of the CPU, bit for bit.

use std::fs;

use featherload::recipe::{RandomErasing, RandomHorizontalFlip, RandomResizedCrop};
use featherload::{Batch, DecodeOn, Device, Loader, LoaderBuilder, OnError, Recipe};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::with_standin;
use crate::common::{builder, data};
use crate::crop_recipes::{dino, images, recipes};

fn recipe(erases: bool) -> Recipe {
    let crop = |size| {
        let crop = Recipe::new("crop")
            .then(RandomResizedCrop::new(size))
            .then(RandomHorizontalFlip::default());
        match erases {
            true => crop.then(RandomErasing::default()),
            false => crop,
        }
    };
    Recipe::new("several")
        .with_crop(crop(33), 2)
        .with_crop(crop(16), 3)
}

/// Rows of two epochs, with the geometries of all batches.
fn stream(
    builder: LoaderBuilder,
    recipe: &Recipe,
    see: impl Fn(Batch) -> Vec<Row>,
) -> (Vec<Row>, Vec<[f32; 4]>) {
    let mut loader: Loader = builder.recipe(recipe.clone()).epochs(2).build().unwrap();
    let (mut all, mut boxes) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            let crops = batch.crop_count().unwrap();
            let geometry = (0..crops).flat_map(|crop| batch.geometry(crop).unwrap());
            // NaN is no box, and is not equal to itself.
            boxes.extend(geometry.map(|of| of.bounds.map(|side| side.max(-1e9))));
            all.extend(see(batch));
        }
    }
    (all, boxes)
}

/// Compares the stream of a device with that of the CPU.
fn check(make: impl Fn() -> LoaderBuilder, recipe: &Recipe) {
    let want = stream(make(), recipe, |batch| rows(&batch));
    let got = stream(make().device(Device::Cuda(0)), recipe, |batch| {
        assert!(batch.on_device().is_some());
        rows(&batch.to_host().unwrap())
    });
    assert_same(&got.0, &want.0, &recipe.name);
    assert_eq!(got.1, want.1, "{}", recipe.name);
}

fn name_of(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

#[test]
fn crops_on_a_device_are_those_of_the_cpu() {
    let ran = with_standin(
        &name_of("crops_on_a_device_are_those_of_the_cpu"),
        &[],
        |_| {
            let dir = data(2, 9);
            check(|| builder(dir.path()).num_workers(2), &recipe(false));
        },
    );
    let Some((standin, _)) = ran else { return };
    // Three batches of an epoch: one copy of rows and one launch each.
    let launches = standin.calls("cuLaunchKernel");
    assert_eq!(launches.len(), 6, "{launches:?}");
    assert!(launches.iter().all(|l| l.contains(" crop_sets ")));
    assert_eq!(standin.calls("cuMemcpy2DAsync_v2").len(), 6);
}

/// Images of all sizes, also those whose crops workers resize. An image that is none is a row of
/// zeros.
#[test]
fn all_recipes_and_images_are_made_as_on_the_cpu() {
    with_standin(
        &name_of("all_recipes_and_images_are_made_as_on_the_cpu"),
        &[],
        |_| {
            let dir = tempfile::tempdir().unwrap();
            images(dir.path());
            fs::write(dir.path().join("class/zzz.jpg"), "no image").unwrap();
            for recipe in recipes() {
                let plan = builder(dir.path()).device(Device::Cuda(0));
                let plan = plan.recipe(recipe.clone()).memory_plan(0).unwrap();
                let why = plan.upload.unwrap().why;
                assert!(why.contains("makes all crops"), "{}: {why}", recipe.name);
                check(
                    || {
                        builder(dir.path())
                            .num_workers(2)
                            .batch_size(5)
                            .on_error(OnError::Skip)
                    },
                    &recipe,
                );
            }
        },
    );
}

#[test]
fn the_device_and_workers_share_the_work_as_planned() {
    let ran = with_standin(
        &name_of("the_device_and_workers_share_the_work_as_planned"),
        &[],
        |_| {
            let dir = tempfile::tempdir().unwrap();
            images(dir.path());
            let make = || builder(dir.path()).num_workers(2).recipe(dino(48, 21));
            let on_device = || make().device(Device::Cuda(0));
            let plan = on_device().memory_plan(0).unwrap();
            let upload = plan.upload.clone().unwrap();
            assert!(
                upload.why.contains("one launch makes all crops"),
                "{upload:?}"
            );
            let mut loader = on_device().epochs(1).build().unwrap();
            for batch in loader.epoch() {
                drop(batch.unwrap());
            }
            let report = loader.report().unwrap();
            // Some hulls have no room, and most have.
            assert!((1..=6).contains(&report.resized_by_workers), "{report:?}");
            let memory = loader.device_memory().unwrap().unwrap();
            assert_eq!(memory.planned_bytes, plan.memory.device_bytes);
            // A limit that leaves no room for it: workers finish the crops.
            let small = on_device().gpu_memory_limit(18 << 20);
            let plan = small.memory_plan(0).unwrap();
            let why = plan.upload.unwrap().why;
            assert!(why.contains("finished rows"), "{why}");
        },
    );
    let Some((standin, _)) = ran else { return };
    // What is allocated is what was planned, in steps of 2 MiB.
    assert!(!standin.calls("cuMemAlloc_v2").is_empty());
}

/// Operations that the device does not have are made by workers, and the reason is told.
#[test]
fn what_the_device_cannot_make_is_finished_by_workers() {
    let ran = with_standin(
        &name_of("what_the_device_cannot_make_is_finished_by_workers"),
        &[],
        |_| {
            let dir = data(2, 9);
            let make = || builder(dir.path()).num_workers(2);
            check(make, &recipe(true));
            let on_device = || make().recipe(recipe(true)).device(Device::Cuda(0));
            let why = on_device().memory_plan(0).unwrap().upload.unwrap().why;
            assert!(why.contains("workers do random_erasing"), "{why}");
            // The device cannot decode for it.
            for erases in [true, false] {
                let refused = make().device(Device::Cuda(0)).decode_on(DecodeOn::Gpu);
                let e = refused.recipe(recipe(erases)).build().unwrap_err();
                assert!(e.to_string().contains("several crops"), "{e}");
            }
        },
    );
    let Some((standin, _)) = ran else { return };
    assert!(standin.calls("cuLaunchKernel").is_empty());
}
