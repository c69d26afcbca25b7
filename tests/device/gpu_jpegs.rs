//! JPEGs that a real device decodes: the stream is that of workers who decode, for any number of
//! them and both ways to the pixels; memory is what was planned; and rates are printed. Without a
//! device, or without photos, it says `SKIP`.

use std::path::Path;
use std::time::{Duration, Instant};

use featherload::internals::DrillBuilder;
use featherload::{DecodeOn, Device, Loader, LoaderBuilder, OnError, Position, Recipe, UploadMode};

use crate::common::rows::{Row, assert_same, rows};
use crate::common::{builder, cuda, photos};

/// Rows of the next epoch.
fn epoch(loader: &mut Loader) -> Vec<Row> {
    let batches = loader
        .epoch()
        .map(|batch| batch.unwrap().to_host().unwrap());
    batches.flat_map(|batch| rows(&batch)).collect()
}

fn epochs(loader: &mut Loader, count: usize) -> Vec<Vec<Row>> {
    (0..count).map(|_| epoch(loader)).collect()
}

/// Images in a second, of so many epochs.
fn rate(loader: &mut Loader, epochs: u64) -> f64 {
    let (began, mut images) = (Instant::now(), 0);
    for _ in 0..epochs {
        for batch in loader.epoch() {
            images += batch.unwrap().len();
        }
    }
    images as f64 / began.elapsed().as_secs_f64()
}

fn of(folder: &Path, on: DecodeOn, workers: usize) -> LoaderBuilder {
    builder(folder)
        .batch_size(64)
        .num_workers(workers)
        .device(Device::Cuda(0))
        .epochs(1000)
        .decode_on(on)
}

#[test]
fn gpu_and_workers_give_one_stream_of_photos() {
    let name = "gpu_and_workers_give_one_stream_of_photos";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    for recipe in [Recipe::train224(), Recipe::eval224()] {
        let name = recipe.name.clone();
        let of = |on, workers| of(&folder, on, workers).recipe(recipe.clone());
        let want = epochs(&mut of(DecodeOn::Cpu, 4).build().unwrap(), 2);
        for (on, workers, upload) in [
            (DecodeOn::Gpu, 4, UploadMode::InPlace),
            (DecodeOn::Auto, 15, UploadMode::Copied),
            (DecodeOn::Gpu, 1, UploadMode::Copied),
        ] {
            let mut loader = of(on, workers).upload(upload).build().unwrap();
            for want in &want {
                let what = format!("{name}, {on}, {workers} workers, {upload}");
                assert_same(&epoch(&mut loader), want, &what);
            }
            let report = loader.report().unwrap().device.unwrap();
            assert!(report.jpegs.pictures > 0, "{report:?}");
            let memory = loader.device_memory().unwrap().unwrap();
            println!("{name}, {on}, {workers} workers, {upload}: {memory:?} {report:?}");
            assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
        }
    }
}

/// A picture of 12 megapixels with fine grain, which takes some megabytes.
fn grainy(seed: u32) -> Vec<u8> {
    let (width, height) = (4000, 3000);
    let mut state = seed;
    let mut pixel = |(x, y): (u32, u32)| {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let grain = state >> 28;
        [x / 16, y / 12, (x + y) / 28].map(|level| (level + grain) as u8)
    };
    let places = (0..u32::from(height)).flat_map(|y| (0..u32::from(width)).map(move |x| (x, y)));
    let pixels: Vec<u8> = places.flat_map(&mut pixel).collect();
    let mut file = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut file, 90);
    let colours = jpeg_encoder::ColorType::Rgb;
    encoder.encode(&pixels, width, height, colours).unwrap();
    file
}

/// Files of megabytes have longer rows, and are decoded by the device, too.
#[test]
fn gpu_and_workers_give_one_stream_of_long_files() {
    if !cuda::is_there() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("grain");
    std::fs::create_dir(&folder).unwrap();
    for i in 0..8 {
        let file = grainy(i);
        assert!(file.len() > 2 << 20, "{} bytes", file.len());
        std::fs::write(folder.join(format!("{i}.jpg")), file).unwrap();
    }
    let of = |on, workers| of(data.path(), on, workers).batch_size(5);
    let want = epochs(&mut of(DecodeOn::Cpu, 4).build().unwrap(), 3);
    for upload in [UploadMode::InPlace, UploadMode::Copied] {
        let mut loader = of(DecodeOn::Gpu, 4).upload(upload).build().unwrap();
        for want in &want {
            assert_same(&epoch(&mut loader), want, &format!("{upload}"));
        }
        let report = loader.report().unwrap().device.unwrap();
        let memory = loader.device_memory().unwrap().unwrap();
        println!("{upload}: {memory:?} {report:?}");
        // The longest file may have no room.
        assert!(report.jpegs.pictures >= 3 * 7, "{report:?}");
        assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
    }
}

/// Killed workers, and a start in the midst of each of 20 batches.
#[test]
fn gpu_streams_pass_deaths_and_resumes() {
    let name = "gpu_streams_pass_deaths_and_resumes";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    let want = epochs(&mut of(&folder, DecodeOn::Cpu, 4).build().unwrap(), 3);
    let b = of(&folder, DecodeOn::Gpu, 15).kill_workers_every(Duration::from_millis(20));
    let mut killed = b.build().unwrap();
    while killed.report().unwrap().worker_deaths < 50 {
        killed.set_epoch(0);
        for want in &want {
            assert_same(&epoch(&mut killed), want, "killed");
        }
    }
    drop(killed);
    let small = |workers| of(&folder, DecodeOn::Gpu, workers).batch_size(5);
    let want = epochs(&mut small(15).decode_on(DecodeOn::Cpu).build().unwrap(), 3);
    for n in 0..20u64 {
        let first = small(15).build().unwrap();
        let (at, batch) = (n * 7 % 3, n * 5 % first.plan().batches());
        drop(first);
        let start = small(15).start(Position::new(at, batch)).build().unwrap();
        let state = start.state();
        drop(start);
        let mut resumed = small(3).resume(state).build().unwrap();
        let want = &want[at as usize][5 * batch as usize..];
        let what = format!("resumed at {at}:{batch}");
        assert_same(&epoch(&mut resumed), want, &what);
    }
}

/// Files that are damaged at random: rows, verdicts and substitutes are those of workers.
#[test]
fn gpu_verdicts_on_damaged_files_are_those_of_workers() {
    let name = "gpu_verdicts_on_damaged_files_are_those_of_workers";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    let whole: Vec<Vec<u8>> = (walk(&folder).iter())
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir(data.path().join("a")).unwrap();
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for number in 0..2000 {
        let mut file = whole[number % whole.len()].clone();
        for _ in 0..=random(4) {
            let at = file.len() / 20 + random(file.len() * 19 / 20 - 2);
            file[at] = random(256) as u8;
        }
        let path = data.path().join(format!("a/{number:04}.jpg"));
        std::fs::write(path, file).unwrap();
    }
    for on_error in [OnError::Skip, OnError::Substitute] {
        let run = |on, workers| {
            let b = of(data.path(), on, workers).recipe(Recipe::eval224());
            b.on_error(on_error)
        };
        let want = epoch(&mut run(DecodeOn::Cpu, 15).build().unwrap());
        let mut loader = run(DecodeOn::Gpu, 15).build().unwrap();
        assert_same(&epoch(&mut loader), &want, &format!("{on_error:?}"));
        let jpegs = loader.report().unwrap().device.unwrap().jpegs;
        println!("{on_error:?}: {jpegs:?}");
        assert!(jpegs.decoded_again > 100, "{jpegs:?}");
    }
}

/// Files below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn gpu_rates_are_printed() {
    let name = "gpu_rates_are_printed";
    let Some(folder) = cuda::is_there().then(|| photos(name)).flatten() else {
        return;
    };
    for on in [DecodeOn::Cpu, DecodeOn::Gpu] {
        let mut loader = of(&folder, on, 15).build().unwrap();
        rate(&mut loader, 20);
        println!("decode_on {on}: {:.0} images/s", rate(&mut loader, 100));
    }
}
