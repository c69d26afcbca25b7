//! A shard that is replaced has other samples at the same places: none of them
//! may come under the ids and labels of those that were there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use featherload::index::{KeepIndex, ShardOptions};
use featherload::{Index, LaunchMethod, Loader, OnError, RowStatus, Source};

use crate::common::{FEATHERLOAD, data};

/// A shard of these files, each as long as the longest.
fn shard(path: &Path, files: &[PathBuf]) {
    let longest = files.iter().map(|f| fs::metadata(f).unwrap().len()).max();
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (n, file) in files.iter().enumerate() {
        let mut bytes = fs::read(file).unwrap();
        bytes.resize(longest.unwrap() as usize, 0);
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, format!("{n:02}.jpg"), &bytes[..])
            .unwrap();
    }
    tar.finish().unwrap();
}

/// Two shards of four pictures, their index, and what the first is replaced by.
fn scene(folder: &Path) -> (Vec<PathBuf>, Index, PathBuf) {
    let pictures = data(1, 8);
    let (index, _) = Index::folder(pictures.path(), &Default::default()).unwrap();
    let mut files: Vec<_> = (0..8).map(|id| index.path(id)).collect();
    let shards = ["a.tar", "b.tar"].map(|name| folder.join(name)).to_vec();
    shard(&shards[0], &files[..4]);
    shard(&shards[1], &files[4..]);
    files[..4].reverse();
    let other = folder.join("other");
    shard(&other, &files[..4]);
    let len = |path: &Path| fs::metadata(path).unwrap().len();
    assert_eq!(len(&other), len(&shards[0]));
    let options = ShardOptions {
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    };
    let (index, _) = Index::from_shards(&shards, &options).unwrap();
    (shards, index, other)
}

fn statuses(source: Source, workers: usize) -> (Vec<RowStatus>, Vec<String>) {
    let mut loader = Loader::builder(source)
        .helper(FEATHERLOAD)
        .launch(LaunchMethod::Exec)
        .sampler(featherload::Sampler::Sequential)
        .batch_size(8)
        .on_error(OnError::Skip)
        .num_workers(workers)
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    let message = batch.faults().iter().map(|f| f.fault.reason.clone());
    (batch.status().to_vec(), message.collect())
}

#[test]
fn samples_of_a_replaced_shard_fail_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    for workers in [0, 1] {
        let (shards, index, other) = scene(folder.path());
        fs::rename(&other, &shards[0]).unwrap();
        let (status, message) = statuses(index.into(), workers);
        let (failed, good) = (RowStatus::Failed, RowStatus::Ok);
        let want = [failed, failed, failed, failed, good, good, good, good];
        assert_eq!(status, want, "{workers} workers");
        assert!(
            message
                .iter()
                .all(|s| s.contains("changed since its index was made"))
        );
        // And in which way: by its time, or where that is the same by its inode.
        let ways = [
            "of the same length, modified ",
            "of the same length and time, inode ",
        ];
        assert!(
            message
                .iter()
                .all(|s| ways.iter().any(|way| s.contains(way)))
        );
    }
}

#[test]
fn a_saved_index_of_other_shards_is_refused_by_the_name_of_the_shard() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, index, other) = scene(folder.path());
    let saved = folder.path().join("saved.fli");
    index.save(&saved).unwrap();
    let open = || Source::detect(&saved).unwrap().open();
    assert_eq!(open().unwrap().0.len(), 8);
    fs::rename(&other, &shards[0]).unwrap();
    let e = open().unwrap_err();
    assert!(e.is_usage(), "{e}");
    assert!(e.to_string().contains("a.tar: this shard changed"), "{e}");
    fs::remove_file(&shards[0]).unwrap();
    let e = open().unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("no such shard"),
        "{e}"
    );
}
