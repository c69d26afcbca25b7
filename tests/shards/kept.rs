//! Indexes that are kept, and DALI's: read anew where their shard is another.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::slice;
use std::thread;
use std::time::Duration;

use featherload::Index;
use featherload::index::{KeepIndex, ShardOptions};

use crate::scene::{classes, labelled};

/// The one index that is kept in this folder.
fn kept_inode(folder: &Path) -> u64 {
    let kept: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert_eq!(kept.len(), 1);
    kept[0].as_ref().unwrap().metadata().unwrap().ino()
}

#[test]
fn an_index_of_dali_that_lacks_samples_drops_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let folder = dir.path().join("kept");
    labelled(&path, "cls", &["3"; 40]);
    let paths = slice::from_ref(&path);
    let idx = Index::write_dali_indexes(paths).unwrap().remove(0);
    let text = fs::read_to_string(&idx).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let options = ShardOptions {
        keep: KeepIndex::In(folder.clone()),
        ..ShardOptions::default()
    };
    let samples = || Index::from_shards(paths, &options).unwrap().0.len();
    assert_eq!(samples(), 40);
    let mut before = kept_inode(&folder);
    assert_eq!((samples(), kept_inode(&folder)), (40, before));
    // The first ten, all but the first, and a hole: each is newer than the tar.
    for (from, to) in [(1, 11), (2, 41), (12, 30)] {
        let some = lines[from..to].join("\n");
        fs::write(&idx, format!("v1.2 {}\n{some}\n", to - from)).unwrap();
        assert_eq!(samples(), 40, "{from}..{to}");
        // The index beside it has changed, and so it was read again.
        assert_ne!(kept_inode(&folder), before);
        before = kept_inode(&folder);
    }
    let with_a_hole = [&lines[1..7], &lines[9..]].concat().join("\n");
    fs::write(&idx, format!("v1.2 38\n{with_a_hole}\n")).unwrap();
    assert_eq!(samples(), 40);
    before = kept_inode(&folder);
    fs::remove_file(&idx).unwrap();
    assert_eq!(samples(), 40);
    assert_ne!(kept_inode(&folder), before);
}

#[test]
fn another_tar_of_the_same_length_and_time_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let folder = dir.path().join("kept");
    let options = ShardOptions {
        keep: KeepIndex::In(folder),
        ..ShardOptions::default()
    };
    let read = || {
        classes(
            &Index::from_shards(slice::from_ref(&path), &options)
                .unwrap()
                .0,
        )
    };
    labelled(&path, "cls", &["1", "2"]);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let as_old = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    };
    assert_eq!(read(), [1, 2]);
    // In its place, as `cp -p` does; the clock of the file system has moved on.
    thread::sleep(Duration::from_millis(30));
    labelled(&path, "cls", &["3", "4"]);
    as_old(&path);
    assert_eq!(read(), [3, 4]);
    // And by a rename, as rsync does.
    let other = dir.path().join("other");
    labelled(&other, "cls", &["5", "6"]);
    as_old(&other);
    fs::rename(&other, &path).unwrap();
    assert_eq!(read(), [5, 6]);
}
