//! Objects, masks and rasters of images that a device decodes, on the stand-in for the NVIDIA driver
//! and on a real device: they are those of workers that decode, also of images that the device
//! rejects.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::order::MultiScale;
use featherload::recipe::{Decode, RandomResizedCrop};
use featherload::{
    Batch, DataType, DecodeOn, EpochTail, InstanceMasks, Loader, LoaderBuilder, MaskOptions,
    MaskRule, MemoryLayout, NumberRule, ObjectOptions, ObjectOverflow, ObjectRule, OnError,
    RasterOptions, RasterRule, Recipe, RowStatus, Sampler, UploadMode,
};

use crate::common::cuda;
use crate::common::rows::{assert_same, rows};
use crate::common::standin::with_standin;
use crate::jpegs::{CODED, PICTURES, file, flags, pictures, seen_of, size, usual};

/// Masks, depths and objects with polygons for the pictures of `jpegs`.
struct Targets {
    files: tempfile::TempDir,
    objects: ObjectOptions,
}

impl Targets {
    fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let form = ObjectListOptions {
            polygons: true,
            ..ObjectListOptions::default()
        };
        let mut list = ObjectList::new(form);
        for i in 0..PICTURES {
            let (width, height) = size(i);
            let (width, height) = (u32::from(width), u32::from(height));
            let mask = image::GrayImage::from_fn(width, height, |x, y| {
                image::Luma([((x + 3 * y + u32::from(i)) % 250) as u8])
            });
            let path = |kind: &str| files.path().join(format!("{i:02}-{kind}.png"));
            mask.save(path("mask")).unwrap();
            let depth = image::ImageBuffer::from_fn(width, height, |x, y| {
                image::Luma([(1 + x + 300 * y) as u16])
            });
            depth.save(path("depth")).unwrap();
            let middle = [f64::from(width) / 2.0, f64::from(height) / 2.0];
            let corner = |k: u16| middle.map(|at| at - 20.0 + 6.0 * f64::from(k));
            let count = i % 4;
            let item = ItemObjects {
                boxes: (0..count)
                    .map(|k| {
                        let [x, y] = corner(k);
                        [x, y, x + 24.0, y + 24.0]
                    })
                    .collect(),
                labels: (0..i64::from(count)).collect(),
                polygons: (0..count)
                    .map(|k| {
                        let [x, y] = corner(k);
                        vec![vec![[x, y], [x + 24.0, y + 3.0], [x + 5.0, y + 24.0]]]
                    })
                    .collect(),
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let objects = ObjectOptions::default().listed(list).unwrap();
        let rule = ObjectRule {
            masks: Some(InstanceMasks::Full),
            ..ObjectRule::default()
        };
        Self {
            objects: objects.rule(rule),
            files,
        }
    }

    /// A loader of images with these targets.
    fn of(&self, images: LoaderBuilder) -> LoaderBuilder {
        let pattern = |kind: &str| format!("{}/{{stem}}-{kind}.png", self.files.path().display());
        // Rows without a sample have numbers that no other byte of the batch is likely to have.
        let masks = MaskRule {
            ignore: Some(255),
            ..MaskRule::default()
        };
        let depth = NumberRule {
            fill: featherload::RasterNumber(-3.0),
            ..NumberRule::depth()
        };
        let depth = RasterOptions::new(pattern("depth"), RasterRule::Numbers(depth));
        (images.objects(self.objects.clone()))
            .masks(MaskOptions::new(pattern("mask")).rule(masks))
            .raster("depth", depth)
    }
}

/// The targets of a batch: objects, their masks, masks of classes, depths.
type SeenTargets = (Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<u8>, Vec<u8>);

fn targets_of(batch: &Batch) -> SeenTargets {
    let rows = 0..batch.len();
    (
        rows.clone()
            .map(|row| batch.objects().unwrap().row_bytes(row))
            .collect(),
        rows.map(|row| batch.instance_masks(row).unwrap().bytes().to_vec())
            .collect(),
        batch.masks().unwrap().bytes().to_vec(),
        batch.raster("depth").unwrap().bytes().to_vec(),
    )
}

/// The rest of an epoch, on the host.
fn batches(loader: &mut Loader) -> Vec<Batch> {
    let batches = loader.epoch();
    let batches = batches.map(|batch| batch.unwrap().to_host().unwrap());
    batches.collect()
}

fn with_targets(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Path, &Targets),
) -> bool {
    let (_, module) = module_path!().split_once("::").unwrap();
    let ended = with_standin(&format!("{module}::{test}"), environment, |_| {
        let data = tempfile::tempdir().unwrap();
        pictures(data.path());
        body(data.path(), &Targets::new());
    });
    ended.is_some()
}

/// Random crops, whose sizes take turns.
fn with_sizes(images: LoaderBuilder) -> LoaderBuilder {
    let recipe = Recipe::new("sizes in turns")
        .then(Decode::default())
        .then(RandomResizedCrop::new(64))
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let sizes = MultiScale {
        divided_by: 8,
        ..MultiScale::new([(64, 64), (48, 32), (32, 56)])
    };
    images.recipe(recipe).multi_scale(sizes)
}

#[test]
fn targets_come_with_rows_that_the_device_decodes() {
    with_targets(
        "targets_come_with_rows_that_the_device_decodes",
        &[
            ("STANDIN_FREE", "7000000000"),
            ("STANDIN_SLOW", "3"),
            ("STANDIN_PENDING", "1"),
        ],
        |dir, targets| {
            for (workers, upload, sizes) in [
                (1, UploadMode::InPlace, false),
                (3, UploadMode::Copied, false),
                (2, UploadMode::Copied, true),
            ] {
                let images = |on| {
                    let images = usual(dir, on).num_workers(workers).upload(upload);
                    match sizes {
                        true => with_sizes(images),
                        false => images,
                    }
                };
                // One after the other: the stand-in knows one ring at a time.
                let want = batches(&mut targets.of(images(DecodeOn::Cpu)).build().unwrap());
                let alone = batches(&mut images(DecodeOn::Gpu).build().unwrap());
                let mut loader = targets.of(images(DecodeOn::Gpu)).build().unwrap();
                assert_eq!(loader.jpegs().on, DecodeOn::Gpu);
                let got = batches(&mut loader);
                assert_eq!(got.len(), want.len());
                let mut inside = 0;
                for ((got, want), alone) in got.iter().zip(&want).zip(&alone) {
                    assert_eq!(got.ids(), want.ids());
                    assert!(targets_of(got) == targets_of(want), "{workers} {upload}");
                    inside += targets_of(got)
                        .1
                        .concat()
                        .iter()
                        .filter(|b| **b == 1)
                        .count();
                    for (got, alone) in got.rows().zip(alone.rows()) {
                        assert!(got.bytes().unwrap() == alone.bytes().unwrap());
                    }
                }
                assert!(inside > 500, "{inside}");
                let jpegs = loader.report().unwrap().device.unwrap().jpegs;
                assert_eq!(jpegs.pictures, u64::from(CODED));
                let memory = loader.device_memory().unwrap().unwrap();
                assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
            }
        },
    );
}

/// Every image that the device decodes is flagged, and three files are broken: rows with their
/// targets are those of workers.
#[test]
fn targets_of_flagged_images_are_those_of_workers() {
    let bytes = flags(0..CODED);
    with_targets(
        "targets_of_flagged_images_are_those_of_workers",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, targets| {
            for i in [7, 13, 14] {
                let whole = file(i);
                let path = dir.join(format!("colours/{i:02}.jpg"));
                fs::write(path, &whole[..whole.len() - 100]).unwrap();
            }
            let of = |on| {
                // The last batch has a row of padding.
                let images = usual(dir, on).on_error(OnError::Skip).tail(EpochTail::Pad);
                let mut loader = targets.of(images).build().unwrap();
                let seen: Vec<_> = batches(&mut loader).iter().flat_map(rows).collect();
                (seen, loader.report().unwrap().device.unwrap().jpegs)
            };
            let (want, _) = of(DecodeOn::Cpu);
            let (got, jpegs) = of(DecodeOn::Gpu);
            assert_same(&got, &want, "flagged");
            assert!(jpegs.decoded_again >= u64::from(CODED - 3), "{jpegs:?}");
            let with = |status| got.iter().filter(|row| row.status == status).count();
            assert_eq!((with(RowStatus::Failed), with(RowStatus::Padding)), (3, 1));
        },
    );
}

/// A file that is whole when a worker hands it over, and cut when it is decoded again: its row has
/// no objects then, and masks and rasters of a row without a sample.
#[test]
fn a_row_that_loses_its_sample_loses_its_targets() {
    const BATCH: u16 = 5;
    const PICTURE: u16 = 2 * BATCH + 1;
    let bytes = flags([PICTURE].into_iter());
    with_targets(
        "a_row_that_loses_its_sample_loses_its_targets",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, targets| {
            let whole = file(PICTURE);
            let path = dir.join(format!("colours/{PICTURE:02}.jpg"));
            let of = |on| {
                let images = usual(dir, on)
                    .on_error(OnError::Skip)
                    .depth(2)
                    .num_workers(1);
                targets.of(images).sampler(Sampler::Sequential)
            };
            let mut loader = of(DecodeOn::Gpu).build().unwrap();
            let mut epoch = loader.epoch();
            // Both batches that have memory on the device are held, so the third waits in the ring.
            let held = [(); 2].map(|()| epoch.next().unwrap().unwrap());
            let filled = || epoch.report().unwrap().times.rows >= 3 * u64::from(BATCH);
            assert!((0..500).any(|_| filled() || {
                thread::sleep(Duration::from_millis(10));
                false
            }));
            fs::write(&path, &whole[..whole.len() - 100]).unwrap();
            let mut got: Vec<Batch> = held.map(|batch| batch.to_host().unwrap()).into();
            got.extend(epoch.map(|batch| batch.unwrap().to_host().unwrap()));
            let want = batches(&mut of(DecodeOn::Cpu).build().unwrap());
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(&want) {
                assert_eq!((got.ids(), got.status()), (want.ids(), want.status()));
                assert!(
                    targets_of(got) == targets_of(want),
                    "batch {}",
                    got.number()
                );
            }
            let row = usize::from(PICTURE % BATCH);
            let batch = &got[usize::from(PICTURE / BATCH)];
            assert_eq!(batch.status()[row], RowStatus::Failed);
            assert!(batch.objects().unwrap().row(row).is_empty());
            let mask = batch.row(row).unwrap().mask().unwrap().unwrap();
            assert!(mask.iter().all(|label| *label == 255));
            // Other rows of the batch keep theirs.
            assert!(batch.objects().unwrap().len() > 3);
        },
    );
}

/// A substitute for an image that the device rejects would need targets that no worker has made.
#[test]
fn with_substitutes_workers_decode_images_with_targets() {
    with_targets(
        "with_substitutes_workers_decode_images_with_targets",
        &[],
        |dir, targets| {
            let of = |on| targets.of(usual(dir, on).on_error(OnError::Substitute));
            let e = of(DecodeOn::Gpu).build().unwrap_err();
            assert!(e.is_usage() && e.to_string().contains("substitute"), "{e}");
            let mut auto = of(DecodeOn::Auto).build().unwrap();
            let jpegs = auto.jpegs();
            assert!(
                jpegs.on == DecodeOn::Cpu && jpegs.why.contains("substitute"),
                "{jpegs:?}"
            );
            assert_eq!(seen_of_all(&mut auto), usize::from(PICTURES));
        },
    );
}

/// A batch size that a refused limit advises fits, and with less memory parts shrink before workers
/// decode.
#[test]
fn limits_of_device_memory_count_targets() {
    with_targets(
        "limits_of_device_memory_count_targets",
        &[],
        |dir, targets| {
            let recipe = Recipe::new("large")
                .then(Decode::default())
                .then(RandomResizedCrop::new(256))
                .with_dtype(DataType::U8)
                .with_layout(MemoryLayout::Nhwc);
            let images = |on| {
                usual(dir, on)
                    .recipe(recipe.clone())
                    .upload(UploadMode::InPlace)
            };
            let of = |on, batch: u32| targets.of(images(on)).batch_size(batch);
            let bytes = |of: LoaderBuilder| of.memory_plan(0).unwrap().memory.device_bytes;
            let most = bytes(of(DecodeOn::Auto, 24));
            assert!(most > bytes(images(DecodeOn::Auto).batch_size(24)) + (8 << 20));
            let least = bytes(of(DecodeOn::Cpu, 24));
            let run = |limit, on| {
                let limited = of(DecodeOn::Auto, 24).gpu_memory_limit(limit);
                let mut loader = limited.build().unwrap();
                assert_eq!(loader.jpegs().on, on);
                let memory = loader.device_memory().unwrap().unwrap();
                assert!(memory.planned_bytes <= limit, "{memory:?}");
                batches(&mut loader)
                    .iter()
                    .map(targets_of)
                    .collect::<Vec<_>>()
            };
            assert!(run(least, DecodeOn::Cpu) == run(most, DecodeOn::Gpu));
            let limit = bytes(of(DecodeOn::Cpu, 5));
            let refused = of(DecodeOn::Cpu, 24).gpu_memory_limit(limit).build();
            let refused = refused.unwrap_err().to_string();
            let (_, advised) = refused.split_once("batch_size ").expect(&refused);
            let digits = advised.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            let advised: u32 = digits.parse().unwrap();
            assert!((2..=24).contains(&advised), "{refused}");
            let fits = of(DecodeOn::Cpu, advised).gpu_memory_limit(limit);
            assert!(!batches(&mut fits.build().unwrap()).is_empty());
        },
    );
}

/// The first bad row ends a run, whether a worker finds its objects wrong or the device its data.
#[test]
fn the_first_bad_row_ends_a_run_with_targets() {
    let bytes = flags(0..CODED);
    with_targets(
        "the_first_bad_row_ends_a_run_with_targets",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, targets| {
            // Image 3 has three objects. Image 7 is cut.
            let whole = file(7);
            fs::write(dir.join("colours/07.jpg"), &whole[..whole.len() - 100]).unwrap();
            for most in [2, 3] {
                let of = |on| {
                    let rule = ObjectRule {
                        max_objects: Some(most),
                        overflow: ObjectOverflow::Error,
                        ..ObjectRule::default()
                    };
                    let images = usual(dir, on).sampler(Sampler::Sequential);
                    let images = targets
                        .of(images)
                        .objects(targets.objects.clone().rule(rule));
                    let mut loader = images.build().unwrap();
                    let all: Vec<_> = loader.epoch().collect();
                    let ended = all.last().unwrap().as_ref().map(drop);
                    (all.len(), ended.unwrap_err().to_string())
                };
                let (got, want) = (of(DecodeOn::Gpu), of(DecodeOn::Cpu));
                assert_eq!(got, want);
                let file = if most == 2 { "03.jpg" } else { "07.jpg" };
                assert!(got.1.contains(file), "{got:?}");
            }
        },
    );
}

fn seen_of_all(loader: &mut Loader) -> usize {
    let batches = loader.epoch();
    batches.map(|batch| seen_of(batch.unwrap()).len()).sum()
}

/// On a real device, with killed workers too: rows and targets are those of workers that decode, bit
/// for bit.
#[test]
fn gpu_rows_with_targets_are_those_of_workers_that_decode() {
    if !cuda::is_there() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    pictures(data.path());
    let (dir, targets) = (data.path(), Targets::new());
    for i in [7, 13] {
        let whole = file(i);
        let path = dir.join(format!("colours/{i:02}.jpg"));
        fs::write(path, &whole[..whole.len() - 100]).unwrap();
    }
    let images = |on, workers| {
        let images = usual(dir, on).on_error(OnError::Skip).epochs(100);
        targets.of(images.num_workers(workers))
    };
    type Change = fn(LoaderBuilder) -> LoaderBuilder;
    let changes: [Change; 4] = [
        |b| b.upload(UploadMode::InPlace),
        |b| b.upload(UploadMode::Copied),
        with_sizes,
        |b| b.recipe(Recipe::train224()),
    ];
    for change in changes {
        let stream = |loader: &mut Loader| -> Vec<_> {
            let epochs = (0..3).flat_map(|_| batches(loader));
            epochs.flat_map(|batch| rows(&batch)).collect()
        };
        let want = stream(&mut change(images(DecodeOn::Cpu, 3)).build().unwrap());
        let mut loader = change(images(DecodeOn::Gpu, 3)).build().unwrap();
        assert_same(&stream(&mut loader), &want, "targets");
        let jpegs = loader.report().unwrap().device.unwrap().jpegs;
        assert!(jpegs.pictures >= 3 * u64::from(CODED - 2), "{jpegs:?}");
        let memory = loader.device_memory().unwrap().unwrap();
        assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
        drop(loader);
        let killed = images(DecodeOn::Gpu, 3).kill_workers_every(Duration::from_millis(20));
        assert_same(
            &stream(&mut change(killed).build().unwrap()),
            &want,
            "killed",
        );
    }
}
