//! Indexes that are kept, and DALI's: read anew where their shard is another.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::slice;
use std::thread;
use std::time::Duration;

use featherload::Index;
use featherload::index::{KeepIndex, ShardOptions};

use super::scene::{classes, featherload, labelled, shard, text};

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

#[test]
fn the_index_kept_beside_a_written_idx_is_used() {
    let dir = tempfile::tempdir().unwrap();
    labelled(&dir.path().join("a.tar"), "cls", &["1", "2"]);
    let pattern = dir.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let run = |more: &[&str]| {
        let args = [&["index", pattern, "--no-headers"], more].concat();
        let out = featherload(dir.path(), &args);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    };
    run(&["--write-idx"]);
    let folder = dir.path().join("featherload");
    let first = kept_inode(&folder);
    // What is not used is written anew.
    run(&[]);
    assert_eq!(kept_inode(&folder), first);
}

#[test]
fn no_idx_vouches_for_a_shard_that_may_be_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
    labelled(&a, "cls", &["1", "2"]);
    shard(
        &b,
        &[("README", ""), ("1.jpg", ""), ("1.cls", "1"), ("2.jpg", "")],
    );
    // Between picture and label, where a member ends.
    let len = 512 + 512 + 1024 + 512;
    File::options()
        .write(true)
        .open(&b)
        .unwrap()
        .set_len(len)
        .unwrap();
    let pattern = dir.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let run = |more: &[&str]| {
        let args = [&["index", pattern, "--no-headers"], more].concat();
        featherload(dir.path(), &args)
    };
    for _ in 0..2 {
        let out = run(&["--write-idx"]);
        let output = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{output}");
        // What is read, what is lost, and what was not written.
        let printed = text(&out.stdout);
        assert!(printed.contains("1 DALI indexes"), "{printed}");
        assert!(printed.contains("3 samples, "), "{printed}");
        assert!(output.contains("at least 1 samples lost"), "{output}");
        assert!(output.contains("such as b.tar/README"), "{output}");
        let why = "so it may be cut off: make the shard again";
        assert!(
            output.contains(why) && output.contains("b.tar: ends at"),
            "{output}"
        );
        assert!(a.with_extension("idx").exists() && !b.with_extension("idx").exists());
        assert!(!dir.path().join("featherload").exists());
        // The next one says it as well.
        let out = run(&[]);
        let output = text(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{output}");
        assert!(output.contains("at least 1 samples lost"), "{output}");
    }
    // No tar at all is refused as it is elsewhere, and nothing is written.
    fs::remove_file(a.with_extension("idx")).unwrap();
    fs::write(&b, b"\x1f\x8b\x08 and more").unwrap();
    let out = run(&["--write-idx"]);
    let output = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{output}");
    assert!(output.contains("b.tar: is compressed by gzip"), "{output}");
    assert!(!a.with_extension("idx").exists());
}

#[test]
fn a_kept_index_says_what_it_is_and_leaves_with_its_version() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = ["a.tar", "b.tar", "c.tar"]
        .iter()
        .map(|name| dir.path().join(name))
        .collect();
    for path in &paths {
        labelled(path, "cls", &["1"]);
    }
    let folder = dir.path().join("kept");
    let options = ShardOptions {
        keep: KeepIndex::In(folder.clone()),
        ..ShardOptions::default()
    };
    Index::from_shards(&paths, &options).unwrap();
    let kept = fs::read_dir(&folder).unwrap().next().unwrap();
    let kept = kept.unwrap().path();
    let bytes = fs::read(&kept).unwrap();
    let of = format!(
        "the index of 3 shards, {} to {}",
        paths[0].display(),
        paths[2].display()
    );
    assert!(text(&bytes[..300]).contains(&of));
    // As a source.
    let out = featherload(dir.path(), &["index", kept.to_str().unwrap()]);
    let output = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{output}");
    assert!(
        output.contains(&of)
            && output.contains("open the shards, or save an index of them with `--save`"),
        "{output}"
    );

    // What this version kept stays, and so does what only looks like it.
    let name = |digit: &str| folder.join(format!("shards-{}.fli", digit.repeat(32)));
    fs::write(name("0"), &bytes).unwrap();
    fs::write(name("1"), b"of another program").unwrap();
    fs::write(folder.join("mine.fli"), other_version(&bytes)).unwrap();
    fs::create_dir(name("2")).unwrap();
    fs::write(name("a"), other_version(&bytes)).unwrap();
    fs::write(name("b"), without_words(&bytes)).unwrap();
    Index::from_shards(&paths[..1], &options).unwrap();
    assert!(kept.exists() && name("0").exists() && name("1").exists());
    assert!(folder.join("mine.fli").exists() && name("2").exists());
    assert!(!name("a").exists() && !name("b").exists());
}

/// A kept index with another note: what the former one is made to.
fn noted(bytes: &[u8], change: impl Fn(String) -> String) -> Vec<u8> {
    let len = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) as usize;
    let note = change(text(&bytes[32..32 + len])).into_bytes();
    let mut all = bytes[..8].to_vec();
    all.extend((note.len() as u64).to_le_bytes());
    all.extend(twox_hash::XxHash3_128::oneshot(&note).to_le_bytes());
    all.extend(&note);
    all.extend(&bytes[32 + len..]);
    all
}

fn other_version(bytes: &[u8]) -> Vec<u8> {
    noted(bytes, |note| {
        note.replacen("\"version\":\"", "\"version\":\"0.", 1)
    })
}

/// As it was before notes had words.
fn without_words(bytes: &[u8]) -> Vec<u8> {
    noted(bytes, |note| {
        let shards = note.find("\"shards\"").unwrap();
        format!("{{{}", &note[shards..])
    })
}
