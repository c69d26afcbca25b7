//! Several crops of each image with a device, and the stand-in for its driver. The stand-in runs
//! the kernel's own code, so the crops must be those of the CPU, bit for bit.

use std::fs;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::recipe::{RandomErasing, RandomHorizontalFlip, RandomResizedCrop};
use featherload::{Batch, DataType, DecodeOn, Device, Loader, LoaderBuilder, OnError, Recipe};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::with_standin;
use crate::common::{builder, data};
use crate::crop_recipes::{dino, dino2, images, recipes, simclr};

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
            eprintln!("{PLANNED}{}", plan.memory.device_bytes);
            // A limit that leaves no room for it: workers finish the crops.
            let small = on_device().gpu_memory_limit(18 << 20);
            let plan = small.memory_plan(0).unwrap();
            let why = plan.upload.unwrap().why;
            let wanted = "finished rows are always copied, all rows of a batch at once: \
                          gpu_memory_limit allows 18 MiB, and the device needs ";
            assert!(why.starts_with(wanted), "{why}");
        },
    );
    let Some((standin, errors)) = ran else { return };
    // What is allocated is what was planned: in steps of 2 MiB, and 8 MiB for the driver's own.
    let taken = standin.calls("cuMemAlloc_v2");
    let taken = taken.iter().map(|line| {
        let bytes = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        bytes.next_multiple_of(2 << 20)
    });
    let taken = taken.sum::<u64>() + (8 << 20);
    let planned = errors.lines().find_map(|line| line.strip_prefix(PLANNED));
    assert_eq!(planned, Some(taken.to_string().as_str()), "{errors}");
}

/// Before the bytes that a child planned.
const PLANNED: &str = "planned bytes of the device: ";

/// Two crops of bytes, which take less room than their hull.
fn small_rows(size: u32) -> Recipe {
    let crop = Recipe::new("crop")
        .then(RandomResizedCrop::new(size))
        .with_dtype(DataType::U8);
    Recipe::new("bytes").with_crop(crop, 2)
}

/// A limit of the host's memory that leaves room for finished crops only.
#[test]
fn hulls_do_not_take_slots_away() {
    with_standin(&name_of("hulls_do_not_take_slots_away"), &[], |_| {
        let dir = data(2, 9);
        let make = || builder(dir.path()).num_workers(2).recipe(small_rows(128));
        let plan = |limit| {
            let on_device = make().device(Device::Cuda(0)).memory_limit(limit);
            on_device.memory_plan(0).unwrap()
        };
        let free = plan(1 << 40);
        assert!(free.upload.unwrap().why.contains("makes all crops"));
        let all = free.memory.total_bytes;
        assert!(plan(all).upload.unwrap().why.contains("makes all crops"));
        let less = plan(all - 1);
        let why = less.upload.unwrap().why;
        assert!(why.contains(": memory_limit allows "), "{why}");
        let what = "is too little for depth 3 if the device makes the crops";
        assert!(why.ends_with(what), "{why}");
        assert_eq!((less.memory.depth, less.lowered), (3, None));
        assert!(less.memory.slot_bytes < free.memory.slot_bytes);
        // Also as a run.
        check(|| make().memory_limit(all - 1), &small_rows(128));
        // A limit that is too small for both.
        let least = make()
            .device(Device::Cuda(0))
            .memory_limit(1)
            .memory_plan(0)
            .unwrap_err();
        assert!(least.to_string().contains("memory_limit"), "{least}");
        // Without a limit, a ring of hulls is bounded.
        let large = make().recipe(small_rows(2048)).device(Device::Cuda(0));
        let large = large.batch_size(64).memory_plan_with_refusal(0).unwrap().0;
        let why = large.upload.unwrap().why;
        assert!(
            why.contains("if the device made the crops, over 4 GiB"),
            "{why}"
        );
    });
}

/// Whether each channel of all crops of a batch has one level.
fn is_plain(host: &Batch) -> bool {
    (0..host.len()).all(|row| {
        let parts = host.row(row).unwrap().parts().unwrap();
        assert_eq!(parts.len(), 5);
        parts.iter().zip([33, 33, 16, 16, 16]).all(|(part, side)| {
            let plane = part.len() / 3;
            let element = plane / (side * side);
            assert_eq!(part.len(), 3 * element * side * side);
            let mut planes = part.chunks_exact(plane);
            planes.all(|plane| plane.chunks_exact(element).all(|e| *e == plane[..element]))
        })
    })
}

/// A worker may write any tables. The kernel reads no pixel outside of the window: from places
/// after its end it takes the last pixel.
#[test]
fn tables_that_lie_read_nothing_else() {
    let test = name_of("tables_that_lie_read_nothing_else");
    let run = |recipe: Recipe, dir: &tempfile::TempDir, plain: Option<bool>| {
        let make = builder(dir.path()).num_workers(2).device(Device::Cuda(0));
        let mut loader = make.recipe(recipe).epochs(1).build().unwrap();
        for batch in loader.epoch() {
            let batch = batch.unwrap().to_host().unwrap();
            if let Some(plain) = plain {
                assert_eq!(is_plain(&batch), plain, "batch {}", batch.number());
            }
        }
    };
    // The pictures are not plain.
    with_standin(&test, &[], |_| {
        let dir = data(2, 9);
        match std::env::var("STANDIN_LIES").as_deref() {
            Ok("ends") => run(recipe(false), &dir, Some(true)),
            Ok(_) => [dino(48, 21), dino2(40, 16), simclr(33)]
                .into_iter()
                .for_each(|recipe| run(recipe, &dir, None)),
            Err(_) => run(recipe(false), &dir, Some(false)),
        }
    });
    for lies in ["ends", "tables"] {
        let ran = with_standin(&test, &[("STANDIN_LIES", lies)], |_| ());
        let Some((standin, _)) = ran else { return };
        assert!(!standin.calls("cuLaunchKernel").is_empty());
    }
}

/// A header that a worker has destroyed ends the run with an error.
#[test]
fn a_header_that_lies_ends_the_run() {
    with_standin(
        &name_of("a_header_that_lies_ends_the_run"),
        &[("STANDIN_LIES", "headers")],
        |_| {
            let dir = data(2, 9);
            let make = builder(dir.path()).num_workers(2).device(Device::Cuda(0));
            let mut loader = make.recipe(recipe(false)).epochs(500).build().unwrap();
            let error = (0..500).find_map(|_| loader.epoch().find_map(|batch| batch.err()));
            let error = error.unwrap().to_string();
            let wanted = "row 1 was destroyed in shared memory";
            assert!(error.contains(wanted), "{error}");
            assert!(
                error.contains("crop 0: its tables or its passes have no room"),
                "{error}"
            );
        },
    );
}

/// A run goes on where another one ended, on the CPU or on the device, and workers that are killed
/// change nothing.
#[test]
fn crops_are_the_same_through_kills_and_on_another_device() {
    with_standin(
        &name_of("crops_are_the_same_through_kills_and_on_another_device"),
        &[],
        |_| {
            let dir = data(2, 9);
            let make = |on_device: bool| {
                let make = builder(dir.path()).num_workers(2).recipe(dino(48, 21));
                let device = if on_device {
                    Device::Cuda(0)
                } else {
                    Device::Cpu
                };
                make.device(device).epochs(2)
            };
            let rest = |loader: &mut Loader, batches: usize| {
                let mut all = Vec::new();
                let mut taken = 0;
                while taken < batches && loader.state().epoch < 2 {
                    for batch in loader.epoch() {
                        let batch = batch.unwrap();
                        all.extend(match batch.on_device() {
                            Some(_) => rows(&batch.to_host().unwrap()),
                            None => rows(&batch),
                        });
                        taken += 1;
                        if taken == batches {
                            break;
                        }
                    }
                }
                all
            };
            let want = rest(&mut make(false).build().unwrap(), usize::MAX);
            assert_eq!(want.len(), 36);
            for first in [false, true] {
                let mut loader = make(first).build().unwrap();
                let mut got = rest(&mut loader, 2);
                let state = loader.state();
                drop(loader);
                let mut loader = make(!first).resume(state).build().unwrap();
                got.extend(rest(&mut loader, usize::MAX));
                assert_same(&got, &want, "resumed");
            }
            let killed = make(true).kill_workers_every(Duration::from_millis(5));
            let got = rest(&mut killed.build().unwrap(), usize::MAX);
            assert_same(&got, &want, "killed");
        },
    );
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
