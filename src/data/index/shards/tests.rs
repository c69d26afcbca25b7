//! Shards, written by the `tar` crate and read to indexes.

mod dali;
mod damage;
mod fields;
mod kept;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, SystemTime};

use crate::data::index::shards::*;
use crate::data::index::{ClassList, DamagedShard, Label, SkipReason};
use crate::data::shard::dali_index::{DaliIndex, IdxFault};
use crate::data::shard::walk::HeaderWalk;

fn append(tar: &mut tar::Builder<File>, name: &str, data: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    if name.starts_with(['/', '.']) {
        // The crate would reject this name, or change it.
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

/// Reads one shard with these members.
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
    // A data set that was moved as a whole is the same data set.
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
        (1, example("a.tar/README"))
    );
    assert_eq!(
        skipped(SkipReason::Hidden),
        (1, example("a.tar/.hidden.jpg"))
    );
    let e = one(&members[..4], ShardLabels::None)
        .unwrap_err()
        .to_string();
    assert!(e.contains("no samples in") && e.contains("a.tar/a"), "{e}");
}

#[test]
fn sparse_files_and_links_are_no_members_and_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let mut tar = tar::Builder::new(File::create(&path).unwrap());
    let mut other = |name: &str, flag: u8| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::new(flag));
        header.set_size(0);
        header.set_link_name("1.jpg").unwrap();
        tar.append_data(&mut header, name, &[][..]).unwrap();
    };
    let long = format!("{}/4.jpg", "d".repeat(150));
    for (name, flag) in [("9.jpg", b'1'), ("8.jpg", b'2'), ("dir/", b'5')] {
        other(name, flag);
    }
    other("7.jpg", b'S');
    append(&mut tar, "1.jpg", b"5");
    append(&mut tar, "1.cls", b"5");
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::new(b'1'));
    link.set_size(0);
    tar.append_link(&mut link, &long, "1.jpg").unwrap();
    let records = [("GNU.sparse.major", &b"1"[..]), ("path", b"6.jpg")];
    tar.append_pax_extensions(records).unwrap();
    append(&mut tar, "short", b"5");
    append(&mut tar, "2.jpg", b"5");
    append(&mut tar, "2.cls", b"5");
    tar.finish().unwrap();
    let counted = || {
        let options = nowhere(ShardLabels::Auto);
        let (index, report) = Index::from_shards(slice::from_ref(&path), &options).unwrap();
        assert_eq!((index.len(), report.skipped.len()), (2, 1));
        report.skipped[&SkipReason::NotPlain].clone()
    };
    let walked = counted();
    let examples = ["6.jpg", "7.jpg", "8.jpg"].map(|name| PathBuf::from("a.tar").join(name));
    assert_eq!((walked.count, &walked.examples[..]), (5, &examples[..]));
    // The same with a DALI index, which does not name them.
    Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    assert_eq!(counted(), walked);
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
            &ClassList::new(["ant", "cat", "zebra"]).unwrap()
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

/// webdataset reads the first three by Python's json.
#[test]
fn what_nobody_reads_of_a_json_field_refuses_no_tar() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = |label: &str, labels: ShardLabels| {
        write(&path, &[("1.jpg", ""), ("1.json", label), ("1.txt", label)]);
        Index::from_shards(slice::from_ref(&path), &nowhere(labels))
    };
    let of_json = || ShardLabels::Json {
        field: "json".into(),
        pointer: "/label".into(),
    };
    for label in [
        "{\"similarity\": NaN, \"label\": 1}",
        "{\"label\": 1, \"m\": [-Infinity, {\"label\": 1e999}]}",
        "{\"t\": \"\\ud800\", \"t\": 2, \"label\": 1}",
        "\u{feff}{\"label\": 1}",
    ] {
        let (index, _) = read(label, of_json()).unwrap();
        assert_eq!(index.label(0), Label::Class(1), "{label}");
    }
    let e = read("{\"label\": NaN}", of_json()).unwrap_err();
    let says = "1.json: this label has NaN at '/label', which is not a number: correct it";
    assert!(e.to_string().contains(says), "{e}");
    // A byte order mark of a text is ignored, and a decimal comma is not a separator.
    let text = |label| read(label, ShardLabels::Field("txt".into()));
    assert_eq!(text("\u{feff}3\n").unwrap().0.label(0), Label::Class(3));
    for label in ["0,5", "nan"] {
        let e = text(label).unwrap_err().to_string();
        assert!(e.contains("1.txt: this label ") && e.contains(label), "{e}");
    }
}

#[test]
fn a_label_is_read_up_to_its_limit_and_its_depth() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = |label: &str, options: &ShardOptions| {
        write(&path, &[("1.jpg", ""), ("1.json", label), ("2.cls", "5")]);
        Index::from_shards(slice::from_ref(&path), options)
    };
    let of_json = nowhere(ShardLabels::Json {
        field: "json".into(),
        pointer: "/n".into(),
    });
    let deep = |key: &str, n: usize| {
        format!(
            "{{\"{key}\": {}{}, \"n\": 3}}",
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    read(&deep("m", 200_000), &of_json).unwrap();
    let e = read(&deep("n", 200_000), &of_json).unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("1.json"), "{e}");
    // A sparse file of 1 GiB, with a hole at the label of the first sample.
    let hole = |bytes: u64| {
        let mut file = File::create(&path).unwrap();
        let mut front = tar::Header::new_gnu();
        front.set_path("1.jpg").unwrap();
        front.set_size(0);
        front.set_cksum();
        std::io::Write::write_all(&mut file, front.as_bytes()).unwrap();
        front.set_path("1.cls").unwrap();
        front.set_size(bytes);
        front.set_cksum();
        std::io::Write::write_all(&mut file, front.as_bytes()).unwrap();
        file.set_len(1024 + bytes.next_multiple_of(512) + 1024)
            .unwrap();
        let options = nowhere(ShardLabels::Field("cls".into()));
        let e = Index::from_shards(slice::from_ref(&path), &options).unwrap_err();
        e.to_string()
    };
    let e = hole(1 << 30);
    for due in [
        "1.cls",
        "a label of 1 GiB",
        "at most 1 MiB is allowed",
        "another field",
    ] {
        assert!(e.contains(due), "{e}");
    }
    let e = hole(1 << 20);
    assert!(e.contains("1.cls: this label has a zero byte"), "{e}");
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
    assert!(e.contains("`labels: none`"), "{e}");
    let e = told(&jpg("cat"), ShardLabels::Auto);
    assert!(
        e.contains("2.jpg: this sample's label is a class name"),
        "{e}"
    );
    let e = told(&jpg("1 2"), ShardLabels::Auto);
    assert!(
        e.contains("is a vector, and those before it are a class number"),
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
    assert!(e.contains("a.tar/1.json: this label is not JSON"), "{e}");
    let twice = [("1.jpg", ""), ("1.JPG", "")];
    let e = told(&twice, ShardLabels::None);
    assert!(e.contains("a.tar/1.JPG: this extension is twice"), "{e}");
    let e = told(&jpg("1"), json("json", "a"));
    assert!(e.contains("'a' is not a JSON pointer"), "{e}");
    let e = told(&jpg("1"), field(""));
    assert!(e.contains("is not the extension"), "{e}");
    let long = "x".repeat((1 << 20) + 1);
    let e = told(&[("1.jpg", ""), ("1.cls", &long)], ShardLabels::Auto);
    assert!(e.contains("a label of 1.01 MiB"), "{e}");
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
    assert!(told("text.tar").contains("not a tar archive"));
    fs::write(dir.path().join("empty.tar"), "").unwrap();
    assert!(told("empty.tar").contains("an empty file"));
    fs::write(dir.path().join("zeros.tar"), [0; 10240]).unwrap();
    assert!(told("zeros.tar").contains("no samples in"));
    assert!(told("gone.tar").contains("No such file"));
    fs::create_dir(dir.path().join("folder.tar")).unwrap();
    assert!(told("folder.tar").contains("is a folder"));
    // The same error if the index could be kept.
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

/// Ten samples of two members, 1024 bytes each. Sample i begins at 2048 i.
fn ten(path: &Path) {
    let names: Vec<_> = (0..10)
        .map(|i| [format!("{i}.jpg"), format!("{i}.cls")])
        .collect();
    let members = names.iter().flatten().map(|name| (name.as_str(), "5"));
    write(path, &members.collect::<Vec<_>>());
}

fn set_time(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
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
    // If several shards are invalid, the first one is reported.
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
    // Reading these fails with advice.
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

/// The folder of kept indexes of a test, and the options that name it.
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
        // This is not a sample.
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
    // A sample that lost its label is skipped with its fields.
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
fn members_of_a_sample_that_do_not_stand_together_are_refused() {
    for members in [
        &[
            ("0.jpg", "1"),
            ("1.jpg", "1"),
            ("0.cls", "3"),
            ("1.cls", "4"),
        ][..],
        &[
            ("0.cls", "3"),
            ("1.cls", "4"),
            ("0.jpg", "1"),
            ("1.jpg", "1"),
        ],
        &[
            ("0.jpg", "1"),
            ("0.cls", "3"),
            ("1.jpg", "1"),
            ("2.jpg", "1"),
            ("1.cls", "4"),
        ],
        // Others than the few examples of the report.
        &[
            ("LICENSE.txt", "x"),
            ("README.md", "x"),
            ("VERSION.txt", "x"),
            ("img0.jpg", "1"),
            ("img1.jpg", "1"),
            ("img0.cls", "3"),
            ("img1.cls", "4"),
        ],
        &[
            ("0.jpg", "1"),
            ("1.jpg", "1"),
            ("0.label.cls", "3"),
            ("1.label.cls", "4"),
        ],
        &[("/x/0.jpg", "1"), ("/x/1.jpg", "1"), ("/x/0.cls", "3")],
    ] {
        let e = one(members, ShardLabels::Auto).unwrap_err();
        let said = e.to_string();
        assert!(
            said.contains("are not consecutive") && said.contains("tar --sort=name"),
            "{said}"
        );
        // Without labels nothing is lost.
        assert!(one(members, ShardLabels::None).is_ok());
    }
    let folders = [("images/0.jpg", "1"), ("labels/0.cls", "3")];
    let said = one(&folders, ShardLabels::Auto).unwrap_err().to_string();
    assert!(
        said.contains("'images/0' has an image without a label, and 'labels/0' has a label"),
        "{said}"
    );
    // This field is the label only by its option.
    let captions = [("0.jpg", "1"), ("1.jpg", "1"), ("0.txt", "3")];
    let field = ShardLabels::Field("txt".to_owned());
    let said = one(&captions, field).unwrap_err().to_string();
    assert!(said.contains("are not consecutive"), "{said}");
}

#[test]
fn members_elsewhere_that_are_no_label_are_no_fault() {
    let named = |names: &[&'static str]| -> Vec<(&'static str, &'static str)> {
        names.iter().map(|name| (*name, "1")).collect()
    };
    for (names, samples, labels) in [
        (
            &["0.jpg", "0.cls", "1.jpg", "1.cls", "0.txt", "1.txt"][..],
            2,
            true,
        ),
        (&["JPEGImages/0.jpg", "Annotations/0.xml"], 1, false),
        (&["0.jpg", "1.jpg", "0.txt", "1.txt"], 2, false),
        (&["a/0.jpg", "b/0.jpg", "c/0.txt"], 2, false),
        (&["a/0.jpg", "a/0.cls", "b/0.txt"], 1, true),
        (&["a/0.jpg", "a/0.cls", "b/0.cls"], 1, true),
        // It is unknown whose label it is.
        (&["a/0.jpg", "b/0.jpg", "c/0.cls"], 2, false),
    ] {
        let (index, _) = one(&named(names), ShardLabels::Auto).unwrap();
        assert_eq!(index.len(), samples, "{names:?}");
        let want = match labels {
            true => Label::Class(1),
            false => Label::None,
        };
        assert_eq!(index.label(0), want, "{names:?}");
    }
}

#[test]
fn a_tar_of_archives_says_how_to_unpack_it() {
    for member in ["n01440764.tar", "train/a.tar.gz", "0.zip"] {
        let said = one(&[(member, "x")], ShardLabels::Auto)
            .unwrap_err()
            .to_string();
        let names = format!("it holds other archives, such as {member}. Unpack it");
        assert!(
            said.contains(&names) && said.contains("are the classes"),
            "{said}"
        );
    }
}

#[test]
fn a_label_that_is_nowhere_is_answered_by_what_there_is() {
    let members = [
        ("0.jpg", "1"),
        ("0.json", r#"{"label": 1, "info": {"a": 2}}"#),
        ("0.txt", "x"),
    ];
    let json = |pointer: &str| ShardLabels::Json {
        field: "json".to_owned(),
        pointer: pointer.to_owned(),
    };
    for (labels, says) in [
        (
            json("/foo/bar"),
            "at '/foo/bar' of its field 'json'; it has '/info', '/label': name",
        ),
        (json("/info/b"), "'/info' has '/info/a'"),
        (
            json("/info"),
            "has an object at '/info': name a place in it, one of '/info/a'",
        ),
        (
            ShardLabels::Field("cls".to_owned()),
            "no sample has a label in a field 'cls' (there are json (1 sample), txt (1))",
        ),
    ] {
        let said = one(&members, labels).unwrap_err().to_string();
        assert!(
            said.contains(says) && said.contains("`labels: none`"),
            "{said}"
        );
    }
}
