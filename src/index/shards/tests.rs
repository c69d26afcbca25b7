//! Shards by the `tar` crate, read to indexes.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, SystemTime};

use super::*;
use crate::index::{DamagedShard, Label, SkipReason};
use crate::shard::idx::Idx;
use crate::shard::walk::Walk;

fn append(tar: &mut tar::Builder<File>, name: &str, data: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    if name.starts_with('/') {
        // Which the crate itself refuses.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, data).unwrap();
    } else {
        tar.append_data(&mut header, name, data).unwrap();
    }
}

fn write(path: &Path, members: &[(&str, &str)]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (name, data) in members {
        append(&mut tar, name, data.as_bytes());
    }
    tar.finish().unwrap();
}

fn nowhere(labels: ShardLabels) -> ShardOptions {
    ShardOptions {
        labels,
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    }
}

/// One shard of these members.
fn one(members: &[(&str, &str)], labels: ShardLabels) -> Result<(Index, ScanReport)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    write(&path, members);
    Index::from_shards(&[path], &nowhere(labels))
}

fn names(index: &Index) -> Vec<String> {
    let name = |id| index.relative_path(id).display().to_string();
    (0..index.len()).map(name).collect()
}

fn classes(index: &Index) -> Vec<i64> {
    let class = |id| match index.label(id) {
        Label::Class(class) => class,
        other => panic!("{other:?}"),
    };
    (0..index.len()).map(class).collect()
}

fn bytes_of(index: &Index, id: u64) -> Vec<u8> {
    let part = index.part(id).unwrap();
    let all = fs::read(index.shard_path(part.shard)).unwrap();
    all[part.at as usize..][..part.bytes as usize].to_vec()
}

fn field(name: &str) -> ShardLabels {
    ShardLabels::Field(name.into())
}

fn json(field: &str, pointer: &str) -> ShardLabels {
    ShardLabels::Json {
        field: field.into(),
        pointer: pointer.into(),
    }
}

#[test]
fn samples_are_consecutive_members_of_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
    write(
        &a,
        &[
            ("d/2.cls", "7\n"),
            ("d/2.JPG", "two"),
            ("d/1.seg.png", "mask"),
            ("d/1.png", "one"),
            ("d/1.cls", "-1"),
        ],
    );
    write(&b, &[("0.webp", "zero"), ("0.cls", "3")]);
    let options = nowhere(ShardLabels::Auto);
    let (index, report) = Index::from_shards(&[b.clone(), a.clone()], &options).unwrap();
    assert_eq!(names(&index), ["0.webp", "d/2.JPG", "d/1.png"]);
    assert_eq!(classes(&index), [3, 7, -1]);
    let bytes: Vec<_> = (0..3).map(|id| bytes_of(&index, id)).collect();
    assert_eq!(bytes, [&b"zero"[..], b"two", b"one"]);
    assert_eq!(index.path(1), a.join("d/2.JPG"));
    assert_eq!((index.root(), index.shards()), (dir.path(), 2));
    assert_eq!((report.samples, report.skipped_total()), (3, 0));
    assert!(report.damaged.is_empty());
    // Moved as a whole it is the same data set.
    let moved = tempfile::tempdir().unwrap();
    for name in ["a.tar", "b.tar"] {
        fs::copy(dir.path().join(name), moved.path().join(name)).unwrap();
    }
    let paths = ["b.tar", "a.tar"].map(|name| moved.path().join(name));
    let (again, _) = Index::from_shards(&paths, &options).unwrap();
    assert_eq!(again.hash(), index.hash());
    let (other, _) = Index::from_shards(&[a, b], &options).unwrap();
    assert_ne!(other.hash(), index.hash());
}

#[test]
fn the_picture_is_the_first_of_the_known_extensions() {
    let members = [
        ("a.npy", "1"),
        ("a.png", "2"),
        ("a.jpg", "3"),
        ("b.npy", "4"),
        ("b.seg.png", "5"),
        ("/c.npy", "6"),
        ("/c.tiff", "7"),
    ];
    let (index, _) = one(&members, ShardLabels::Auto).unwrap();
    assert_eq!(names(&index), ["a.jpg", "b.npy", "c.tiff"]);
    assert_eq!(index.label_width(), 0);
}

#[test]
fn what_is_no_sample_is_counted_with_an_example() {
    let members = [
        ("README", "1"),
        (".hidden.jpg", "1"),
        ("a.txt", "2"),
        ("a.json", "2"),
        ("b.jpg", "3"),
        ("c.cls", "4"),
    ];
    let (index, report) = one(&members, ShardLabels::None).unwrap();
    assert_eq!(index.len(), 1);
    let skipped = |reason| {
        let skipped = &report.skipped[&reason];
        (skipped.count, skipped.examples[0].clone())
    };
    let example = |name: &str| PathBuf::from(name);
    assert_eq!(skipped(SkipReason::NoPicture), (2, example("a.tar/a")));
    assert_eq!(
        skipped(SkipReason::NoSampleName),
        (2, example("a.tar/.hidden.jpg"))
    );
    let e = one(&members[..4], ShardLabels::None)
        .unwrap_err()
        .to_string();
    assert!(e.contains("no samples in") && e.contains("a.tar/a"), "{e}");
}

#[test]
fn class_names_are_numbered_in_the_order_of_their_bytes_over_all_shards() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..3)
        .map(|i| dir.path().join(format!("{i}.tar")))
        .collect();
    for (path, name) in paths.iter().zip(["zebra", "ant", "zebra"]) {
        let json = format!("{{\"a\":[{{\"label\":\"{name}\"}}]}}");
        let cat = "{\"a\":[{\"label\":\"cat\"}]}";
        write(
            path,
            &[
                ("1.jpg", ""),
                ("1.txt", name),
                ("1.json", &json),
                ("2.jpg", ""),
                ("2.txt", "cat"),
                ("2.json", cat),
            ],
        );
    }
    for labels in [field("txt"), field("TXT"), json("json", "/a/0/label")] {
        let (index, _) = Index::from_shards(&paths, &nowhere(labels)).unwrap();
        assert_eq!(
            index.classes(),
            &Classes::new(["ant", "cat", "zebra"]).unwrap()
        );
        assert_eq!(classes(&index), [2, 1, 0, 1, 2, 1]);
    }
}

#[test]
fn labels_are_vectors_numbers_or_none() {
    let members = [
        ("1.jpg", ""),
        ("1.json", "{\"v\":[0,0.5],\"n\":4}"),
        ("1.meta.json", "[1,2,3]"),
        ("2.jpg", ""),
        ("2.json", "{\"v\":[1,1],\"n\":2}"),
        ("2.meta.json", "[4,5,6]"),
    ];
    let vectors = |labels| {
        let (index, _) = one(&members, labels).unwrap();
        let vector = |id| match index.label(id) {
            Label::Vector(v) => v.iter().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        [vector(0), vector(1)]
    };
    assert_eq!(vectors(json("json", "/v")), [[0.0, 0.5], [1.0, 1.0]]);
    let whole = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    assert_eq!(vectors(json("meta.json", "")), whole);
    let (index, _) = one(&members, json("json", "/n")).unwrap();
    assert_eq!(classes(&index), [4, 2]);
    let (index, _) = one(&members, ShardLabels::Auto).unwrap();
    assert_eq!(index.label_width(), 0);
}

#[test]
fn labels_that_do_not_go_together_name_the_sample_and_the_fix() {
    let told = |members: &[(&str, &str)], labels| {
        let e = one(members, labels).unwrap_err();
        assert!(e.is_usage());
        e.to_string()
    };
    let jpg = |label: &'static str| {
        [
            ("1.jpg", ""),
            ("1.cls", "5"),
            ("2.jpg", ""),
            ("2.cls", label),
        ]
    };
    let missing = [("1.jpg", ""), ("1.cls", "5"), ("d/2.jpg", "")];
    let e = told(&missing, ShardLabels::Auto);
    assert!(e.contains("a.tar/d/2.jpg: this sample has no label"), "{e}");
    assert!(e.contains("--labels none"), "{e}");
    let e = told(&jpg("cat"), ShardLabels::Auto);
    assert!(
        e.contains("2.jpg: this sample's label is a class name"),
        "{e}"
    );
    let e = told(&jpg("1 2"), ShardLabels::Auto);
    assert!(
        e.contains("is a vector, where those before it are a class number"),
        "{e}"
    );
    let e = told(&jpg(""), ShardLabels::Auto);
    assert!(e.contains("a.tar/2.cls: this label is empty"), "{e}");
    let e = told(&[("1.jpg", ""), ("1.cls", ",")], ShardLabels::Auto);
    assert!(e.contains("a.tar/1.cls: this label is empty"), "{e}");
    let vectors = [
        ("1.jpg", ""),
        ("1.cls", "5 6"),
        ("2.jpg", ""),
        ("2.cls", "1 2 3"),
    ];
    let e = told(&vectors, ShardLabels::Auto);
    assert!(
        e.contains("2.jpg: this sample's label has 3 numbers"),
        "{e}"
    );
    let e = told(&jpg("1"), field("txt"));
    assert!(e.contains("no sample has a label in a field 'txt'"), "{e}");
    let e = told(&[("1.jpg", ""), ("1.json", "{")], json("json", "/a"));
    assert!(e.contains("a.tar/1.json: this label is no JSON"), "{e}");
    let twice = [("1.jpg", ""), ("1.JPG", "")];
    let e = told(&twice, ShardLabels::None);
    assert!(
        e.contains("a.tar/1.JPG: this extension stands twice"),
        "{e}"
    );
    let e = told(&jpg("1"), json("json", "a"));
    assert!(e.contains("'a' is no JSON pointer"), "{e}");
    let e = told(&jpg("1"), field(""));
    assert!(e.contains("is no extension"), "{e}");
    let long = "x".repeat((1 << 20) + 1);
    let e = told(&[("1.jpg", ""), ("1.cls", &long)], ShardLabels::Auto);
    assert!(e.contains("1048577 bytes"), "{e}");
}

#[test]
fn what_is_no_tar_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let told = |name: &str| {
        let path = dir.path().join(name);
        let e = Index::from_shards(&[path], &nowhere(ShardLabels::Auto)).unwrap_err();
        assert!(e.to_string().contains(name), "{e}");
        e.to_string()
    };
    fs::write(dir.path().join("a.tar.gz"), b"\x1f\x8b\x08 and more").unwrap();
    assert!(told("a.tar.gz").contains("compressed by gzip"));
    fs::write(dir.path().join("text.tar"), "text\n".repeat(300)).unwrap();
    assert!(told("text.tar").contains("no tar archive"));
    fs::write(dir.path().join("empty.tar"), "").unwrap();
    assert!(told("empty.tar").contains("an empty file"));
    fs::write(dir.path().join("zeros.tar"), [0; 10240]).unwrap();
    assert!(told("zeros.tar").contains("no samples in"));
    assert!(told("gone.tar").contains("No such file"));
    fs::create_dir(dir.path().join("folder.tar")).unwrap();
    assert!(told("folder.tar").contains("is a folder"));
    // As it is said when an index could be kept.
    let options = ShardOptions {
        keep: KeepIndex::In(dir.path().to_owned()),
        ..ShardOptions::default()
    };
    let e = Index::from_shards(&[dir.path().join("gone.tar")], &options).unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("gone.tar: no such shard"),
        "{e}"
    );
}

/// Ten samples of two members, 1024 bytes each: sample i begins at 2048 i.
fn ten(path: &Path) {
    let names: Vec<_> = (0..10)
        .map(|i| [format!("{i}.jpg"), format!("{i}.cls")])
        .collect();
    let members = names.iter().flatten().map(|name| (name.as_str(), "5"));
    write(path, &members.collect::<Vec<_>>());
}

#[test]
fn a_damaged_tail_ends_the_shard_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    ten(&path);
    let whole = fs::read(&path).unwrap();
    // Within the label of the eighth: its picture is there, and no label.
    fs::write(&path, &whole[..7 * 2048 + 1024 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.samples), (7, 7));
    let damaged = &report.damaged[0];
    assert_eq!((damaged.at, damaged.places), (7 * 2048 + 1024, 1));
    assert_eq!(
        (damaged.samples_incomplete, damaged.samples_missing),
        (1, None)
    );
    let told = damaged.to_string();
    assert!(
        told.contains("a.tar: cut off") && told.contains("'7.cls'"),
        "{told}"
    );
    assert!(told.contains("1 samples are known to be lost"), "{told}");
    // Within the picture.
    fs::write(&path, &whole[..7 * 2048 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (7, 1));

    // With an index of what was there.
    fs::write(&path, &whole).unwrap();
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    fs::write(&path, &whole[..7 * 2048 + 512]).unwrap();
    let (index, report) = read();
    assert_eq!(index.len(), 7);
    let damaged = &report.damaged[0];
    assert_eq!(
        (damaged.samples_incomplete, damaged.samples_missing),
        (1, Some(2))
    );
    assert!(
        damaged.to_string().contains("3 samples are lost"),
        "{damaged}"
    );
    // Cut where no reader sees it.
    fs::write(&path, &whole[..6 * 2048]).unwrap();
    let (index, report) = read();
    assert_eq!(
        (index.len(), report.damaged[0].samples_missing),
        (6, Some(4))
    );
}

/// A shard cut at `len` bytes, behind a whole one: the first sample that was cut,
/// and what is known to be lost.
fn cut_at(dir: &Path, whole: &[u8], len: usize, labels: &ShardLabels) -> (u64, DamagedShard) {
    let (a, b) = (dir.join("a.tar"), dir.join("cut.tar"));
    fs::write(&a, whole).unwrap();
    fs::write(&b, &whole[..len]).unwrap();
    let told = |e| panic!("cut at {len}: {e}");
    let (index, report) =
        Index::from_shards(&[a, b], &nowhere(labels.clone())).unwrap_or_else(told);
    assert_eq!(index.len(), report.samples);
    assert_eq!(report.skipped_total(), 0, "cut at {len}");
    assert_eq!(report.damaged.len(), 1, "cut at {len}");
    let damaged = report.damaged.into_iter().next().unwrap();
    assert!(damaged.path.ends_with("cut.tar"));
    (index.len() - 8, damaged)
}

#[test]
fn a_shard_cut_anywhere_costs_what_is_behind_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let long = "d".repeat(150);
    let json = json("json", "/v");
    for (fields, labels, prefix) in [
        ([("jpg", "5"), ("cls", "5")], &ShardLabels::Auto, ""),
        ([("cls", "5"), ("jpg", "5")], &ShardLabels::Auto, ""),
        ([("jpg", "5"), ("cls", "1 2 3")], &ShardLabels::Auto, &long),
        ([("ppm", "5"), ("json", "{\"v\":[1,2]}")], &json, ""),
        ([("jpg", "5"), ("txt", "cat")], &field("txt"), &long),
        // Of which the first is no picture.
        ([("npy", "5"), ("png", "5")], &ShardLabels::None, ""),
    ] {
        let path = dir.path().join("whole.tar");
        let names: Vec<_> = (0..8)
            .flat_map(|i| fields.map(|(field, data)| (format!("{prefix}{i}.{field}"), data)))
            .collect();
        let members: Vec<_> = names
            .iter()
            .map(|(name, data)| (&name[..], *data))
            .collect();
        write(&path, &members);
        let whole = fs::read(&path).unwrap();
        let file = File::open(&path).unwrap();
        let mut walk = Walk::new(&file, whole.len() as u64);
        let mut ends = Vec::new();
        while let Some(member) = walk.next().unwrap() {
            ends.push((member.data_at + member.size) as usize);
        }
        let last = *ends.last().unwrap();
        for with_idx in [false, true] {
            let idx = dir.path().join("cut.idx");
            if with_idx {
                Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
                fs::rename(dir.path().join("whole.idx"), &idx).unwrap();
                set_time(&idx, SystemTime::UNIX_EPOCH);
            }
            // Each place where a header or data may begin or end, and between.
            for len in (512..last).step_by(256).chain(ends.iter().copied()) {
                // What is no picture is known by the sample in front of it.
                if len == last || (fields[0].0 == "npy" && len < ends[1]) {
                    continue;
                }
                let good = ends.chunks(2).filter(|ends| ends[1] <= len).count() as u64;
                let (samples, damaged) = cut_at(dir.path(), &whole, len, labels);
                assert_eq!(samples, good, "cut at {len}");
                let lost = damaged.samples_incomplete + damaged.samples_missing.unwrap_or(0);
                assert_eq!(damaged.samples_missing.is_some(), with_idx);
                let is_begun = ends.chunks(2).any(|ends| ends[0] <= len && len < ends[1]);
                match with_idx {
                    true => assert_eq!(samples + lost, 8, "cut at {len}"),
                    false => assert!(lost >= u64::from(is_begun) && samples + lost <= 8),
                }
            }
            let _ = fs::remove_file(idx);
        }
    }
}

#[test]
fn zeros_in_the_place_of_a_tail_are_damage_that_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    ten(&path);
    let whole = fs::read(&path).unwrap();
    // As a tar of large records ends.
    let padded = |zeros: usize| [&whole[..20480], &vec![0; zeros]].concat();
    fs::write(&path, padded(1 << 20)).unwrap();
    assert_eq!((read().0.len(), read().1.damaged.len()), (10, 0));
    fs::write(&path, padded((1 << 20) + 1)).unwrap();
    let (index, report) = read();
    let damaged = &report.damaged[0];
    assert_eq!((index.len(), damaged.at), (10, 20480));
    assert_eq!(damaged.bytes_lost, (1 << 20) + 1);
    assert!(
        damaged.to_string().contains("bytes from there on are zero"),
        "{damaged}"
    );
    let e = Index::write_dali_indexes(slice::from_ref(&path)).unwrap_err();
    assert!(e.to_string().contains("damaged shard"), "{e}");

    // Allocated first, and broken off anywhere.
    for at in (0..=20480).step_by(256) {
        let mut bytes = padded(2 << 20);
        bytes[at..].fill(0);
        fs::write(&path, &bytes).unwrap();
        let good = (0..10).filter(|i| i * 2048 + 1536 < at).count() as u64;
        // Nothing of one, or all of them.
        if good == 0 {
            continue;
        }
        let (index, report) = read();
        assert_eq!(index.len(), good, "{at}");
        let damaged = &report.damaged[0];
        let is_begun = (0..10).any(|i| i * 2048 + 512 <= at && at <= i * 2048 + 1536);
        assert_eq!(damaged.samples_incomplete, u64::from(is_begun), "{at}");
        assert!(damaged.bytes_lost >= 2 << 20, "{at}");
    }
}

#[test]
fn a_shard_that_lacks_its_end_blocks_alone_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let idx = Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..20480]).unwrap();
    set_time(&idx[0], SystemTime::UNIX_EPOCH);
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged.len()), (10, 0));
    // With the count alone nothing would be missed; the last has no label.
    fs::write(&path, &whole[..20480 - 1024]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (9, 1));
    assert_eq!(report.damaged[0].samples_missing, Some(0));
    // Without it what followed is not known.
    fs::remove_file(&idx[0]).unwrap();
    fs::write(&path, &whole[..20480]).unwrap();
    let (index, report) = read();
    assert_eq!((index.len(), report.damaged[0].samples_incomplete), (10, 0));
    // A field that is there and says nothing was not lost.
    let members = [
        ("1.jpg", ""),
        ("1.json", "{\"a\":1}"),
        ("2.jpg", ""),
        ("2.json", "{}"),
    ];
    write(&path, &members);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..4 * 512 + 2 * 512]).unwrap();
    let options = nowhere(json("json", "/a"));
    let e = Index::from_shards(slice::from_ref(&path), &options).unwrap_err();
    assert!(
        e.to_string().contains("2.jpg: this sample has no label"),
        "{e}"
    );
}

#[test]
fn a_damaged_header_costs_its_sample_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3 * 2048] ^= 1;
    bytes[5 * 2048 + 1024] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let read = |labels| Index::from_shards(slice::from_ref(&path), &nowhere(labels)).unwrap();
    let (index, report) = read(ShardLabels::Auto);
    let left: Vec<_> = [0, 1, 2, 4, 6, 7, 8, 9].map(|i| format!("{i}.jpg")).into();
    assert_eq!(names(&index), left);
    let damaged = &report.damaged[0];
    assert_eq!(
        (damaged.at, damaged.places, damaged.bytes_lost),
        (3 * 2048, 2, 2048)
    );
    assert_eq!(damaged.samples_incomplete, 2);
    assert_eq!(report.skipped_total(), 0);
    // Without labels the one that lost its label is whole.
    assert_eq!(read(ShardLabels::None).0.len(), 9);
}

fn set_time(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn dalis_index_takes_the_place_of_the_headers_while_it_is_newer_and_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let read = || Index::from_shards(slice::from_ref(&path), &nowhere(ShardLabels::Auto)).unwrap();
    let walked = read().0.hash();
    let written = Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    assert_eq!(written, [dir.path().join("a.idx")]);
    assert_eq!(read().0.hash(), walked);
    // A header in the midst that is gone is not missed.
    let good = fs::read(&path).unwrap();
    let text = fs::read_to_string(&written[0]).unwrap();
    let mut bytes = good.clone();
    bytes[5 * 2048..][..512].fill(7);
    fs::write(&path, bytes).unwrap();
    fs::write(&written[0], &text).unwrap();
    assert_eq!(read().0.hash(), walked);
    // Unless it is of other bytes, or older.
    fs::write(&written[0], text.replace(" 1 9.cls", " 2 9.cls")).unwrap();
    assert_eq!(read().0.len(), 9);
    fs::write(&written[0], &text).unwrap();
    assert_eq!(read().0.len(), 10);
    let shard_time = fs::metadata(&path).unwrap().modified().unwrap();
    set_time(&written[0], shard_time - Duration::from_secs(1));
    assert_eq!(read().0.len(), 9);
    // It names fewer than there are.
    fs::write(&path, &good).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for (from, to) in [(1, 10), (2, 11), (4, 6)] {
        let some = lines[from..to].join("\n");
        fs::write(&written[0], format!("v1.2 {}\n{some}\n", to - from)).unwrap();
        assert_eq!(read().0.hash(), walked, "{from}..{to}");
    }
}

#[test]
fn an_older_index_makes_no_good_shard_a_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let idx = dir.path().join("a.idx");
    let (folder, options) = kept_in(dir.path());
    let read = || {
        let _ = fs::remove_dir_all(&folder);
        let (index, report) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
        (index.len(), report.damaged, files(&folder).len())
    };
    // As wds2idx counts: each member without a dot is a sample.
    let members = [
        ("README", ""),
        ("1.jpg", ""),
        ("LICENSE", ""),
        ("2.jpg", ""),
    ];
    write(&path, &members);
    let text = "v1.2 4\nREADME 512 0 README\njpg 1024 0 1.jpg\nLICENSE 1536 0 LICENSE\n\
                jpg 2048 0 2.jpg\n";
    fs::write(&idx, text).unwrap();
    assert_eq!(Idx::samples_at(&idx), Some(2));
    let (file, len) = crate::shard::open(&path).unwrap();
    assert!(Idx::read(&idx, &file, len).is_ok());
    assert_eq!(read(), (2, vec![], 1));
    set_time(&idx, SystemTime::UNIX_EPOCH);
    assert_eq!(read(), (2, vec![], 1));
    // A smaller shard in the place of a larger one.
    ten(&path);
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    write(&path, &[("1.jpg", "")]);
    set_time(&idx, SystemTime::UNIX_EPOCH);
    assert_eq!(read(), (1, vec![], 1));
    // Of a newer one it is said.
    set_time(&path, SystemTime::UNIX_EPOCH);
    set_time(&idx, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let (samples, damaged, kept) = read();
    assert_eq!((samples, damaged[0].samples_missing, kept), (1, Some(9), 0));
    // And cut, beside wds2idx's: one sample is lost, and LICENSE is none.
    write(&path, &members);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..1024]).unwrap();
    fs::write(&idx, text).unwrap();
    set_time(&idx, SystemTime::UNIX_EPOCH);
    let (samples, damaged, _) = read();
    assert_eq!((samples, damaged[0].samples_missing), (1, Some(1)));
}

#[test]
fn no_index_is_written_for_names_with_blanks_or_damaged_shards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let told = |shard: &Path| {
        let e = Index::write_dali_indexes(&[shard.to_owned()]).unwrap_err();
        assert!(e.is_usage() && !dir.path().join("a.idx").exists());
        e.to_string()
    };
    write(&path, &[("a.jpg", ""), ("b c.jpg", "")]);
    let e = told(&path);
    assert!(e.contains("a.tar: the member \"b c.jpg\""), "{e}");
    ten(&path);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..3100]).unwrap();
    assert!(told(&path).contains("no index is written for a damaged shard"));
    write(&path, &[("README", "")]);
    assert!(told(&path).contains("no samples"));
}

#[test]
fn many_shards_are_read_in_their_order_whatever_the_threads_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut want = Vec::new();
    for i in 0..40 {
        let name = format!("{i:02}.jpg");
        let data = "x".repeat(i * 100);
        write(
            &dir.path().join(format!("{i:02}.tar")),
            &[(&name, &data), (&format!("{i:02}.cls"), &i.to_string())],
        );
        want.push(name);
    }
    let pattern = dir.path().join("{00..39}.tar");
    let paths = Index::expand_shards(&[&pattern]).unwrap();
    let options = nowhere(ShardLabels::Auto);
    let (index, _) = Index::from_shards(&paths, &options).unwrap();
    assert_eq!((names(&index), index.shards()), (want, 40));
    assert_eq!(classes(&index), (0..40).collect::<Vec<_>>());
    let globbed = Index::expand_shards(&[dir.path().join("*.tar")]).unwrap();
    assert_eq!(globbed, paths);
    // Of several that are wrong, the first is told.
    fs::write(&paths[7], "no tar").unwrap();
    fs::write(&paths[30], "no tar").unwrap();
    let e = Index::from_shards(&paths, &options)
        .unwrap_err()
        .to_string();
    assert!(e.contains("07.tar") || e.contains("30.tar"), "{e}");
}

#[test]
fn shards_of_several_folders_have_the_folder_above_them_as_root() {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["x/a", "x/ab"] {
        fs::create_dir_all(dir.path().join(sub)).unwrap();
        write(&dir.path().join(sub).join("1.tar"), &[("1.jpg", sub)]);
    }
    let paths = Index::expand_shards(&[dir.path().join("x/{a,ab}/1.tar")]).unwrap();
    let (index, _) = Index::from_shards(&paths, &nowhere(ShardLabels::Auto)).unwrap();
    assert_eq!(index.root(), dir.path().join("x"));
    assert_eq!(index.path(1), dir.path().join("x/ab/1.tar/1.jpg"));
    assert_eq!(bytes_of(&index, 1), b"x/ab");
}

#[test]
fn names_of_shards_are_told_from_others() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("odd{1,2}"), "").unwrap();
    fs::create_dir(dir.path().join("folder.tar")).unwrap();
    let named = |name: &str| Index::names_shards(dir.path().join(name));
    assert!(named("a.tar") && named("a.TAR") && named("a-{0..3}") && named("a-*"));
    // Of which reading says what to do.
    assert!(named("a.tar.gz") && named("a.TGZ") && named("a.b.tar.zst"));
    assert!(!named("a") && !named("a.gz") && !named("odd{1,2}") && !named("folder.tar"));
}

#[test]
fn a_folder_of_tars_says_how_to_read_them() {
    let dir = tempfile::tempdir().unwrap();
    ten(&dir.path().join("b.tar"));
    let e = Index::folder(dir.path(), &Default::default()).unwrap_err();
    let want = format!("to read them give '{}/*.tar'", dir.path().display());
    assert!(e.to_string().contains(&want), "{e}");
}

/// Where kept indexes of a test lie, and the options that say so.
fn kept_in(dir: &Path) -> (PathBuf, ShardOptions) {
    let folder = dir.join("kept");
    let options = ShardOptions {
        keep: KeepIndex::In(folder.clone()),
        ..ShardOptions::default()
    };
    (folder, options)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .map(|entries| entries.map(|e| e.unwrap().path()).collect())
        .unwrap_or_default();
    files.sort();
    files
}

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
    // Written again it would be another file.
    let written = || fs::metadata(&kept[0]).unwrap().ino();
    let first = written();
    let (again, of_kept) = read();
    assert_eq!((again.hash(), &of_kept), (index.hash(), &report));
    assert_eq!(again.path(3), index.path(3));
    assert_eq!(written(), first);
    // A nanosecond makes them read again, and so does a length.
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
    // What is damaged is not kept.
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
    // Another kind of labels, and other shards, have files of their own.
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
fn fields_that_are_neither_picture_nor_label_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
    let members = [
        ("1.jpg", ""),
        ("1.cls", "1"),
        ("1.Seg.PNG", ""),
        ("1.json", "{}"),
        ("2.png", ""),
        ("2.npy", ""),
        ("2.cls", "1"),
        // Which is no sample.
        ("3.txt", ""),
        ("4.jpg", ""),
        ("4.cls", "1"),
        ("4.json", "{}"),
    ];
    write(&a, &members);
    write(&b, &members);
    let paths = [a, b.clone()];
    let counts = |options: &ShardOptions| {
        let (_, report) = Index::from_shards(&paths, options).unwrap();
        let counts = report.other_fields.into_iter();
        counts
            .map(|(name, count)| format!("{name} {count}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (_, kept) = kept_in(dir.path());
    for _ in 0..2 {
        assert_eq!(counts(&kept), "json 4, npy 2, seg.png 2");
    }
    assert_eq!(
        counts(&nowhere(ShardLabels::None)),
        "cls 6, json 4, npy 2, seg.png 2"
    );
    // A sample that lost its label is left out with its fields.
    write(
        &b,
        &[
            ("1.jpg", ""),
            ("1.cls", "1"),
            ("2.jpg", ""),
            ("2.json", "{}"),
        ],
    );
    let whole = fs::read(&b).unwrap();
    fs::write(&b, &whole[..4 * 512 + 512 + 512]).unwrap();
    let labels = nowhere(ShardLabels::Auto);
    assert_eq!(counts(&labels), "json 2, npy 1, seg.png 1");
    let labels = nowhere(ShardLabels::None);
    assert_eq!(counts(&labels), "cls 4, json 3, npy 1, seg.png 1");
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
    // The kept index, which is written anew.
    fifo(&files(&folder)[0]);
    assert_eq!(read().0.hash(), index.hash());
    assert!(files(&folder)[0].is_file());
    // DALI's, newer than its shard; and of a shard that is cut.
    fifo(&dir.path().join("a.idx"));
    assert_eq!(read().0.hash(), index.hash());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..9 * 2048]).unwrap();
    assert_eq!(read().0.len(), 9);
    // A saved index, and a cache's manifest.
    let saved = dir.path().join("saved.fli");
    fifo(&saved);
    assert!(!Index::is_saved(&saved).unwrap());
    let e = Index::load(&saved).unwrap_err().to_string();
    assert!(e.contains("not an index file"), "{e}");
    fifo(&dir.path().join(crate::shard::manifest::CACHE_MANIFEST));
    assert!(!Index::is_cache(dir.path()));
    let e = Index::cache(dir.path()).unwrap_err().to_string();
    assert!(e.contains("no manifest of a cache"), "{e}");
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
fn where_nothing_can_be_kept_is_an_error_only_when_it_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    ten(&path);
    let options = ShardOptions {
        // A file is there.
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
    // 4 + 4 for name and label, 12 for the place.
    assert!((38.0..38.1).contains(&a_sample), "{a_sample}");
    let start = std::time::Instant::now();
    let (again, _) = Index::from_shards(&[path], &options).unwrap();
    assert_eq!(again.hash(), index.hash());
    // A fiftieth of the million that has a second; debug builds are slower.
    assert!(
        start.elapsed() < Duration::from_millis(200),
        "{:?}",
        start.elapsed()
    );
}
