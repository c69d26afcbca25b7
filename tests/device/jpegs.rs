//! The loader with a device whose engines decode, with stand-ins for driver and nvJPEG in
//! front: which rows engines make and of what, that the stream is always the same, and what
//! becomes of pictures and engines that fail.
//!
//! Of a row that engines decode the stand-ins make one value, which follows from the plain
//! form of the file and from where in the picture the crop begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use featherload::internals::Drilled;
use featherload::recipe::{CenterCrop, Decode};
use featherload::{
    Batch, DecodeOn, Device, Dtype, Error, Loader, LoaderBuilder, MemoryLayout, OnError, Recipe,
    RowStatus, State, Upload,
};
use jpeg_encoder::{ColorType, Encoder};

use crate::common::builder;
use crate::common::rows::{Row, assert_same, rows};
use crate::common::standin::{Standin, with_engines, with_standin};

const PICTURES: u16 = 24;
const SIDE: u32 = 64;
/// Width and height of the largest picture for engines.
const MOST: (u32, u32) = (120, 140);
const BATCH: u32 = 5;

/// Width and height of picture `i`. The last is too large for engines, the one before is grey.
fn size(i: u16) -> (u16, u16) {
    match i {
        _ if i == PICTURES - 1 => (122, 100),
        _ => (64 + 2 * i, 140 - 2 * i),
    }
}

fn pictures(dir: &Path, size: fn(u16) -> (u16, u16)) -> Vec<PathBuf> {
    let folder = dir.join("colours");
    fs::create_dir(&folder).unwrap();
    let write = |i: u16| {
        let (width, height) = size(i);
        let (kind, channels) = match i {
            _ if i == PICTURES - 2 => (ColorType::Luma, 1),
            _ => (ColorType::Rgb, 3),
        };
        let count = u32::from(width) * u32::from(height) * channels;
        let pixels: Vec<u8> = (0..count)
            .map(|n| (n / 7 + 31 * u32::from(i)) as u8)
            .collect();
        let mut file = Vec::new();
        Encoder::new(&mut file, 80 + i as u8 / 2)
            .encode(&pixels, width, height, kind)
            .unwrap();
        let path = folder.join(format!("{i:02}.jpg"));
        fs::write(&path, file).unwrap();
        path
    };
    (0..PICTURES).map(write).collect()
}

/// The plain form: without what decoding does not need, components called 1, 2, 3.
fn plain(file: &[u8]) -> Vec<u8> {
    let mut out = file[..2].to_vec();
    let mut at = 2;
    loop {
        let marker = file[at + 1];
        let end = at + 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        let mut segment = file[at..end].to_vec();
        let names: &[usize] = match marker {
            0xC0 => &[10, 13, 16],
            0xDA => &[5, 7, 9],
            _ => &[],
        };
        for (name, at) in (1..).zip(names) {
            segment[*at] = name;
        }
        if !matches!(marker, 0xE0..=0xEF | 0xFE) {
            out.extend(segment);
        }
        at = end;
        if marker == 0xDA {
            out.extend(&file[at..]);
            return out;
        }
    }
}

/// What the stand-ins make of a row.
fn by_engines(path: &Path, (width, height): (u16, u16)) -> Vec<u8> {
    let sum: u32 = plain(&fs::read(path).unwrap())
        .iter()
        .map(|b| u32::from(*b))
        .sum();
    let (left, top) = (
        (u32::from(width) - SIDE) / 2,
        (u32::from(height) - SIDE) / 2,
    );
    let mut row = vec![(sum + left + 3 * top) as u8; (3 * SIDE * SIDE) as usize];
    // The first byte of the weights.
    row[0] = 0;
    row
}

fn usual(dir: &Path) -> LoaderBuilder {
    let recipe = Recipe::new("centre")
        .then(Decode::default())
        .then(CenterCrop::new(SIDE))
        .with_dtype(Dtype::U8)
        .with_layout(MemoryLayout::Nhwc);
    builder(dir)
        .recipe(recipe)
        .batch_size(BATCH)
        .workers(2)
        .device(Device::Cuda(0))
}

fn engines(dir: &Path, share: f64) -> LoaderBuilder {
    let b = usual(dir).decode_on(DecodeOn::Both).engine_share(share);
    b.engine_largest(MOST.0, MOST.1)
}

/// As rows, once they are on the host.
fn seen(loader: &mut Loader, epochs: u64) -> Vec<Row> {
    let mut all = Vec::new();
    while loader.state().epoch < epochs {
        for batch in loader.epoch() {
            all.extend(rows(&batch.unwrap().to_host().unwrap()));
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
            all.extend(rows(&batch.unwrap().to_host().unwrap()));
            taken += 1;
        }
    }
}

fn batches(loader: &mut Loader) -> Vec<Batch> {
    let all = loader
        .epoch()
        .map(|batch| batch.unwrap().to_host().unwrap());
    all.collect()
}

fn with_pictures(
    test: &str,
    environment: &[(&str, &str)],
    body: impl FnOnce(&Path, &[PathBuf]),
) -> Option<(Standin, String)> {
    let (_, module) = module_path!().split_once("::").unwrap();
    with_engines(&format!("{module}::{test}"), environment, |_| {
        let data = tempfile::tempdir().unwrap();
        let paths = pictures(data.path(), size);
        body(data.path(), &paths);
    })
}

#[test]
fn engines_decode_the_plain_files_and_workers_the_others() {
    let log = with_pictures(
        "engines_decode_the_plain_files_and_workers_the_others",
        &[],
        |dir, paths| {
            for upload in [Upload::InPlace, Upload::Copied] {
                let by_workers = batches(&mut usual(dir).upload(upload).build().unwrap());
                let mut loader = engines(dir, 1.0).upload(upload).build().unwrap();
                let mixed = batches(&mut loader);
                let mut theirs = 0;
                for (mixed, workers) in mixed.iter().zip(&by_workers) {
                    assert_eq!(mixed.ids(), workers.ids());
                    for row in 0..mixed.len() {
                        let i = mixed.ids()[row] as u16;
                        let is_plain = i < PICTURES - 2;
                        let got = mixed.row(row).unwrap().bytes().unwrap();
                        let want = match is_plain {
                            true => by_engines(&paths[usize::from(i)], size(i)),
                            false => workers.row(row).unwrap().bytes().unwrap().to_vec(),
                        };
                        assert!(got == want, "{upload}, picture {i}");
                        theirs += u16::from(is_plain);
                    }
                }
                assert_eq!((mixed.len(), theirs), (5, PICTURES - 2));
                let memory = loader.device_memory().unwrap().unwrap();
                assert!(memory.used_bytes <= memory.planned_bytes, "{memory:?}");
                let engines = loader.state().profile.engines.unwrap().to_string();
                let words = "nvJPEG 12.4.0 for 1.00000 of plain JPEGs up to 120 x 140";
                assert_eq!(engines, words);
            }
        },
    );
    let Some((standin, _)) = log else { return };
    let decoded: u16 = (standin.calls("nvjpegDecodeBatched").iter())
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u16>().unwrap())
        .sum();
    assert_eq!(decoded, 2 * (PICTURES - 2));
}

#[test]
fn the_stream_is_the_same_however_it_is_made() {
    with_pictures(
        "the_stream_is_the_same_however_it_is_made",
        &[("STANDIN_NVJPEG_SLOW", "3"), ("STANDIN_PENDING", "1")],
        |dir, _| {
            let of = |share| engines(dir, share).epochs(2);
            let want = seen(&mut of(0.5).build().unwrap(), 2);
            assert_eq!(want.len(), 2 * usize::from(PICTURES));
            for share in [0.0, 1.0] {
                let other = seen(&mut of(share).build().unwrap(), 2);
                assert_ne!(other, want, "{share}");
            }
            for (workers, upload) in [(1, Upload::Copied), (3, Upload::InPlace)] {
                let b = of(0.5).workers(workers).upload(upload);
                let got = seen(&mut b.build().unwrap(), 2);
                assert_same(&got, &want, &format!("{workers} workers, {upload}"));
            }
            let b = of(0.5).kill_workers_every(Duration::from_millis(15));
            assert_same(&seen(&mut b.build().unwrap(), 2), &want, "killed");
            for batch in [1, 4, 7] {
                let mut first = of(0.5).build().unwrap();
                let (mut got, state) = taken(&mut first, batch);
                assert_eq!(state.epoch, batch / 5);
                drop(first);
                let mut second = of(0.5).resume(state.clone()).build().unwrap();
                got.extend(seen(&mut second, 2));
                assert_same(&got, &want, &format!("resumed at {batch}"));
                // Another share is another stream, and the usual one is the former.
                let why = of(0.6).resume(state.clone()).build().unwrap_err();
                let why = why.to_string();
                assert!(why.contains("the numeric profile's engines"), "{why}");
                let b = usual(dir).decode_on(DecodeOn::Both).epochs(2);
                let third = b.resume(state.clone()).build().unwrap();
                assert_eq!(third.state().profile, state.profile);
                let why = usual(dir).resume(state).build().unwrap_err().to_string();
                assert!(why.contains("decode_on"), "{why}");
            }
        },
    );
}

#[test]
fn a_picture_that_engines_refuse_is_a_failed_row_with_its_path() {
    // Picture 10.
    let environment = [("STANDIN_NVJPEG_REFUSES", "84")];
    with_pictures(
        "a_picture_that_engines_refuse_is_a_failed_row_with_its_path",
        &environment,
        |dir, paths| {
            let mut loader = engines(dir, 1.0).build().unwrap();
            let ended = loader.epoch().find_map(Result::err).unwrap();
            match ended {
                Error::Sample {
                    id, path, fault, ..
                } => {
                    assert_eq!((id, path), (10, paths[10].clone()));
                    let said = fault.to_string();
                    assert!(said.contains("BAD_JPEG (3)"), "{said}");
                }
                other => panic!("{other}"),
            }
            let mut loader = engines(dir, 1.0).on_error(OnError::Skip).build().unwrap();
            let all = batches(&mut loader);
            let mut failed = 0;
            for batch in &all {
                for row in 0..batch.len() {
                    let is_it = batch.ids()[row] == 10;
                    assert_eq!(batch.status()[row] == RowStatus::Failed, is_it);
                    failed += usize::from(is_it);
                }
            }
            assert_eq!((all.len(), failed), (5, 1));
            // Workers have given the batch away: there is no substitute.
            let mut loader = engines(dir, 1.0)
                .on_error(OnError::Substitute)
                .build()
                .unwrap();
            let all = batches(&mut loader);
            let of = |batch: &Batch| batch.status().to_vec();
            let failed = all.iter().flat_map(of).filter(|s| s.is_masked()).count();
            assert_eq!(failed, 1);
        },
    );
}

/// The device has memory for fewer batches than the ring has slots.
#[test]
fn batches_wait_for_room_on_the_device() {
    const LARGEST: fn(u16) -> (u16, u16) = |_| (120, 140);
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::batches_wait_for_room_on_the_device");
    let environment = [("STANDIN_PENDING", "3"), ("STANDIN_NVJPEG_SLOW", "20")];
    with_engines(&test, &environment, |_| {
        let data = tempfile::tempdir().unwrap();
        let paths = pictures(data.path(), LARGEST);
        let mut loader = engines(data.path(), 1.0)
            .depth(4)
            .epochs(3)
            .build()
            .unwrap();
        let mut seen = 0;
        for _ in 0..3 {
            for batch in batches(&mut loader) {
                for row in 0..batch.len() {
                    let i = batch.ids()[row] as u16;
                    if i != PICTURES - 2 {
                        let got = batch.row(row).unwrap().bytes().unwrap();
                        let want = by_engines(&paths[usize::from(i)], LARGEST(i));
                        assert!(got == want, "picture {i}");
                        seen += 1;
                    }
                }
            }
        }
        assert_eq!(seen, 3 * (PICTURES - 1));
    });
}

/// Each time engines are at batches that nobody takes any more.
#[test]
fn a_run_that_a_bad_sample_stops_goes_on_when_it_is_mended() {
    const LARGEST: fn(u16) -> (u16, u16) = |_| (120, 140);
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::a_run_that_a_bad_sample_stops_goes_on_when_it_is_mended");
    let environment = [("STANDIN_PENDING", "2"), ("STANDIN_NVJPEG_SLOW", "5")];
    with_engines(&test, &environment, |_| {
        let data = tempfile::tempdir().unwrap();
        let paths = pictures(data.path(), LARGEST);
        let whole = fs::read(&paths[10]).unwrap();
        fs::write(&paths[10], &whole[..whole.len() - 100]).unwrap();
        let mut loader = engines(data.path(), 1.0)
            .depth(4)
            .epochs(9)
            .build()
            .unwrap();
        for _ in 0..6 {
            let why = loader.epoch().find_map(Result::err).unwrap();
            assert!(why.is_sample(), "{why}");
        }
        assert_eq!(loader.state().epoch, 0);
        fs::write(&paths[10], &whole).unwrap();
        while loader.state().epoch < 3 {
            for batch in batches(&mut loader) {
                for row in 0..batch.len() {
                    let i = batch.ids()[row] as u16;
                    let got = batch.row(row).unwrap().bytes().unwrap();
                    let want = || by_engines(&paths[usize::from(i)], LARGEST(i));
                    assert!(i == PICTURES - 2 || got == want(), "picture {i}");
                }
            }
        }
    });
}

#[test]
fn engines_that_fail_end_the_run_and_epochs_may_be_broken_off() {
    with_pictures(
        "engines_that_fail_end_the_run_and_epochs_may_be_broken_off",
        &[("STANDIN_NVJPEG_FAIL", "nvjpegDecodeBatched:8:0")],
        |dir, _| {
            let mut loader = engines(dir, 1.0).on_error(OnError::Skip).build().unwrap();
            for _ in 0..2 {
                let why = loader.epoch().next().unwrap().unwrap_err().to_string();
                assert!(why.contains("INTERNAL_ERROR"), "{why}");
            }
        },
    );
}

#[test]
fn epochs_with_engines_may_be_broken_off() {
    with_pictures(
        "epochs_with_engines_may_be_broken_off",
        &[("STANDIN_NVJPEG_SLOW", "2"), ("STANDIN_PENDING", "2")],
        |dir, _| {
            let mut whole = engines(dir, 0.5).epochs(9).build().unwrap();
            let mut want: Vec<Vec<Row>> = Vec::new();
            for epoch in 0..4 {
                want.push(seen(&mut whole, epoch + 1));
            }
            let mut loader = engines(dir, 0.5).epochs(9).build().unwrap();
            for (epoch, batches) in [(0, 1), (1, 9), (2, 3), (3, 9)] {
                loader.set_epoch(epoch);
                let mut got = Vec::new();
                for batch in loader.epoch().take(batches) {
                    got.extend(rows(&batch.unwrap().to_host().unwrap()));
                }
                let want = &want[epoch as usize];
                let first = want.iter().take(got.len()).copied().collect::<Vec<_>>();
                assert_same(&got, &first, &format!("epoch {epoch}"));
            }
        },
    );
}

#[test]
fn what_engines_need_is_named_where_it_is_missing() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::what_engines_need_is_named_where_it_is_missing");
    with_standin(&test, &[], |_| {
        let data = tempfile::tempdir().unwrap();
        pictures(data.path(), size);
        let why = engines(data.path(), 0.5).build().unwrap_err().to_string();
        assert!(why.to_lowercase().contains("nvjpeg"), "{why}");
        let on_cpu = engines(data.path(), 0.5)
            .device(Device::Cpu)
            .build()
            .unwrap_err();
        assert!(on_cpu.to_string().contains("use device cuda"), "{on_cpu}");
        let auto = || usual(data.path()).decode_on(DecodeOn::Auto);
        let mut loader = auto().build().unwrap();
        assert_eq!(loader.state().profile.engines, None);
        let got = seen(&mut loader, 1);
        drop(loader);
        let want = seen(&mut usual(data.path()).build().unwrap(), 1);
        assert_same(&got, &want, "auto without engines");
        let both = || usual(data.path()).decode_on(DecodeOn::Both);
        let all = || usual(data.path()).decode_on(DecodeOn::Engines);
        for (b, word) in [
            (both().engine_share(1.5), "from 0 to 1"),
            (all().engine_share(0.5), "use decode_on both"),
            (both().engine_largest(63, 640), "64 to 16384"),
            (both().engine_largest(640, 16_385), "64 to 16384"),
            (usual(data.path()).engine_share(0.5), "no effect"),
            (usual(data.path()).engine_largest(640, 640), "no effect"),
            (both().recipe(Recipe::full()), "workers finish the rows"),
        ] {
            let why = b.build().unwrap_err().to_string();
            assert!(why.contains(word), "{word}: {why}");
        }
    });
}
