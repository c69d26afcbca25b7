//! The loader with a device, with the stand-in for the NVIDIA driver in front: its
//! batches are those of the CPU, whatever becomes of epochs, batches and loaders; and
//! when another part of the process resets the device's context, that is said.
//!
//! Finished rows are compared bit by bit. Of a crop the stand-in's kernel makes a row
//! of its first byte, so pictures are of one grey each: then the CPU's row says which. Workers
//! decode; what becomes of JPEGs that a device decodes: `jpegs`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use featherload::Position;
use featherload::index::ListOptions;
use featherload::objects::{ItemObjects, ObjectList, ObjectListOptions};
use featherload::order::MultiScale;
use featherload::recipe::{Decode, GaussianBlur, RandomResizedCrop};
use featherload::{
    Batch, DataType, DecodeOn, Device, EpochTail, Error, InstanceMasks, Loader, LoaderBuilder,
    MaskOptions, MaskRule, MemoryLayout, NumberRule, ObjectOptions, ObjectRule, OnError, PairRule,
    RasterNumber, RasterOptions, RasterRule, Recipe, Sampler, Source, State, UploadMode,
};
use image::ExtendedColorType;
use jpeg_encoder::{ColorType, Encoder};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use twox_hash::XxHash3_128;

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::{Standin, with_standin};
use crate::common::{FEATHERLOAD, builder, npy};

const GREYS: u8 = 20;
const BATCH: u32 = 6;

/// Pictures of one grey each, and of different sizes.
fn greys(dir: &Path) {
    let folder = dir.join("greys");
    fs::create_dir(&folder).unwrap();
    for i in 0..GREYS {
        let (width, height) = (60 + 7 * u16::from(i), 150 - 5 * u16::from(i));
        let pixels = vec![10 + 12 * i; usize::from(width) * usize::from(height)];
        let mut file = Vec::new();
        Encoder::new(&mut file, 95)
            .encode(&pixels, width, height, ColorType::Luma)
            .unwrap();
        fs::write(folder.join(format!("{i:02}.jpg")), file).unwrap();
    }
}

/// A recipe whose rows a device makes, and one whose rows workers finish.
fn recipes() -> [(Recipe, bool); 2] {
    let recipe = Recipe::new("grey")
        .then(Decode::default())
        .then(RandomResizedCrop::new(24));
    let of = |recipe: Recipe| {
        recipe
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc)
    };
    [
        (of(recipe.clone()), true),
        (of(recipe.then(GaussianBlur::new(3))), false),
    ]
}

/// The rows of a batch of the CPU, as the stand-in would make them of crops: the first
/// byte of the tables, which is 0, then everywhere that of the pixels.
fn of_crops(batch: &Batch) -> Vec<Row> {
    let mut all = rows(batch);
    for row in &mut all {
        if row.status.is_masked() {
            continue;
        }
        let bytes = batch.row(row.row).unwrap().bytes().unwrap();
        assert!(bytes.iter().all(|b| *b == bytes[0]), "a row of one grey");
        let rasters = batch.raster_names().map(|name| batch.raster(name).unwrap());
        let mut made: Vec<u8> = rasters
            .flat_map(|raster| raster.row(row.row).unwrap().to_vec())
            .collect();
        let first = made.len();
        made.extend(bytes);
        made[first] = 0;
        made.extend(
            batch
                .row(row.row)
                .unwrap()
                .mask()
                .unwrap()
                .into_iter()
                .flatten(),
        );
        row.pixels = XxHash3_128::oneshot(&made);
    }
    all
}

fn of_device(batch: Batch) -> Vec<Row> {
    assert!(batch.on_device().is_some());
    rows(&batch.to_host().unwrap())
}

/// What `drive` sees of a loader, on the CPU and on the device, in both ways.
fn is_that_of_the_cpu(
    make: impl Fn() -> LoaderBuilder,
    drive: impl Fn(&mut Loader, &dyn Fn(Batch) -> Vec<Row>) -> Vec<Row>,
) {
    for (recipe, crops) in recipes() {
        let mut cpu = make().recipe(recipe.clone()).build().unwrap();
        let want = drive(&mut cpu, &|batch| match crops {
            true => of_crops(&batch),
            false => rows(&batch),
        });
        assert!(want.len() > BATCH as usize);
        for upload in [UploadMode::InPlace, UploadMode::Copied] {
            let b = make().recipe(recipe.clone()).upload(upload);
            let mut device = b.device(Device::Cuda(0)).build().unwrap();
            let got = drive(&mut device, &of_device);
            assert_same(&got, &want, &format!("crops {crops}, {upload}"));
        }
    }
}

fn usual(dir: &Path) -> LoaderBuilder {
    let builder = builder(dir).decode_on(DecodeOn::Cpu);
    builder.batch_size(BATCH).num_workers(2)
}

/// `with_standin`, with greys; the standin's folder is given too.
fn with_greys(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Path, &Path),
) -> Option<(Standin, String)> {
    let (_, module) = module_path!().split_once("::").unwrap();
    with_standin(&format!("{module}::{test}"), environment, |standin| {
        let data = tempfile::tempdir().unwrap();
        greys(data.path());
        body(data.path(), standin);
    })
}

#[test]
fn epochs_may_be_broken_off() {
    with_greys(
        "epochs_may_be_broken_off",
        &[("STANDIN_PENDING", "2")],
        |dir, _| {
            is_that_of_the_cpu(
                || usual(dir).epochs(9),
                |loader, see| {
                    let mut all = Vec::new();
                    let mut take = |loader: &mut Loader, batches: usize| {
                        for batch in loader.epoch().take(batches) {
                            all.extend(see(batch.unwrap()));
                        }
                    };
                    take(loader, 1);
                    take(loader, usize::MAX);
                    take(loader, 3);
                    loader.set_epoch(7);
                    take(loader, 2);
                    loader.set_epoch(0);
                    take(loader, usize::MAX);
                    take(loader, usize::MAX);
                    let epochs: Vec<u64> = all.iter().map(|r| r.epoch).collect();
                    assert!([0, 1, 2, 7].iter().all(|e| epochs.contains(e)));
                    all
                },
            );
        },
    );
}

/// Workers make masks and depths, and a device the rows before them. Rows whose mask is broken have
/// no sample.
#[test]
fn masks_come_with_their_batch() {
    with_greys("masks_come_with_their_batch", &[], |dir, _| {
        let masks = tempfile::tempdir().unwrap();
        let masks = masks.path();
        for i in 0..GREYS {
            let (width, height) = (60 + 7 * u32::from(i), 150 - 5 * u32::from(i));
            let mask = image::GrayImage::from_fn(width, height, |x, y| {
                image::Luma([((x + 3 * y) % 250) as u8])
            });
            mask.save(masks.join(format!("{i:02}.png"))).unwrap();
        }
        fs::write(masks.join("03.png"), b"no mask").unwrap();
        let files = format!("{}/{{stem}}.png", masks.display());
        let fill = MaskRule {
            ignore: Some(255),
            ..MaskRule::default()
        };
        let make = || {
            let depth = RasterRule::Numbers(NumberRule {
                fill: RasterNumber(-3.0),
                ..NumberRule::depth()
            });
            usual(dir)
                .masks(MaskOptions::new(files.clone()).rule(fill.clone()))
                .raster("depth", RasterOptions::new(files.clone(), depth))
                .on_error(OnError::Skip)
                .epochs(2)
        };
        is_that_of_the_cpu(make, |loader, see| {
            let mut all = Vec::new();
            while loader.state().epoch < 2 {
                for batch in loader.epoch() {
                    let batch = batch.unwrap();
                    let layout = batch.mask_layout().unwrap();
                    assert!(batch.raster_layout("depth").unwrap().start > layout.0);
                    all.extend(see(batch));
                }
            }
            assert_eq!(all.iter().filter(|row| row.status.is_masked()).count(), 2);
            all
        });
    });
}

/// Workers finish the rows of images with pairs, and all rasters are copied to the device.
#[test]
fn rasters_come_with_their_batch() {
    with_greys("rasters_come_with_their_batch", &[], |dir, _| {
        let files = tempfile::tempdir().unwrap();
        for i in 0..GREYS {
            let (width, height) = (60 + 7 * u32::from(i), 150 - 5 * u32::from(i));
            let depth = image::ImageBuffer::from_fn(width, height, |x, y| {
                image::Luma([(1 + x + 300 * y) as u16])
            });
            depth
                .save(files.path().join(format!("{i:02}.png")))
                .unwrap();
        }
        let pattern = format!("{}/{{stem}}.png", files.path().display());
        for (recipe, _) in recipes() {
            let make = || {
                let depth = RasterRule::Numbers(NumberRule::depth());
                let pair = RasterRule::Image(PairRule::default());
                usual(dir)
                    .recipe(recipe.clone())
                    .raster("depth", RasterOptions::new(pattern.clone(), depth))
                    .raster("pair", RasterOptions::new(pattern.clone(), pair))
                    .epochs(1)
            };
            let all = |loader: &mut Loader, see: &dyn Fn(Batch) -> Vec<Row>| -> Vec<Row> {
                let seen = loader.epoch().flat_map(|batch| see(batch.unwrap()));
                seen.collect()
            };
            let want = all(&mut make().build().unwrap(), &|batch| rows(&batch));
            let mut device = make().device(Device::Cuda(0)).build().unwrap();
            assert_same(&all(&mut device, &of_device), &want, "rasters");
        }
    });
}

/// Objects are those of the CPU, whether a device or workers finish the rows.
#[test]
fn objects_come_with_their_batch() {
    with_greys("objects_come_with_their_batch", &[], |dir, _| {
        let mut list = ObjectList::new(ObjectListOptions::default());
        for i in 0..GREYS {
            let count = i64::from(i % 5);
            let item = ItemObjects {
                boxes: (0..count)
                    .map(|k| [k as f64, 2.0, 30.0 + k as f64, 50.5])
                    .collect(),
                labels: (0..count).collect(),
                ids: (0..count).map(|k| 100 * i64::from(i) + k).collect(),
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let objects = ObjectOptions::default().listed(list).unwrap();
        for (recipe, crops) in recipes() {
            let make = || {
                usual(dir)
                    .recipe(recipe.clone())
                    .objects(objects.clone())
                    .epochs(1)
            };
            let all = |loader: &mut Loader| -> Vec<Batch> {
                let batches = loader.epoch().map(Result::unwrap);
                batches.map(|batch| batch.detach().unwrap()).collect()
            };
            let want = all(&mut make().num_workers(2).build().unwrap());
            let mut device = make().device(Device::Cuda(0)).build().unwrap();
            let mut seen = 0;
            let mut batches = device.epoch();
            for want in want {
                let got = batches.next().unwrap().unwrap();
                assert_eq!(got.objects(), want.objects());
                seen += got.objects().unwrap().len();
                assert_eq!((got.ids(), got.status()), (want.ids(), want.status()));
                if !crops {
                    assert_same(&of_device(got), &rows(&want), "objects");
                }
            }
            assert!(seen > 10, "{seen}");
        }
    });
}

/// Instance masks follow the rows of a device and their rasters: those of the CPU, also of masked
/// rows and in batches of several sizes. The memory is what was planned.
#[test]
fn instance_masks_come_with_their_batch() {
    with_greys("instance_masks_come_with_their_batch", &[], |dir, _| {
        fs::write(dir.join("greys/07.jpg"), "no picture").unwrap();
        let files = tempfile::tempdir().unwrap();
        for i in 0..GREYS {
            let (width, height) = (60 + 7 * u32::from(i), 150 - 5 * u32::from(i));
            let depth = image::ImageBuffer::from_fn(width, height, |x, y| {
                image::Luma([(1 + x + 300 * y) as u16])
            });
            depth
                .save(files.path().join(format!("{i:02}.png")))
                .unwrap();
        }
        let pattern = format!("{}/{{stem}}.png", files.path().display());
        let form = ObjectListOptions {
            polygons: true,
            ..ObjectListOptions::default()
        };
        let mut list = ObjectList::new(form);
        for i in 0..GREYS {
            let corner = |k: u8| 3.0 + f64::from(k) * 4.0 + f64::from(i % 3);
            let ring = |k: u8| {
                let (near, far) = (corner(k), corner(k) + 40.0);
                vec![vec![[near, near], [far, near + 5.0], [near + 9.0, far]]]
            };
            let count = i % 4;
            let item = ItemObjects {
                boxes: (0..count)
                    .map(|k| [corner(k), corner(k), corner(k) + 40.0, corner(k) + 40.0])
                    .collect(),
                labels: (0..i64::from(count)).collect(),
                polygons: (0..count).map(ring).collect(),
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let objects = ObjectOptions::default().listed(list).unwrap();
        let depth = RasterRule::Numbers(NumberRule::depth());
        for (recipe, crops) in recipes() {
            for (scale, sizes) in [
                (InstanceMasks::Full, None),
                (InstanceMasks::Quarter, None),
                (
                    InstanceMasks::Full,
                    Some(MultiScale {
                        divided_by: 8,
                        ..MultiScale::new([(16, 24), (40, 32)])
                    }),
                ),
            ] {
                let rule = ObjectRule {
                    masks: Some(scale),
                    ..ObjectRule::default()
                };
                let make = |device| {
                    let make = usual(dir)
                        .recipe(recipe.clone())
                        .objects(objects.clone().rule(rule.clone()))
                        .raster("depth", RasterOptions::new(pattern.clone(), depth.clone()))
                        .on_error(OnError::Skip)
                        .num_workers(2)
                        .epochs(1)
                        .device(device);
                    match &sizes {
                        Some(sizes) => make.multi_scale(sizes.clone()),
                        None => make,
                    }
                };
                let planned = make(Device::Cuda(0)).memory_plan(0).unwrap().memory;
                let mut cpu = make(Device::Cpu).build().unwrap();
                let mut device = make(Device::Cuda(0)).build().unwrap();
                let masks_of = |batch: &Batch| -> Vec<(Vec<u8>, [usize; 3])> {
                    let masks = (0..batch.len()).map(|row| batch.instance_masks(row).unwrap());
                    masks.map(|of| (of.bytes().to_vec(), of.shape())).collect()
                };
                let (mut inside, mut masked) = (0, 0);
                for (want, got) in cpu.epoch().zip(device.epoch()) {
                    let (want, got) = (want.unwrap(), got.unwrap().to_host().unwrap());
                    assert_eq!((got.ids(), got.status()), (want.ids(), want.status()));
                    assert_eq!(got.objects().unwrap().boxes, want.objects().unwrap().boxes);
                    assert!(
                        masks_of(&got) == masks_of(&want),
                        "{} {scale:?}",
                        recipe.name
                    );
                    let depth = |batch: &Batch| batch.raster("depth").unwrap().bytes().to_vec();
                    assert!(depth(&got) == depth(&want));
                    if !crops {
                        assert_same(&rows(&got), &rows(&want), "rows with masks");
                    }
                    masked += got
                        .status()
                        .iter()
                        .filter(|status| status.is_masked())
                        .count();
                    let of_rows = masks_of(&got).into_iter();
                    inside += of_rows
                        .map(|(bytes, _)| bytes.iter().filter(|b| **b == 1).count())
                        .sum::<usize>();
                }
                assert_eq!(masked, 1);
                // A mask of a quarter has a sixteenth of the pixels.
                assert!(inside > 30, "{inside}");
                let memory = device.device_memory().unwrap().unwrap();
                assert_eq!(memory.planned_bytes, planned.device_bytes);
            }
        }
    });
}

#[test]
fn batches_outlive_their_loader() {
    with_greys(
        "batches_outlive_their_loader",
        &[("STANDIN_PENDING", "1000000")],
        |dir, _| {
            for (recipe, crops) in recipes() {
                let two = |loader: &mut Loader| -> Vec<Batch> {
                    loader.epoch().take(2).map(Result::unwrap).collect()
                };
                let make = || usual(dir).recipe(recipe.clone()).epochs(1);
                let want: Vec<Vec<Row>> = two(&mut make().build().unwrap())
                    .iter()
                    .map(|batch| if crops { of_crops(batch) } else { rows(batch) })
                    .collect();
                let mut loader = make().device(Device::Cuda(0)).build().unwrap();
                let batches = two(&mut loader);
                drop(loader);
                // In any thread, in any order.
                let seen = thread::spawn(move || {
                    let of = |batch: Batch| {
                        batch.on_device().unwrap().wait().unwrap();
                        assert!(batch.on_device().unwrap().is_ready().unwrap());
                        of_device(batch)
                    };
                    let mut seen: Vec<_> = batches.into_iter().rev().map(of).collect();
                    seen.reverse();
                    seen
                });
                for (got, want) in seen.join().unwrap().iter().zip(&want) {
                    assert_same(got, want, &format!("crops {crops}"));
                }
            }
        },
    );
}

#[test]
fn sizes_may_change_from_batch_to_batch() {
    with_greys("sizes_may_change_from_batch_to_batch", &[], |dir, _| {
        is_that_of_the_cpu(
            || {
                usual(dir).multi_scale(MultiScale {
                    divided_by: 4,
                    ..MultiScale::new([(24, 24), (40, 16), (12, 32)])
                })
            },
            |loader, see| {
                let (mut all, mut shapes) = (Vec::new(), Vec::new());
                for _ in 0..2 {
                    for batch in loader.epoch() {
                        let batch = batch.unwrap();
                        let [_, height, width, channels] = batch.shape().unwrap();
                        assert_eq!(channels, 3);
                        shapes.push((height, width));
                        all.extend(see(batch));
                    }
                }
                for size in [(24, 24), (40, 16), (12, 32)] {
                    assert!(shapes.contains(&size), "{shapes:?}");
                }
                all
            },
        );
    });
}

#[test]
fn a_state_gives_the_rest_to_the_bit() {
    with_greys(
        "a_state_gives_the_rest_to_the_bit",
        &[("STANDIN_PENDING", "1")],
        |dir, _| {
            // Through a state as it is saved, at each batch of two epochs.
            for (recipe, _) in recipes() {
                let make = || {
                    usual(dir)
                        .recipe(recipe.clone())
                        .epochs(2)
                        .device(Device::Cuda(0))
                };
                let rest = |loader: &mut Loader| {
                    let mut all = Vec::new();
                    while loader.state().epoch < 2 {
                        for batch in loader.epoch() {
                            all.extend(of_device(batch.unwrap()));
                        }
                    }
                    all
                };
                let whole = rest(&mut make().build().unwrap());
                let mut first = make().build().unwrap();
                let (mut seen, mut states) = (0, Vec::new());
                for _ in 0..2 {
                    let mut epoch = first.epoch();
                    while let Some(batch) = epoch.next() {
                        seen += batch.unwrap().len();
                        let state: State =
                            serde_json::from_str(&serde_json::to_string(&epoch.state()).unwrap())
                                .unwrap();
                        states.push((seen, state));
                    }
                }
                assert_eq!(seen, whole.len());
                states.pop();
                for (seen, state) in states.into_iter().step_by(2) {
                    let mut loader = make().resume(state).build().unwrap();
                    assert_same(
                        &rest(&mut loader),
                        &whole[seen..],
                        &format!("from row {seen}"),
                    );
                }
            }
            is_that_of_the_cpu(
                || usual(dir).start(Position::new(1, 2)).epochs(2),
                |loader, see| {
                    let batches = loader.epoch().map(|batch| see(batch.unwrap()));
                    batches.flatten().collect()
                },
            );
        },
    );
}

#[test]
fn rows_that_fail_are_masked_or_substituted() {
    with_greys("rows_that_fail_are_masked_or_substituted", &[], |dir, _| {
        for name in ["05.jpg", "06.jpg", "11.jpg"] {
            fs::write(dir.join("greys").join(name), "no picture").unwrap();
        }
        for policy in [OnError::Skip, OnError::Substitute] {
            is_that_of_the_cpu(
                || {
                    usual(dir)
                        .on_error(policy)
                        .sampler(Sampler::Sequential)
                        .tail(EpochTail::Pad)
                },
                |loader, see| {
                    let mut all = Vec::new();
                    for batch in loader.epoch() {
                        let batch = batch.unwrap();
                        let bad = batch.faults().len();
                        let seen = see(batch);
                        let changed = seen.iter().filter(|r| {
                            use featherload::RowStatus::{Failed, Substituted};
                            matches!(r.status, Failed | Substituted)
                        });
                        assert_eq!(changed.count(), bad);
                        all.extend(seen);
                    }
                    // Masked rows are zeros, also where others lay before.
                    let zeros = vec![0; 24 * 24 * 3];
                    let masked = all.iter().filter(|r| r.status.is_masked());
                    let masked: Vec<u128> = masked.map(|r| r.pixels).collect();
                    assert!(masked.len() >= 4);
                    assert!(masked.iter().all(|p| *p == XxHash3_128::oneshot(&zeros)));
                    all
                },
            );
        }
    });
}

/// Whoever keeps all batches is told, and loses none.
#[test]
fn a_batch_that_is_dropped_makes_room_for_the_next() {
    let name = "a_batch_that_is_dropped_makes_room_for_the_next";
    with_greys(name, &[("STANDIN_PENDING", "1")], |dir, _| {
        for depth in [1, 3] {
            is_that_of_the_cpu(
                || {
                    usual(dir)
                        .batch_size(3)
                        .depth(depth)
                        .hold_timeout(Duration::from_millis(50))
                },
                |loader, see| {
                    let (mut all, mut held, mut refused) = (Vec::new(), Vec::new(), 0);
                    for next in loader.epoch() {
                        match next {
                            Ok(batch) => held.push(batch),
                            Err(Error::SlotsHeld { what, .. }) => {
                                refused += 1;
                                assert!(what.contains("drop batches earlier"), "{what}");
                                all.extend(see(held.remove(0)));
                            }
                            Err(e) => panic!("{e}"),
                        }
                        assert!(refused < 100, "nothing comes of a drop");
                    }
                    assert!(refused > 0);
                    all.extend(held.into_iter().flat_map(see));
                    all
                },
            );
        }
    });
}

/// Before a batch is handed over, those behind it that are finished are put on the
/// device, as long as it has memory for them.
#[test]
fn batches_are_put_on_the_device_ahead() {
    with_greys(
        "batches_are_put_on_the_device_ahead",
        &[],
        |dir, standin| {
            let launches = || {
                let log = fs::read_to_string(standin.join("log")).unwrap_or_default();
                log.matches("\ncuLaunchKernel ").count()
            };
            let [(crops, _), _] = recipes();
            for (keep, ahead) in [(false, 2), (true, 1)] {
                let before = launches();
                let b = usual(dir).recipe(crops.clone()).batch_size(2).depth(3);
                let mut loader = b
                    .upload(UploadMode::InPlace)
                    .device(Device::Cuda(0))
                    .build()
                    .unwrap();
                let mut epoch = loader.epoch();
                let first = epoch.next().unwrap().unwrap();
                // The slot of the first batch was given back, and all are full.
                let full = || epoch.report().unwrap().times.rows >= 8;
                assert!((0..500).any(|_| full() || {
                    thread::sleep(Duration::from_millis(10));
                    false
                }));
                // A worker counts a row just before it commits it.
                thread::sleep(Duration::from_millis(100));
                let first = keep.then_some(first);
                let second = epoch.next().unwrap().unwrap();
                // Of three batches that have memory there, one or two are held.
                assert_eq!(launches() - before, 2 + ahead, "kept: {keep}");
                drop((first, second));
            }
        },
    );
}

/// What is wrong with a batch that was put ahead is told when it is asked for, and the
/// state stands before it.
#[test]
fn a_bad_sample_ahead_is_told_in_its_turn() {
    with_greys("a_bad_sample_ahead_is_told_in_its_turn", &[], |dir, _| {
        let bad = dir.join("greys").join("07.jpg");
        let good = fs::read(&bad).unwrap();
        for (recipe, _) in recipes() {
            fs::write(&bad, "no picture").unwrap();
            let make = || {
                let b = usual(dir).recipe(recipe.clone()).batch_size(2).depth(8);
                b.sampler(Sampler::Sequential)
            };
            let mut loader = make().device(Device::Cuda(0)).build().unwrap();
            let (mut all, mut output) = (Vec::new(), 0);
            let mut epoch = loader.epoch();
            for _ in 0..3 {
                all.extend(of_device(epoch.next().unwrap().unwrap()));
                thread::sleep(Duration::from_millis(20));
            }
            match epoch.next() {
                Some(Err(Error::Sample { path, .. })) if path.ends_with("07.jpg") => output += 1,
                other => panic!("{other:?}"),
            }
            assert_eq!(epoch.state().samples, 6);
            drop(epoch);
            fs::write(&bad, &good).unwrap();
            all.extend(loader.epoch().flat_map(|batch| of_device(batch.unwrap())));
            assert_eq!(output, 1);
            let mut whole = make().device(Device::Cuda(0)).build().unwrap();
            let want = whole.epoch().flat_map(|batch| of_device(batch.unwrap()));
            assert_same(&all, &want.collect::<Vec<_>>(), "mended");
        }
    });
}

/// Also of a batch that was put on the device before the fork.
#[test]
fn a_forked_copy_gets_no_batch() {
    with_greys("a_forked_copy_gets_no_batch", &[], |dir, _| {
        let [(crops, _), _] = recipes();
        let b = usual(dir).recipe(crops).batch_size(2).depth(3);
        let mut loader = b.device(Device::Cuda(0)).build().unwrap();
        let mut epoch = loader.epoch();
        drop(epoch.next().unwrap().unwrap());
        thread::sleep(Duration::from_millis(200));
        drop(epoch.next().unwrap().unwrap());
        let state = epoch.state();
        // SAFETY: the other thread of this process, the harness, sleeps until the test is
        // over, so the copy has all locks that it needs.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let message = match epoch.next() {
                    Some(Err(e)) => e.to_string().contains("forked copy"),
                    _ => false,
                };
                let good = message && epoch.state() == state;
                // SAFETY: no preconditions; nothing of the parent's is dropped here.
                unsafe { libc::_exit(i32::from(!good)) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            }
        }
        let rest = epoch.map(|batch| batch.unwrap().len()).sum::<usize>();
        assert_eq!(rest, usize::from(GREYS) - 4);
    });
}

/// Slots that are put on the device again and again change nothing of the run.
#[test]
fn a_replay_leaves_the_run_where_it_stood() {
    let pending = [("STANDIN_PENDING", "1")];
    with_greys(
        "a_replay_leaves_the_run_where_it_stood",
        &pending,
        |dir, _| {
            is_that_of_the_cpu(
                || usual(dir).batch_size(3).depth(2),
                |loader, see| {
                    let mut all = Vec::new();
                    let mut epoch = loader.epoch();
                    all.extend(see(epoch.next().unwrap().unwrap()));
                    drop(epoch);
                    // At once, and behind an epoch.
                    loader.set_epoch(1);
                    match loader.device_memory().unwrap() {
                        None => assert!(loader.replay(2).unwrap_err().is_usage()),
                        Some(_) => {
                            let replay = loader.replay(5).unwrap();
                            assert_eq!((replay.slots, replay.batches, replay.rows), (2, 10, 30));
                            assert_eq!(replay.device.batches, 10);
                            let read = replay.device.copied_bytes + replay.device.in_place_bytes;
                            assert!(read > 0 && replay.seconds > 0.0);
                        }
                    }
                    assert_eq!((loader.state().epoch, loader.state().samples), (1, 0));
                    all.extend(loader.epoch().flat_map(|batch| see(batch.unwrap())));
                    all
                },
            );
        },
    );
}

#[track_caller]
fn is_lost<T>(result: Result<T, Error>) {
    let Err(Error::Device { what, .. }) = result.map(|_| ()) else {
        panic!("no error of the device");
    };
    for word in ["cuda:0 (Stand-in 0)", "reset", "build the loader behind it"] {
        assert!(what.contains(word), "{what}");
    }
}

/// Resets the context behind the first batch, in each of the two ways that it may look
/// afterwards, and goes on with `then`. Nothing of what is gone is touched, and nobody
/// is warned of what was dropped.
fn behind_a_reset(test: &str, then: impl Fn(Loader, Batch)) {
    const RECIPE: &str = "FEATHERLOAD_TEST_RECIPE";
    for (revived, recipe) in [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")] {
        let environment = [("STANDIN_REVIVED", revived), (RECIPE, recipe)];
        let message = with_greys(test, &environment, |dir, standin| {
            tracing_subscriber::fmt()
                .with_writer(std::io::stderr)
                .init();
            let which: usize = std::env::var(RECIPE).unwrap().parse().unwrap();
            let (recipe, _) = recipes()[which].clone();
            let b = usual(dir).recipe(recipe).epochs(3);
            let mut loader = b.device(Device::Cuda(0)).build().unwrap();
            let batch = loader.epoch().next().unwrap().unwrap();
            batch.on_device().unwrap().wait().unwrap();
            fs::write(standin.join("reset"), "").unwrap();
            then(loader, batch);
        });
        let Some((standin, message)) = message else {
            return;
        };
        assert!(!message.contains("WARN"), "{message}");
        assert_eq!(standin.stale_calls(), [""; 0]);
        assert_eq!(standin.calls("cuDevicePrimaryCtxRetain").len(), 1);
    }
}

#[test]
fn a_context_that_is_reset_between_batches_is_said() {
    behind_a_reset(
        "a_context_that_is_reset_between_batches_is_said",
        |mut loader, batch| {
            drop(batch);
            is_lost(loader.epoch().next().unwrap());
            // And again, for ever.
            is_lost(loader.epoch().next().unwrap());
            is_lost(loader.device_memory());
        },
    );
}

#[test]
fn a_context_that_is_reset_below_batches_is_said_by_them() {
    behind_a_reset(
        "a_context_that_is_reset_below_batches_is_said_by_them",
        |loader, batch| {
            let rows = batch.on_device().unwrap();
            is_lost(rows.is_ready());
            is_lost(rows.wait());
            is_lost(rows.to_host());
            drop(loader);
            is_lost(batch.on_device().unwrap().to_host());
            is_lost(batch.to_host());
        },
    );
}

#[test]
fn a_context_that_is_reset_before_the_end_is_left_alone() {
    behind_a_reset(
        "a_context_that_is_reset_before_the_end_is_left_alone",
        |loader, batch| {
            drop(loader);
            drop(batch);
        },
    );
}

/// Pictures of one grey each in a frame of white, and boxes that leave the grey.
fn framed(dir: &Path) -> Source {
    let mut list = String::new();
    for i in 0..GREYS {
        let grey = 10 + 12 * i;
        let (width, height) = (80 + usize::from(i), 120 - usize::from(i));
        let is_grey = |x, y| (20..70).contains(&x) && (30..90).contains(&y);
        let at = |n: usize| match is_grey(n % width, n / width) {
            true => [grey; 3],
            false => [255; 3],
        };
        let pixels: Vec<u8> = (0..width * height).flat_map(at).collect();
        let name = format!("{i}.{}", if i % 2 == 0 { "png" } else { "npy" });
        let file = dir.join(&name);
        if i % 2 == 0 {
            let rgb = ExtendedColorType::Rgb8;
            image::save_buffer(file, &pixels, width as u32, height as u32, rgb).unwrap();
        } else {
            let noise = npy(&format!("({height}, {width}, 3)"), 1);
            fs::write(file, [&noise[..128], &pixels].concat()).unwrap();
        }
        fs::write(dir.join(format!("{i}.txt")), "20 30 70 90").unwrap();
        list += &format!("{name} {i}\n");
    }
    let file = dir.join("list");
    fs::write(&file, list).unwrap();
    let options = ListOptions {
        boxes: Some(dir.to_owned()),
        ..ListOptions::default()
    };
    Source::List(file, options)
}

/// Decoded and raw pictures alike: what is handed over lies within the box.
#[test]
fn a_crop_is_handed_over_of_the_box_alone() {
    with_greys("a_crop_is_handed_over_of_the_box_alone", &[], |dir, _| {
        let make = || {
            let builder = Loader::builder(framed(dir)).helper(FEATHERLOAD);
            builder.batch_size(BATCH).seed(3).num_workers(2)
        };
        is_that_of_the_cpu(make, |loader, see| {
            let batches = loader.epoch().map(|batch| see(batch.unwrap()));
            batches.flatten().collect()
        });
    });
}
