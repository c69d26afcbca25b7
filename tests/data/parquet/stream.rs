//! Streams of Parquet files equal those of the same images in a folder.

use featherload::index::ParquetOptions;
use featherload::{OnError, RowStatus, Source};

use super::scene::{image, int64, open, photos, plain, ways, write};
use crate::common::rows::{assert_same, stream};
use crate::common::{Picture, builder, data};
use crate::shards::scene::loader_over;

#[test]
fn files_stream_as_the_folder_of_the_same_pictures_however_they_are_written() {
    let folder = data(3, 7);
    let (pictures, labels) = photos(folder.path());
    let want = stream(
        &mut builder(folder.path()).num_workers(0).build().unwrap(),
        2,
    );
    for (way, properties) in ways() {
        let dir = tempfile::tempdir().unwrap();
        let columns = |rows: std::ops::Range<usize>| {
            [
                image("image", pictures[rows.clone()].to_vec()),
                int64("label", labels[rows].to_vec()),
            ]
        };
        let at = |n: u32| dir.path().join(format!("train-0000{n}-of-00002.parquet"));
        write(&at(0), &columns(0..12), (12, 5), properties.clone());
        write(&at(1), &columns(12..21), (9, 100), properties);
        let index = open(dir.path()).unwrap();
        // Only packed pages are shards of their own.
        let is_packed = ["snappy", "gzip", "lz4", "zstd"];
        let is_packed = is_packed.iter().any(|by| way.starts_with(by));
        assert_eq!(index.shards() > 2, is_packed, "{way}: {}", index.shards());
        assert!(
            index
                .path(12)
                .ends_with("train-00001-of-00002.parquet/row-0")
        );
        for workers in [0, 2] {
            let source = Source::detect(dir.path()).unwrap();
            assert!(matches!(source, Source::Parquet(..)));
            let rows = stream(
                &mut loader_over(source).num_workers(workers).build().unwrap(),
                2,
            );
            assert_same(&rows, &want, &format!("{way}, {workers} workers"));
        }
        // A saved index still locates packed pages.
        let saved = dir.path().join("saved.fli");
        index.save(&saved).unwrap();
        let rows = stream(
            &mut loader_over(Source::Saved(saved))
                .num_workers(1)
                .build()
                .unwrap(),
            2,
        );
        assert_same(&rows, &want, &format!("{way}, saved"));
    }
}

#[test]
fn a_row_without_a_picture_is_a_failed_sample_with_its_file_and_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let picture = |n| Some(Picture::rgb(64, 64, n).encode());
    for (way, properties) in ways() {
        let pictures = vec![picture(1), None, Some(b"none".to_vec()), picture(2)];
        write(&path, &[image("image", pictures)], (4, 4), properties);
        for workers in [0, 2] {
            let source = || {
                let files = vec![path.clone()];
                Source::Parquet(files, ParquetOptions::default())
            };
            let builder = || loader_over(source()).num_workers(workers);
            let mut loader = builder().on_error(OnError::Stop).build().unwrap();
            let e = loader.epoch().find_map(Result::err).unwrap().to_string();
            let of = |row| format!("{}/row-{row}", path.display());
            assert!(e.contains(&of(1)) || e.contains(&of(2)), "{way}: {e}");
            let mut loader = builder().on_error(OnError::Skip).build().unwrap();
            let batch = loader.epoch().next().unwrap().unwrap();
            for (id, status) in batch.ids().iter().zip(batch.status()) {
                let is_good = *id == 0 || *id == 3;
                assert_eq!(*status == RowStatus::Ok, is_good, "{way}, {id}: {status:?}");
            }
        }
    }
}

#[test]
fn a_forecast_has_the_page_that_a_worker_holds() {
    let dir = tempfile::tempdir().unwrap();
    let folder = data(1, 4);
    let (pictures, _) = photos(folder.path());
    let bytes: usize = pictures.iter().flatten().map(|p| p.len() + 4).sum();
    let memory = |properties| {
        let path = dir.path().join("a.parquet");
        write(
            &path,
            &[image("image", pictures.clone())],
            (4, 4),
            properties,
        );
        let builder = loader_over(Source::detect(&path).unwrap()).num_workers(2);
        builder.memory_plan(0).unwrap().memory
    };
    let snappy = plain().set_compression(parquet::basic::Compression::SNAPPY);
    let (in_place, packed) = (memory(plain()), memory(snappy));
    assert_eq!(in_place.input_bytes, 0);
    let more = packed.worker_bytes - in_place.worker_bytes;
    // The page also holds levels, which add a few bytes.
    assert!((bytes as u64..bytes as u64 + 64).contains(&more), "{more}");
}

#[test]
fn a_file_that_was_replaced_fails_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    for (way, properties) in ways() {
        let pictures = |n| image("image", vec![Some(Picture::rgb(64, 64, n).encode()); 3]);
        write(&path, &[pictures(1)], (3, 3), properties.clone());
        let index = open(&path).unwrap();
        write(&path, &[pictures(2)], (3, 2), properties);
        let mut loader = loader_over(index.into()).num_workers(1).build().unwrap();
        let e = loader.epoch().find_map(Result::err).unwrap().to_string();
        assert!(e.contains("changed since its index was made"), "{way}: {e}");
    }
}
