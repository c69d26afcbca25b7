//! The loader with a device that decodes JPEGs, with the stand-in for the NVIDIA driver in front:
//! which rows the device makes and of what, that the stream is always the same, and what becomes
//! of pictures that are flagged and of devices that fail.
//!
//! Of a row that the device decodes the stand-in makes one value, which follows from the coded data
//! of the file and from where in the picture the crop begins. A picture is flagged by the number
//! of its coded bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use featherload::internals::DrillBuilder;
use featherload::loader::Epoch;
use featherload::order::MultiScale;
use featherload::recipe::{
    CenterCrop, Decode, DecodeMode, GaussianBlur, RandomResizedCrop, Resize, TruncationPolicy,
};
use featherload::{
    Batch, DataType, DecodeOn, Device, Error, Loader, LoaderBuilder, MemoryLayout, OnError, Recipe,
    RowStatus, Sampler, State, UploadMode,
};
use jpeg_encoder::{ColorType, Encoder};
use serde_json::Value;
use twox_hash::XxHash3_128;

use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::{Standin, with_standin};
use crate::common::{builder, coded};

/// The last is progressive and the one before has inks: workers decode those. The one before
/// those is grey.
pub const PICTURES: u16 = 24;
/// So many are for the device.
pub const CODED: u16 = PICTURES - 2;
const SIDE: u32 = 64;
const BATCH: u32 = 5;
/// Every third has restart markers.
const RESTARTS: u16 = 3;

/// Width and height of picture `i`.
pub fn size(i: u16) -> (u16, u16) {
    (64 + 2 * i, 140 - 2 * i)
}

pub fn file(i: u16) -> Vec<u8> {
    let (width, height) = size(i);
    let (kind, channels) = match PICTURES - i {
        3 => (ColorType::Luma, 1),
        2 => (ColorType::Cmyk, 4),
        _ => (ColorType::Rgb, 3),
    };
    let count = u32::from(width) * u32::from(height) * channels;
    let pixels: Vec<u8> = (0..count)
        .map(|n| (n / 7 + 31 * u32::from(i)) as u8)
        .collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 80 + i as u8 / 2);
    encoder.set_progressive(i + 1 == PICTURES);
    if i % RESTARTS == 1 {
        encoder.set_restart_interval(RESTARTS);
    }
    encoder.encode(&pixels, width, height, kind).unwrap();
    file
}

pub fn pictures(dir: &Path) -> Vec<PathBuf> {
    let folder = dir.join("colours");
    fs::create_dir(&folder).unwrap();
    let write = |i: u16| {
        let path = folder.join(format!("{i:02}.jpg"));
        fs::write(&path, file(i)).unwrap();
        path
    };
    (0..PICTURES).map(write).collect()
}

/// What the stand-in makes of a row of picture `i`.
fn by_device(i: u16) -> Vec<u8> {
    row_of(&file(i), size(i))
}

/// The same of a file, of this width and height.
fn row_of(file: &[u8], (width, height): (u16, u16)) -> Vec<u8> {
    let sum: u32 = coded(file).iter().map(|b| u32::from(*b)).sum();
    let [left, top] = [width, height].map(|side| (u32::from(side) - SIDE) / 2);
    let mut row = vec![(sum + left + 3 * top) as u8; (3 * SIDE * SIDE) as usize];
    // The first byte of the weights.
    row[0] = 0;
    row
}

fn recipe() -> Recipe {
    Recipe::new("centre")
        .then(Decode::default())
        .then(CenterCrop::new(SIDE))
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
}

pub fn usual(dir: &Path, on: DecodeOn) -> LoaderBuilder {
    builder(dir)
        .recipe(recipe())
        .batch_size(BATCH)
        .num_workers(2)
        .device(Device::Cuda(0))
        .decode_on(on)
}

fn on_gpu(dir: &Path) -> LoaderBuilder {
    usual(dir, DecodeOn::Gpu)
}

fn on_cpu(dir: &Path) -> LoaderBuilder {
    usual(dir, DecodeOn::Cpu)
}

pub fn seen_of(batch: Batch) -> Vec<Row> {
    rows(&batch.to_host().unwrap())
}

/// As rows, once they are on the host.
fn host_rows(loader: &mut Loader, epochs: u64) -> Vec<Row> {
    let mut all = Vec::new();
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            all.extend(seen_of(batch.unwrap()));
        }
    }
    all
}

/// The next `batches` batches, and the state behind them, in the midst of an epoch.
fn taken(loader: &mut Loader, batches: u64) -> (Vec<Row>, State) {
    let (mut all, mut taken) = (Vec::new(), 0);
    loop {
        let mut epoch = loader.epoch();
        loop {
            if taken == batches {
                return (all, epoch.state());
            }
            let Some(batch) = epoch.next() else { break };
            all.extend(seen_of(batch.unwrap()));
            taken += 1;
        }
    }
}

/// Rows that workers decoded, as they are where the device decodes all that it takes but what is
/// flagged.
fn as_by_device(by_workers: &[Row], is_flagged: impl Fn(u16) -> bool) -> Vec<Row> {
    let of = |row: &Row| {
        let mut row = *row;
        let i = row.id as u16;
        if i < CODED && !is_flagged(i) && !row.status.is_masked() {
            row.pixels = XxHash3_128::oneshot(&by_device(i));
        }
        row
    };
    by_workers.iter().map(of).collect()
}

fn with_pictures(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Path, &[PathBuf]),
) -> Option<(Standin, String)> {
    let (_, module) = module_path!().split_once("::").unwrap();
    with_standin(&format!("{module}::{test}"), environment, |_| {
        let data = tempfile::tempdir().unwrap();
        let paths = pictures(data.path());
        body(data.path(), &paths);
    })
}

/// Pictures that the device was given.
fn decoded(standin: &Standin) -> usize {
    let launches = standin.calls("cuLaunchKernel");
    let of_tables = launches
        .iter()
        .filter(|line| line.contains(" jpeg_tables "));
    of_tables
        .map(|line| line.split(' ').nth(2).unwrap().parse::<usize>().unwrap())
        .sum()
}

#[test]
fn the_device_decodes_what_it_takes_and_workers_the_others() {
    let ended = with_pictures(
        "the_device_decodes_what_it_takes_and_workers_the_others",
        &[("STANDIN_FREE", "7000000000")],
        |dir, _| {
            for upload in [UploadMode::InPlace, UploadMode::Copied] {
                let by_workers = host_rows(&mut on_cpu(dir).upload(upload).build().unwrap(), 1);
                assert_eq!(by_workers.len(), usize::from(PICTURES));
                let mut loader = on_gpu(dir).upload(upload).build().unwrap();
                let got = host_rows(&mut loader, 1);
                let want = as_by_device(&by_workers, |_| false);
                assert_same(&got, &want, &format!("{upload}"));
                // The stand-in's values are none of the CPU's.
                let other = got.iter().zip(&by_workers).filter(|(a, b)| a != b).count();
                assert_eq!(other, usize::from(CODED));
                let memory = loader.device_memory().unwrap().unwrap();
                assert!(memory.used_bytes > 0);
                assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
                assert_eq!(memory.used_bytes, memory.at_start_bytes);
                let jpegs = loader.report().unwrap().device.unwrap().jpegs;
                assert_eq!((jpegs.pictures, jpegs.decoded_again), (u64::from(CODED), 0));
                // Of at most 8 pictures each, whatever batches they are of.
                assert!((3..=22).contains(&jpegs.parts), "{jpegs:?}");
            }
        },
    );
    let Some((standin, _)) = ended else { return };
    assert_eq!(decoded(&standin), 2 * usize::from(CODED));
}

#[test]
fn the_stream_is_the_same_however_it_is_made() {
    with_pictures(
        "the_stream_is_the_same_however_it_is_made",
        &[("STANDIN_SLOW", "3"), ("STANDIN_PENDING", "1")],
        |dir, _| {
            let of = || on_gpu(dir).epochs(2);
            let by_workers = host_rows(&mut on_cpu(dir).epochs(2).build().unwrap(), 2);
            let want = as_by_device(&by_workers, |_| false);
            assert_eq!(want.len(), 2 * usize::from(PICTURES));
            for (workers, upload) in [
                (1, UploadMode::InPlace),
                (1, UploadMode::Copied),
                (3, UploadMode::InPlace),
                (3, UploadMode::Copied),
            ] {
                let b = of().num_workers(workers).upload(upload);
                let got = host_rows(&mut b.build().unwrap(), 2);
                assert_same(&got, &want, &format!("{workers} workers, {upload}"));
            }
            let b = of().kill_workers_every(Duration::from_millis(15));
            assert_same(&host_rows(&mut b.build().unwrap(), 2), &want, "killed");
            for batch in [1, 4, 7] {
                let mut first = of().build().unwrap();
                let (head, state) = taken(&mut first, batch);
                assert_eq!(state.epoch, batch / 5);
                drop(first);
                // Whoever decoded up to there.
                for (on, want) in [(DecodeOn::Gpu, &want), (DecodeOn::Cpu, &by_workers)] {
                    let b = usual(dir, on).epochs(2).resume(state.clone());
                    let mut second = b.build().unwrap();
                    assert_eq!(second.state().profile, state.profile);
                    let got = host_rows(&mut second, 2);
                    let rest = &want[head.len()..];
                    assert_same(&got, rest, &format!("resumed at {batch} on {on}"));
                }
                assert_same(&head, &want[..head.len()], "before it");
            }
        },
    );
}

/// Height and width of a batch are those of its number, not of the samples in front of it.
#[test]
fn sizes_take_turns_where_the_device_decodes() {
    with_pictures(
        "sizes_take_turns_where_the_device_decodes",
        &[("STANDIN_FREE", "7000000000")],
        |dir, _| {
            const SIZES: [(u32, u32); 3] = [(64, 64), (48, 32), (32, 56)];
            let recipe = Recipe::new("sizes in turns")
                .then(Decode::default())
                .then(RandomResizedCrop::new(SIDE))
                .with_dtype(DataType::U8)
                .with_layout(MemoryLayout::Nhwc);
            let shown = |on: DecodeOn, workers: usize| {
                let sizes = MultiScale {
                    divided_by: 8,
                    ..MultiScale::new(SIZES)
                };
                let b = usual(dir, on).recipe(recipe.clone()).multi_scale(sizes);
                let mut loader = b.num_workers(workers).build().unwrap();
                let (mut all, mut shapes) = (Vec::new(), Vec::new());
                for _ in 0..3 {
                    for batch in loader.epoch() {
                        let batch = batch.unwrap().to_host().unwrap();
                        shapes.push(batch.shape().unwrap());
                        all.extend(rows(&batch));
                        let by_device = |row: &usize| batch.ids()[*row] < u64::from(CODED);
                        for row in (0..batch.len()).filter(by_device) {
                            let row = batch.row(row).unwrap();
                            let bytes = row.bytes().unwrap();
                            let [_, height, width, channels] = batch.shape().unwrap();
                            assert_eq!(bytes.len(), height * width * channels);
                            let is_one_value = bytes[2..].iter().all(|b| *b == bytes[1]);
                            assert!(is_one_value || on == DecodeOn::Cpu, "{:?}", batch.shape());
                        }
                    }
                }
                (all, shapes)
            };
            let (by_workers, shapes) = shown(DecodeOn::Cpu, 2);
            for (height, width) in SIZES {
                let is_size = |s: &[usize; 4]| s[1..3] == [height as usize, width as usize];
                assert!(shapes.iter().any(is_size), "{shapes:?}");
            }
            let (want, of_device) = shown(DecodeOn::Gpu, 1);
            assert_eq!(of_device, shapes);
            let ids = |rows: &[Row]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
            assert_eq!(ids(&want), ids(&by_workers));
            assert_same(&shown(DecodeOn::Gpu, 3).0, &want, "3 workers");
        },
    );
}

/// Colours without any order, which take many coded bytes.
fn noise(side: u16, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let count = 3 * usize::from(side) * usize::from(side);
    let mut pixels = Vec::with_capacity(count);
    while pixels.len() < count {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        pixels.push((state >> 56) as u8);
    }
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 95);
    encoder.encode(&pixels, side, side, ColorType::Rgb).unwrap();
    file
}

/// Rows have room for the coded data of all files but the longest, however small the crop is.
#[test]
fn rows_have_room_for_long_files() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let ended = with_standin(
        &format!("{module}::rows_have_room_for_long_files"),
        &[("STANDIN_FREE", "7000000000")],
        |_| {
            const SIDES: [u16; 5] = [200, 300, 300, 320, 600];
            let data = tempfile::tempdir().unwrap();
            let folder = data.path().join("noise");
            fs::create_dir(&folder).unwrap();
            let files: Vec<Vec<u8>> = (0..).zip(SIDES).map(|(i, side)| noise(side, i)).collect();
            for (i, file) in files.iter().enumerate() {
                fs::write(folder.join(format!("{i}.jpg")), file).unwrap();
            }
            let dir = data.path();
            let by_workers = host_rows(&mut on_cpu(dir).build().unwrap(), 1);
            let run = |loader: LoaderBuilder, taken: usize, what: &str| {
                let mut loader = loader.build().unwrap();
                let mut want = by_workers.clone();
                for row in want.iter_mut().filter(|row| (row.id as usize) < taken) {
                    let i = row.id as usize;
                    row.pixels = XxHash3_128::oneshot(&row_of(&files[i], (SIDES[i], SIDES[i])));
                }
                assert_same(&host_rows(&mut loader, 1), &want, what);
                let jpegs = loader.report().unwrap().device.unwrap().jpegs;
                assert_eq!(jpegs.pictures, taken as u64, "{what}");
                let memory = loader.device_memory().unwrap().unwrap();
                assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
            };
            for upload in [UploadMode::InPlace, UploadMode::Copied] {
                run(on_gpu(dir).upload(upload), 4, &upload.to_string());
            }
        },
    );
    let Some((standin, _)) = ended else { return };
    assert_eq!(decoded(&standin), 2 * 4);
}

/// At full size the windows of large photos have no room in their rows as pixels: the device
/// resizes them, and has room for whole photos. What is flagged has the rows of workers.
#[test]
fn windows_of_large_photos_are_resized_by_the_device() {
    const SIZES: [(u16, u16); 5] = [(900, 700), (700, 900), (901, 703), (640, 480), (900, 700)];
    let files: Vec<Vec<u8>> = SIZES.iter().zip(0..).map(photo).collect();
    let flagged = coded(&files[2]).len().to_string();
    let (_, module) = module_path!().split_once("::").unwrap();
    let ended = with_standin(
        &format!("{module}::windows_of_large_photos_are_resized_by_the_device"),
        &[("STANDIN_FREE", "7000000000"), ("STANDIN_FLAGS", &flagged)],
        |_| {
            let data = tempfile::tempdir().unwrap();
            let folder = data.path().join("photos");
            fs::create_dir(&folder).unwrap();
            for (i, file) in files.iter().enumerate() {
                fs::write(folder.join(format!("{i}.jpg")), file).unwrap();
            }
            let of = |mode: DecodeMode, on: DecodeOn| {
                let decode = Decode {
                    mode: Some(mode),
                    ..Decode::default()
                };
                let recipe = Recipe::new("full")
                    .then(decode)
                    .then(Resize::exact(SIDE, SIDE))
                    .with_dtype(DataType::U8)
                    .with_layout(MemoryLayout::Nhwc);
                usual(data.path(), on).recipe(recipe).build().unwrap()
            };
            let by_workers = host_rows(&mut of(DecodeMode::Full, DecodeOn::Cpu), 1);
            let mut loader = of(DecodeMode::Full, DecodeOn::Gpu);
            let got = host_rows(&mut loader, 1);
            assert_eq!(got.len(), SIZES.len());
            for (row, by_worker) in got.iter().zip(&by_workers) {
                let i = row.id as usize;
                if i == 2 {
                    assert_eq!(row, by_worker);
                    continue;
                }
                let sum: u32 = coded(&files[i]).iter().map(|b| u32::from(*b)).sum();
                // And the taps across, as the stand-in has it: twice what a pixel stands for.
                let most = 2 * u32::from(SIZES[i].0) / SIDE + 2;
                let is_made = (most - 3..=most).any(|taps| {
                    let mut row_of = vec![(sum + taps) as u8; (3 * SIDE * SIDE) as usize];
                    row_of[0] = 0;
                    row.pixels == XxHash3_128::oneshot(&row_of)
                });
                assert!(is_made, "{i}: {row:?}");
            }
            let report = loader.report().unwrap();
            let jpegs = report.device.unwrap().jpegs;
            assert_eq!((jpegs.pictures, jpegs.decoded_again), (5, 1));
            // The flagged one, by the CPU.
            assert_eq!(report.resized_by_workers, 1);
            let memory = loader.device_memory().unwrap().unwrap();
            assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
            let scaled = of(DecodeMode::Scaled, DecodeOn::Gpu);
            let scaled = scaled.device_memory().unwrap().unwrap();
            assert!(scaled.planned_bytes <= memory.planned_bytes);
        },
    );
    let Some((standin, _)) = ended else { return };
    for pass in [" jpeg_first_pass ", " jpeg_second_pass "] {
        let launches = standin.calls("cuLaunchKernel");
        assert!(launches.iter().any(|line| line.contains(pass)), "{pass}");
    }
}

/// Smooth, so that its coded data are few.
fn photo((&(width, height), i): (&(u16, u16), u32)) -> Vec<u8> {
    let count = 3 * u32::from(width) * u32::from(height);
    let pixels: Vec<u8> = (0..count).map(|n| (n / 500 + 31 * i) as u8).collect();
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 80);
    encoder
        .encode(&pixels, width, height, ColorType::Rgb)
        .unwrap();
    file
}

/// Pictures of another format: workers decode them, and no decoder is opened. Of a data set that
/// cannot be read no device is opened.
#[test]
fn no_decoder_is_opened_for_a_data_set_without_jpegs() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::no_decoder_is_opened_for_a_data_set_without_jpegs");
    with_standin(&test, &[("STANDIN_FREE", "7000000000")], |standin| {
        let log = || fs::read_to_string(standin.join("log")).unwrap_or_default();
        let data = tempfile::tempdir().unwrap();
        let dir = data.path();
        assert!(on_gpu(dir).build().is_err(), "no pictures");
        assert_eq!(log(), "");
        let folder = dir.join("greys");
        fs::create_dir(&folder).unwrap();
        for i in 0..2 * BATCH as u8 {
            let pixels: Vec<u8> = (0..70 * 66 * 3).map(|n| (n / 5) as u8 ^ i).collect();
            let rgb = image::ExtendedColorType::Rgb8;
            let path = folder.join(format!("{i}.png"));
            image::save_buffer(path, &pixels, 70, 66, rgb).unwrap();
        }
        let mut by_workers = on_cpu(dir).build().unwrap();
        let want = host_rows(&mut by_workers, 1);
        let mut auto = usual(dir, DecodeOn::Auto).build().unwrap();
        let outlook = auto.jpegs();
        assert_eq!(outlook.on, DecodeOn::Cpu);
        assert!(outlook.why.contains("is a JPEG"), "{outlook:?}");
        let [taken, expected] = [&auto, &by_workers].map(|l| l.device_memory().unwrap().unwrap());
        assert_eq!(taken.planned_bytes, expected.planned_bytes);
        assert_same(&host_rows(&mut auto, 1), &want, "auto");
        assert!(!log().contains(" jpeg_"), "{}", log());
        // It was asked for, and has nothing to do.
        let mut gpu = on_gpu(dir).build().unwrap();
        assert_same(&host_rows(&mut gpu, 1), &want, "gpu");
        // One is enough.
        fs::write(folder.join("99.jpg"), file(0)).unwrap();
        let mut mixed = usual(dir, DecodeOn::Auto).build().unwrap();
        assert_eq!(mixed.jpegs().on, DecodeOn::Gpu);
        assert_eq!(host_rows(&mut mixed, 1).len(), want.len() + 1);
        assert!(log().contains(" jpeg_"));
    });
}

/// The numbers of coded bytes of these pictures, for the stand-in.
pub fn flags(pictures: impl Iterator<Item = u16>) -> String {
    let bytes = pictures.map(|i| coded(&file(i)).len().to_string());
    bytes.collect::<Vec<_>>().join(",")
}

#[test]
fn a_flagged_picture_has_the_row_of_the_cpu() {
    let flagged = [2, 3, 10, 21];
    let bytes = flags(flagged.into_iter());
    with_pictures(
        "a_flagged_picture_has_the_row_of_the_cpu",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, _| {
            let is_flagged = |i| bytes.split(',').any(|n| n == flags([i].into_iter()));
            let count = (0..CODED).filter(|&i| is_flagged(i)).count();
            assert!((4..8).contains(&count), "{count}");
            for upload in [UploadMode::InPlace, UploadMode::Copied] {
                let by_workers = host_rows(&mut on_cpu(dir).upload(upload).build().unwrap(), 1);
                let mut loader = on_gpu(dir).upload(upload).build().unwrap();
                let got = host_rows(&mut loader, 1);
                let want = as_by_device(&by_workers, is_flagged);
                assert_same(&got, &want, &format!("{upload}"));
                let jpegs = loader.report().unwrap().device.unwrap().jpegs;
                assert_eq!(jpegs.pictures, u64::from(CODED));
                assert_eq!(jpegs.decoded_again, count as u64);
            }
        },
    );
}

/// The rest of an epoch: its rows, the failed samples, and how it ended.
fn epoch_outcome(epoch: Epoch<'_>) -> (Vec<Row>, Vec<String>) {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for batch in epoch {
        match batch {
            Ok(batch) => {
                faults.extend(batch.faults().iter().map(|fault| format!("{fault:?}")));
                all.extend(seen_of(batch));
            }
            Err(why) => {
                faults.push(why.to_string());
                break;
            }
        }
    }
    (all, faults)
}

const POLICIES: [OnError; 3] = [OnError::Stop, OnError::Skip, OnError::Substitute];

/// All that the device decodes is flagged: the stream is that of workers, with files that they
/// find bad and with what stands in for those.
#[test]
fn a_stream_that_is_flagged_is_that_of_the_cpu() {
    let bytes = flags(0..CODED);
    with_pictures(
        "a_stream_that_is_flagged_is_that_of_the_cpu",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, paths| {
            for i in [7, 13, 14] {
                let whole = file(i);
                fs::write(&paths[usize::from(i)], &whole[..whole.len() - 100]).unwrap();
            }
            for (policy, upload) in POLICIES.into_iter().zip([
                UploadMode::InPlace,
                UploadMode::Copied,
                UploadMode::InPlace,
            ]) {
                let of = |on| {
                    let b = usual(dir, on).on_error(policy).upload(upload);
                    let mut loader = b.build().unwrap();
                    let seen = epoch_outcome(loader.epoch());
                    let jpegs = loader.report().unwrap().device.unwrap().jpegs;
                    // Of batches that a bad sample ends some pictures are let go.
                    if policy != OnError::Stop {
                        assert_eq!(jpegs.decoded_again, jpegs.pictures);
                        assert_eq!(jpegs.pictures > 0, on == DecodeOn::Gpu);
                    }
                    seen
                };
                let (want, faults) = of(DecodeOn::Cpu);
                let (got, output) = of(DecodeOn::Gpu);
                assert_same(&got, &want, &format!("{policy:?}"));
                assert_eq!(output, faults);
                assert!(!output.is_empty());
            }
        },
    );
}

/// A file that is whole when a worker hands it over, and cut when its picture is decoded again:
/// both batches that have memory on the device are held, so the third waits in the ring.
#[test]
fn a_flagged_picture_that_the_cpu_refuses_has_its_verdict() {
    const PICTURE: u16 = 2 * BATCH as u16;
    let bytes = flags([PICTURE].into_iter());
    with_pictures(
        "a_flagged_picture_that_the_cpu_refuses_has_its_verdict",
        &[("STANDIN_FLAGS", &bytes)],
        |dir, paths| {
            let (path, whole) = (&paths[usize::from(PICTURE)], file(PICTURE));
            let (refuse, keep) = (TruncationPolicy::Refuse, TruncationPolicy::Keep);
            let all = POLICIES.map(|policy| (policy, refuse));
            for (policy, truncated) in all.into_iter().chain([(OnError::Stop, keep)]) {
                let of = |on| {
                    let b = usual(dir, on).on_error(policy).depth(2).num_workers(1);
                    let b = b.recipe(recipe().with_truncated(truncated));
                    b.sampler(Sampler::Sequential).build().unwrap()
                };
                fs::write(path, &whole).unwrap();
                let mut loader = of(DecodeOn::Gpu);
                let mut epoch = loader.epoch();
                let held = [(); 2].map(|()| epoch.next().unwrap().unwrap());
                let filled = || epoch.report().unwrap().times.rows >= 3 * u64::from(BATCH);
                assert!((0..500).any(|_| filled() || {
                    thread::sleep(Duration::from_millis(10));
                    false
                }));
                fs::write(path, &whole[..whole.len() - 100]).unwrap();
                let mut got: Vec<Row> = held.into_iter().flat_map(seen_of).collect();
                let (rest, faults) = epoch_outcome(epoch);
                got.extend(rest);
                let mut on_cpu = of(DecodeOn::Cpu);
                let (by_workers, expected) = epoch_outcome(on_cpu.epoch());
                if !by_workers.is_empty() && (expected.is_empty() || policy != OnError::Stop) {
                    let [gpu, cpu] = [&loader, &on_cpu].map(|l| l.report().unwrap());
                    // The worker that handed it over has read all of it.
                    assert_eq!(gpu.times.input_bytes, cpu.times.input_bytes + 100);
                    assert_eq!(gpu.truncated_rows, cpu.truncated_rows);
                    assert_eq!(gpu.truncated_rows, u64::from(truncated == keep));
                }
                // What stands in for the picture is decoded by the CPU.
                let mut want = as_by_device(&by_workers, |_| false);
                if let Some(row) = want.get_mut(usize::from(PICTURE)) {
                    *row = by_workers[usize::from(PICTURE)];
                }
                assert_same(&got, &want, &format!("{policy:?}"));
                assert_eq!((faults.len(), &faults), (expected.len(), &expected));
                if truncated == keep {
                    assert!(faults.is_empty(), "{faults:?}");
                    continue;
                }
                assert_eq!(faults.len(), 1);
                assert!(faults[0].contains("JPEG cut off"), "{faults:?}");
                let status = got.get(usize::from(PICTURE)).map(|row| row.status);
                assert_eq!(
                    status,
                    match policy {
                        OnError::Skip => Some(RowStatus::Failed),
                        OnError::Substitute => Some(RowStatus::Substituted),
                        _ => None,
                    }
                );
            }
        },
    );
}

/// The device has memory for fewer batches than the ring has slots.
#[test]
fn batches_wait_for_room_on_the_device() {
    with_pictures(
        "batches_wait_for_room_on_the_device",
        &[("STANDIN_PENDING", "3"), ("STANDIN_SLOW", "20")],
        |dir, _| {
            let by_workers = host_rows(&mut on_cpu(dir).epochs(3).build().unwrap(), 3);
            let want = as_by_device(&by_workers, |_| false);
            for depth in [1, 4] {
                let b = on_gpu(dir).depth(depth).epochs(3);
                let b = b.hold_timeout(Duration::from_millis(50));
                let mut loader = b.build().unwrap();
                let (mut got, mut held, mut refused) = (Vec::new(), Vec::new(), 0);
                while loader.state().epoch < 3 {
                    for next in loader.epoch() {
                        match next {
                            Ok(batch) => held.push(batch),
                            Err(Error::SlotsHeld { .. }) => {
                                refused += 1;
                                got.extend(seen_of(held.remove(0)));
                            }
                            Err(why) => panic!("{why}"),
                        }
                    }
                }
                got.extend(held.into_iter().flat_map(seen_of));
                assert!(refused > 5, "{refused}");
                assert_same(&got, &want, &format!("depth {depth}"));
            }
        },
    );
}

/// Each time the device is at batches that nobody takes any more.
#[test]
fn a_run_that_a_bad_sample_stops_goes_on_when_it_is_mended() {
    with_pictures(
        "a_run_that_a_bad_sample_stops_goes_on_when_it_is_mended",
        &[("STANDIN_PENDING", "2"), ("STANDIN_SLOW", "5")],
        |dir, paths| {
            let by_workers = host_rows(&mut on_cpu(dir).epochs(3).build().unwrap(), 3);
            let want = as_by_device(&by_workers, |_| false);
            let whole = file(10);
            fs::write(&paths[10], &whole[..whole.len() - 100]).unwrap();
            let mut loader = on_gpu(dir).depth(4).epochs(9).build().unwrap();
            let mut got = Vec::new();
            for _ in 0..6 {
                let (more, faults) = epoch_outcome(loader.epoch());
                got.extend(more);
                assert!(
                    faults.len() == 1 && faults[0].contains("10.jpg"),
                    "{faults:?}"
                );
            }
            assert_eq!(loader.state().epoch, 0);
            fs::write(&paths[10], &whole).unwrap();
            got.extend(host_rows(&mut loader, 3));
            assert_same(&got, &want, "mended");
        },
    );
}

#[test]
fn a_device_that_fails_ends_the_run() {
    for name in ["cuMemsetD32Async", "cuEventQuery", "cuMemcpyDtoHAsync_v2"] {
        let ended = with_pictures(
            "a_device_that_fails_ends_the_run",
            &[("STANDIN_FAIL", &format!("{name}:46:1"))],
            |dir, _| {
                let plan = std::env::var("STANDIN_FAIL").unwrap();
                let name = plan.split(':').next().unwrap();
                let mut loader = on_gpu(dir).on_error(OnError::Skip).build().unwrap();
                let why = loader.epoch().find_map(Result::err).unwrap().to_string();
                assert!(why.contains(name), "{why}");
                let again = loader.epoch().next().unwrap().map(|_| ()).unwrap_err();
                assert!(again.to_string().contains(name), "{again}");
            },
        );
        if ended.is_none() {
            return;
        }
    }
}

#[test]
fn epochs_may_be_broken_off() {
    with_pictures(
        "epochs_may_be_broken_off",
        &[("STANDIN_SLOW", "2"), ("STANDIN_PENDING", "2")],
        |dir, _| {
            let mut whole = on_cpu(dir).epochs(9).build().unwrap();
            let mut want: Vec<Vec<Row>> = Vec::new();
            for epoch in 0..4 {
                want.push(as_by_device(&host_rows(&mut whole, epoch + 1), |_| false));
            }
            let mut loader = on_gpu(dir).epochs(9).build().unwrap();
            for (epoch, batches) in [(0, 1), (1, 9), (2, 3), (3, 9), (0, 2)] {
                loader.set_epoch(epoch);
                let mut got = Vec::new();
                for batch in loader.epoch().take(batches) {
                    got.extend(seen_of(batch.unwrap()));
                }
                let want = &want[epoch as usize];
                assert!(!got.is_empty());
                assert_same(&got, &want[..got.len()], &format!("epoch {epoch}"));
            }
        },
    );
}

#[test]
fn what_a_device_needs_to_decode_is_named_and_auto_uses_workers() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::what_a_device_needs_to_decode_is_named_and_auto_uses_workers");
    with_standin(&test, &[], |standin| {
        let data = tempfile::tempdir().unwrap();
        let dir = data.path();
        pictures(dir);
        let parts = || {
            let log = fs::read_to_string(standin.join("log")).unwrap_or_default();
            log.matches(" jpeg_tables ").count()
        };
        let by_workers = on_cpu(dir).depth(3).upload(UploadMode::InPlace);
        let mut by_workers = by_workers.build().unwrap();
        let memory = by_workers.device_memory().unwrap().unwrap();
        let want = host_rows(&mut by_workers, 1);
        drop(by_workers);
        type Change = fn(LoaderBuilder, u64) -> LoaderBuilder;
        let cases: [(Change, &str); 3] = [
            (|b, _| b.device(Device::Cpu), "use device cuda"),
            (
                |b, _| b.recipe(recipe().then(GaussianBlur::new(3))),
                "workers finish the rows",
            ),
            (
                |b, limit| b.depth(3).gpu_memory_limit(limit),
                "decode_on cpu",
            ),
        ];
        for (n, (change, word)) in cases.into_iter().enumerate() {
            let of = |on| change(usual(dir, on), memory.planned_bytes);
            let why = of(DecodeOn::Gpu).build().unwrap_err();
            assert!(why.is_usage() && why.to_string().contains(word), "{why}");
            let mut auto = of(DecodeOn::Auto).build().unwrap();
            let got = match n {
                0 => auto.epoch().flat_map(|b| rows(&b.unwrap())).collect(),
                _ => host_rows(&mut auto, 1),
            };
            assert_eq!(got.len(), want.len());
            if n == 2 {
                assert_same(&got, &want, "no room to decode");
            }
            assert_eq!(parts(), 0, "{word}");
        }
        let limit = 1 << 30;
        let auto = usual(dir, DecodeOn::Auto).gpu_memory_limit(limit);
        let got = host_rows(&mut auto.build().unwrap(), 1);
        assert_same(&got, &as_by_device(&want, |_| false), "auto");
        assert!(parts() > 0);
    });
}

/// What `plan` says is what a run takes, and parts become smaller before there are none.
#[test]
fn the_plan_has_the_memory_that_decoding_takes() {
    let data = tempfile::tempdir().unwrap();
    pictures(data.path());
    let dir = data.path().to_str().unwrap();
    let standin = Standin::new();
    let json = |command: &str, more: &[&str]| -> Value {
        let usual = [
            command,
            dir,
            "--device",
            "cuda",
            "--batch-size",
            "64",
            "--json",
        ];
        let (out, _) = standin.run(&[&usual[..], &["--num-workers", "2"], more].concat(), &[]);
        assert_eq!(out.status.code(), Some(0), "{more:?}: {out:?}");
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let bytes = |plan: &Value| plan["memory"]["device_bytes"].as_u64().unwrap();
    let most = bytes(&json("plan", &[]));
    let least = bytes(&json("plan", &["--decode-on", "cpu"]));
    let limits = [
        most,
        most - 1,
        least + (150 << 20),
        least + (100 << 20),
        least,
    ];
    let mut before = u64::MAX;
    for limit in limits {
        let text = limit.to_string();
        let more = ["--gpu-memory-limit", &text, "--upload", "in-place"];
        let plan = json("plan", &more);
        let planned = bytes(&plan);
        assert!(planned <= limit && planned <= before, "{planned}, {limit}");
        before = planned;
        let on = if limit > least + (1 << 20) {
            "gpu"
        } else {
            "cpu"
        };
        assert_eq!(plan["jpegs"]["on"], on, "{limit}: {plan}");
        let run = json("bench", &more);
        assert_eq!(run["device"]["planned_bytes"], planned);
        let taken = standin.calls("cuMemAlloc_v2");
        // In steps of 2 MiB, and 8 MiB for the driver's own.
        let taken = taken.iter().map(|l| {
            let bytes = l.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            bytes.next_multiple_of(2 << 20)
        });
        assert_eq!(taken.sum::<u64>() + (8 << 20), planned, "{limit}");
        assert_eq!(decoded(&standin) > 0, on == "gpu");
        fs::remove_file(standin.log()).unwrap();
    }
}
