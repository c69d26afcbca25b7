//! Kept indexes: used while their shards are unchanged, and otherwise made again.

use crate::data::index::index_cache::IndexCache;
use crate::data::index::shards::tests::*;

#[test]
fn a_kept_index_is_used_until_a_shard_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let (folder, options) = kept_in(dir.path());
    let read = || Index::from_shards(slice::from_ref(&path), &options).unwrap();
    ten(&path);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let (index, report) = read();
    let kept = files(&folder);
    assert_eq!(kept.len(), 1);
    // A file that is written again has another inode.
    let written = || fs::metadata(&kept[0]).unwrap().ino();
    let first = written();
    let (again, of_kept) = read();
    assert_eq!((again.hash(), &of_kept), (index.hash(), &report));
    assert_eq!(again.path(3), index.path(3));
    assert_eq!(written(), first);
    // A change of a nanosecond or of the length causes a new scan.
    set_time(&path, time + Duration::from_nanos(1));
    assert_eq!(read().0.hash(), index.hash());
    let second = written();
    assert_ne!(second, first);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 512]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read().0.hash(), index.hash());
    let third = written();
    assert_ne!(third, second);
    // The index of a damaged shard is not kept.
    for i in 0..5 {
        bytes[i * 2048..][..512].fill(7);
    }
    fs::write(&path, &bytes).unwrap();
    let (changed, report) = read();
    assert_eq!((changed.len(), report.damaged.len()), (5, 1));
    assert_eq!(written(), third);
}

#[test]
fn a_kept_index_says_again_what_was_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let (folder, options) = kept_in(dir.path());
    write(&path, &[("README", ""), ("a.txt", ""), ("b.jpg", "")]);
    let (_, first) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
    assert_eq!((files(&folder).len(), first.skipped_total()), (1, 2));
    let (_, again) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
    assert_eq!(again, first);
    // Another kind of labels, or other shards, has its own file.
    let labels = ShardOptions {
        labels: ShardLabels::None,
        ..options.clone()
    };
    Index::from_shards(slice::from_ref(&path), &labels).unwrap();
    let other = dir.path().join("b.tar");
    ten(&other);
    Index::from_shards(&[path.clone(), other.clone()], &labels).unwrap();
    Index::from_shards(&[other, path], &labels).unwrap();
    assert_eq!(files(&folder).len(), 4);
}

#[test]
fn a_fifo_in_the_place_of_any_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = |path: &Path| {
        let _ = fs::remove_file(path);
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let path = dir.path().join("a.tar");
    let (folder, options) = kept_in(dir.path());
    ten(&path);
    let read = || Index::from_shards(slice::from_ref(&path), &options).unwrap();
    let (index, _) = read();
    // The kept index is a FIFO, and is written again.
    fifo(&files(&folder)[0]);
    assert_eq!(read().0.hash(), index.hash());
    assert!(files(&folder)[0].is_file());
    // The DALI index is a FIFO, newer than its shard, and then beside a cut shard.
    fifo(&dir.path().join("a.idx"));
    assert_eq!(read().0.hash(), index.hash());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..9 * 2048]).unwrap();
    assert_eq!(read().0.len(), 9);
    // A saved index, and the manifest of a cache.
    let saved = dir.path().join("saved.fli");
    fifo(&saved);
    assert!(!Index::is_saved(&saved).unwrap());
    let e = Index::load(&saved).unwrap_err().to_string();
    assert!(e.contains("not an index file"), "{e}");
    fifo(
        &dir.path()
            .join(crate::data::shard::manifest::CACHE_MANIFEST),
    );
    assert!(!Index::is_cache(dir.path()));
    let e = Index::cache(dir.path()).unwrap_err().to_string();
    assert!(e.contains("not the manifest of a cache"), "{e}");
}

#[test]
fn a_damaged_kept_index_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let (folder, options) = kept_in(dir.path());
    write(&path, &[("a.jpg", "1"), ("README", "")]);
    let (index, report) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
    let kept = files(&folder).remove(0);
    let good = fs::read(&kept).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&kept, bytes).unwrap();
        let (again, of_kept) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
        assert_eq!((again.hash(), &of_kept), (index.hash(), &report));
        // Made again.
        assert_eq!(fs::read(&kept).unwrap(), good);
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        read(&bad);
    }
    for len in (0..good.len()).step_by(7) {
        read(&good[..len]);
    }
}

#[test]
fn a_kept_index_over_half_of_the_memory_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let (folder, options) = kept_in(dir.path());
    ten(&path);
    Index::from_shards(slice::from_ref(&path), &options).unwrap();
    let file = files(&folder).remove(0);
    let hole = File::options().write(true).open(file).unwrap();
    hole.set_len(1 << 20).unwrap();
    let kept = IndexCache::find(&[path], &options).unwrap().unwrap();
    let read = |available| kept.read(Some(available)).map(|bytes| bytes.unwrap().len());
    assert_eq!(read(2 << 20), Ok(1 << 20));
    let why = read((2 << 20) - 1).unwrap_err();
    assert!(
        why.contains("1 MiB, over half of the available memory (1023 KiB)"),
        "{why}"
    );
}

#[test]
fn where_nothing_can_be_kept_is_an_error_only_when_it_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let options = ShardOptions {
        // There is a file at this path.
        keep: KeepIndex::In(path.join("folder")),
        ..ShardOptions::default()
    };
    let e = Index::from_shards(slice::from_ref(&path), &options).unwrap_err();
    assert!(e.to_string().contains("make the folder"), "{e}");
}

#[test]
fn a_sample_costs_twenty_bytes_and_the_name_of_its_picture() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let mut tar = tar::Builder::new(File::create(&path).unwrap());
    for i in 0..20_000 {
        append(&mut tar, &format!("train/{i:08}.jpg"), b"");
        append(&mut tar, &format!("train/{i:08}.cls"), b"3");
    }
    tar.finish().unwrap();
    let (_, options) = kept_in(dir.path());
    let (index, _) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
    let a_sample = index.bytes() as f64 / 20_000.0;
    // 4 + 4 bytes for name and label, 12 for the place.
    assert!((38.0..38.1).contains(&a_sample), "{a_sample}");
    let start = std::time::Instant::now();
    let (again, _) = Index::from_shards(&[path], &options).unwrap();
    assert_eq!(again.hash(), index.hash());
    // A fiftieth of the goal of a million per second, because debug builds are slower.
    assert!(
        start.elapsed() < Duration::from_millis(200),
        "{:?}",
        start.elapsed()
    );
}
