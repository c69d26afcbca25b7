//! What loaders make of shards: the stream of the same files in a folder.

use std::fs::{self, File};
use std::path::PathBuf;

use featherload::index::SkipReason;
use featherload::{OnError, RowStatus, Source};

use super::scene::{append, loader_over, options, shards_of};
use crate::common::rows::{Row, assert_same, stream};
use crate::common::{Picture, builder, data, npy};

fn rows(shards: &[PathBuf], workers: usize) -> Vec<Row> {
    let source = Source::Shards(shards.to_vec(), options());
    stream(
        &mut loader_over(source).num_workers(workers).build().unwrap(),
        2,
    )
}

#[test]
fn shards_stream_as_the_folder_of_the_same_files() {
    let folder = data(3, 7);
    let tars = tempfile::tempdir().unwrap();
    let want = stream(
        &mut builder(folder.path()).num_workers(0).build().unwrap(),
        2,
    );
    for each in [21, 8] {
        let dir = tars.path().join(each.to_string());
        fs::create_dir(&dir).unwrap();
        let shards = shards_of(folder.path(), &dir, each);
        for workers in [0, 1, 2] {
            let what = format!("{} shards, {workers} workers", shards.len());
            assert_same(&rows(&shards, workers), &want, &what);
        }
    }
}

#[test]
fn a_picture_that_is_garbage_is_a_failed_sample_named_by_shard_and_member() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let mut tar = tar::Builder::new(File::create(&path).unwrap());
    append(&mut tar, "d/0.jpg", &Picture::rgb(64, 64, 1).encode());
    append(&mut tar, "d/1.jpg", b"no picture at all, of some length");
    append(&mut tar, "d/2.jpg", &Picture::rgb(64, 64, 2).encode());
    tar.finish().unwrap();
    for workers in [0, 2] {
        let source = || Source::Shards(vec![path.clone()], options());
        let mut loader = loader_over(source())
            .num_workers(workers)
            .on_error(OnError::Stop)
            .build()
            .unwrap();
        let e = loader.epoch().find_map(Result::err).unwrap().to_string();
        assert!(e.contains(&format!("{}/d/1.jpg", path.display())), "{e}");
        let mut loader = loader_over(source())
            .num_workers(workers)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        for (id, status) in batch.ids().iter().zip(batch.status()) {
            assert_eq!(*status == RowStatus::Ok, *id != 1, "{id}: {status:?}");
        }
    }
}

#[test]
fn an_array_that_is_no_picture_fails_with_the_name_that_would_make_it_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let mut float = npy("(4, 6)", 1);
    let at = float.windows(3).position(|w| w == b"|u1").unwrap();
    float[at..at + 3].copy_from_slice(b"<f4");
    float.resize(128 + 4 * 24, 0);
    let write = |name: &str| {
        let mut tar = tar::Builder::new(File::create(&path).unwrap());
        append(&mut tar, "0.jpg", &Picture::rgb(64, 64, 1).encode());
        append(&mut tar, "0.npy", &float);
        append(&mut tar, name, &float);
        tar.finish().unwrap();
    };
    write("1.npy");
    let source = || Source::Shards(vec![path.clone()], options());
    let mut loader = loader_over(source())
        .num_workers(0)
        .on_error(OnError::Stop)
        .build()
        .unwrap();
    let e = loader.epoch().find_map(Result::err).unwrap();
    let message = e.to_string();
    assert!(
        e.is_sample() && message.contains("a.tar/1.npy"),
        "{message}"
    );
    assert!(message.contains("dtype '<f4'"), "{message}");
    assert!(message.contains("such as KEY.depth.npy"), "{message}");
    // As it says.
    write("1.depth.npy");
    let (index, report) = source().open().unwrap();
    assert_eq!(index.len(), 1);
    let report = report.unwrap();
    assert_eq!(report.skipped[&SkipReason::NoPicture].count, 1);
}

#[test]
fn a_forecast_has_mapped_shards_apart() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 4);
    let all = shards.iter().map(|path| fs::metadata(path).unwrap().len());
    let all = all.sum::<u64>();
    let forecast = |source: Source, workers| {
        let builder = loader_over(source).num_workers(workers);
        builder.memory_plan(0).unwrap().memory
    };
    let of_shards = |workers| forecast(Source::Shards(shards.clone(), options()), workers);
    let files = forecast(Source::detect(folder.path()).unwrap(), 2);
    let mapped = of_shards(2);
    assert_eq!((mapped.page_cache_bytes, mapped.input_bytes), (all, 0));
    assert_eq!(files.page_cache_bytes, 0);
    assert_eq!(mapped.worker_bytes, files.worker_bytes - files.input_bytes);
    // Without workers parts are read, not mapped.
    let read = of_shards(0);
    assert_eq!(
        (read.page_cache_bytes, read.input_bytes),
        (0, files.input_bytes)
    );
}
