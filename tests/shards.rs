//! Tar shards made by the `tar` crate, loaded: the same stream as of the same
//! files in a folder, damage, labels, kept indexes, and the command line.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::slice;
use std::thread;
use std::time::Duration;

use common::rows::{Row, assert_same, stream};
use common::{FEATHERLOAD, Picture, builder, data};
use featherload::index::{Classes, KeepIndex, Label, ShardLabels, ShardOptions, SkipReason};
use featherload::{Index, Labels, Launch, Loader, LoaderBuilder, OnError, RowStatus, Source};
use serde_json::Value;

fn append(tar: &mut tar::Builder<File>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes).unwrap();
}

/// The pictures of `folder` in the order of its index, `each` in a shard, with
/// their class numbers as `cls` and more of them as `json`.
fn shards_of(folder: &Path, into: &Path, each: u64) -> Vec<PathBuf> {
    let (index, _) = Index::folder(folder, &Default::default()).unwrap();
    let mut shards = Vec::new();
    let mut tar = None;
    for id in 0..index.len() {
        if id % each == 0 {
            let path = into.join(format!("part-{:03}.tar", id / each));
            tar = Some(tar::Builder::new(File::create(&path).unwrap()));
            shards.push(path);
        }
        let tar = tar.as_mut().unwrap();
        let name = index.relative_path(id).to_str().unwrap().to_owned();
        let key = name.strip_suffix(".jpg").unwrap();
        let featherload::index::Label::Class(class) = index.label(id) else {
            panic!("a class is due");
        };
        append(tar, &name, &fs::read(index.path(id)).unwrap());
        append(tar, &format!("{key}.cls"), class.to_string().as_bytes());
        let json = format!("{{\"of\":{{\"name\":\"class{class}\",\"v\":[{class},0.5]}}}}");
        append(tar, &format!("{key}.json"), json.as_bytes());
        if id % each == each - 1 || id == index.len() - 1 {
            tar.finish().unwrap();
        }
    }
    shards
}

fn options() -> ShardOptions {
    ShardOptions {
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    }
}

fn over(source: Source) -> LoaderBuilder {
    Loader::builder(source)
        .helper(FEATHERLOAD)
        .launch(Launch::Exec)
        .batch_size(8)
        .seed(11)
}

fn rows(shards: &[PathBuf], workers: usize) -> Vec<Row> {
    let source = Source::Shards(shards.to_vec(), options());
    stream(&mut over(source).workers(workers).build().unwrap(), 2)
}

#[test]
fn shards_stream_as_the_folder_of_the_same_files() {
    let folder = data(3, 7);
    let tars = tempfile::tempdir().unwrap();
    let want = stream(&mut builder(folder.path()).workers(0).build().unwrap(), 2);
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
fn labels_come_from_json_as_classes_and_as_vectors() {
    let folder = data(3, 2);
    let tars = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 4);
    let batch = |pointer: &str| {
        let labels = ShardLabels::Json {
            field: "json".into(),
            pointer: pointer.into(),
        };
        let options = ShardOptions {
            labels,
            ..options()
        };
        let mut loader = over(Source::Shards(shards.clone(), options))
            .workers(1)
            .build()
            .unwrap();
        loader.epoch().next().unwrap().unwrap()
    };
    let by_name = batch("/of/name");
    let ids: Vec<i64> = by_name.ids().iter().map(|id| *id as i64 / 2).collect();
    assert_eq!(by_name.labels(), &Labels::Classes(ids));
    let by_number = batch("/of/v");
    let Labels::Vectors { width, values } = by_number.labels() else {
        panic!("vectors are due");
    };
    let want = by_number
        .ids()
        .iter()
        .flat_map(|id| [(*id / 2) as f32, 0.5]);
    assert_eq!((*width, values), (2, &want.collect::<Vec<_>>()));
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
        let mut loader = over(source())
            .workers(workers)
            .on_error(OnError::Stop)
            .build()
            .unwrap();
        let e = loader.epoch().find_map(Result::err).unwrap().to_string();
        assert!(e.contains(&format!("{}/d/1.jpg", path.display())), "{e}");
        let mut loader = over(source())
            .workers(workers)
            .on_error(OnError::Skip)
            .build()
            .unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        for (id, status) in batch.ids().iter().zip(batch.status()) {
            assert_eq!(*status == RowStatus::Ok, *id != 1, "{id}: {status:?}");
        }
    }
}

/// The command line, with a cache directory of its own.
fn featherload(cache: &Path, args: &[&str]) -> Output {
    Command::new(FEATHERLOAD)
        .args(args)
        .env("XDG_CACHE_HOME", cache)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(out: &Output) -> Value {
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn the_command_line_digests_shards_as_the_folder() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    shards_of(folder.path(), tars.path(), 5);
    let digest = |source: &Path, more: &[&str]| {
        let mut args = vec!["bench", source.to_str().unwrap()];
        args.extend(["--json", "--batch", "4", "--workers", "2", "--digest"]);
        args.extend(more);
        json(&featherload(cache.path(), &args))["digest"].clone()
    };
    let want = digest(folder.path(), &[]);
    assert!(want.is_string());
    assert_eq!(digest(&tars.path().join("part-{000..002}.tar"), &[]), want);
    // The second time the index is kept, in the user's cache.
    let kept = || fs::read_dir(cache.path().join("featherload")).map_or(0, Iterator::count);
    assert_eq!(kept(), 1);
    assert_eq!(digest(&tars.path().join("part-{000..002}.tar"), &[]), want);
    let globbed = tars.path().join("part-*.tar");
    assert_eq!(digest(&globbed, &["--index-dir", "none"]), want);
    assert_eq!(kept(), 1);
    let own = tars.path().join("own");
    let own_text = own.to_str().unwrap();
    assert_eq!(digest(&globbed, &["--index-dir", own_text]), want);
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
    assert_ne!(digest(&globbed, &["--labels", "none"]), want);
    assert_eq!(digest(&globbed, &["--label-field", "cls"]), want);
    assert_eq!(digest(&globbed, &["--label-json", "/of/name"]), want);
}

#[test]
fn a_damaged_tail_warns_with_counts_and_ends_with_0() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 6);
    let pattern = tars.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let out = featherload(cache.path(), &["index", pattern, "--write-idx"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("2 indexes for DALI"),
        "{}",
        text(&out.stdout)
    );
    let idx = fs::read_to_string(shards[1].with_extension("idx")).unwrap();
    assert!(idx.starts_with("v1.2 6\njpg 512 "), "{idx}");

    let len = fs::metadata(&shards[1]).unwrap().len();
    let file = File::options().write(true).open(&shards[1]).unwrap();
    file.set_len(len / 2).unwrap();
    drop(file);
    let args = ["bench", pattern, "--json", "--batch", "4", "--workers", "1"];
    // Each time: such an index is not kept.
    for _ in 0..2 {
        let out = featherload(cache.path(), &args);
        json(&out);
        let told = text(&out.stderr);
        let line = told
            .lines()
            .find(|line| line.starts_with("warning: "))
            .unwrap_or(&told);
        assert!(line.contains("part-001.tar: cut off"), "{told}");
        assert!(line.contains("samples are lost"), "{told}");
    }
    let found = json(&featherload(cache.path(), &["index", pattern, "--json"]));
    let damaged = &found["damaged"][0];
    let lost = damaged["samples_incomplete"].as_u64().unwrap()
        + damaged["samples_missing"].as_u64().unwrap();
    assert_eq!(found["samples"].as_u64().unwrap() + lost, 12);
    assert!(lost > 0 && found["damaged"].as_array().unwrap().len() == 1);
}

#[test]
fn what_cannot_be_read_is_named_with_exit_code_2() {
    let folder = data(1, 2);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 2);
    let refused = |source: &Path, more: &[&str]| {
        let mut args = vec!["index", source.to_str().unwrap()];
        args.extend(more);
        let out = featherload(cache.path(), &args);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let two = tars.path().join("part-{000,007}.tar");
    assert!(refused(&two, &[]).contains("part-007.tar: no such shard"));
    assert!(refused(&tars.path().join("x-*.tar"), &[]).contains("x-*.tar: no file"));
    assert!(refused(tars.path(), &[]).contains("/*.tar'"));
    assert!(refused(&shards[0], &["--root", "/"]).contains("--root means nothing"));
    assert!(refused(folder.path(), &["--index-dir", "none"]).contains("--index-dir means nothing"));
    assert!(refused(folder.path(), &["--label-json", "/a"]).contains("--label-json means nothing"));
    assert!(refused(folder.path(), &["--write-idx"]).contains("--write-idx is for tar shards"));
    assert!(refused(&shards[0], &["--label-field", "txt"]).contains("a field 'txt'"));
    assert!(refused(&shards[0], &["--label-json", "json:a"]).contains("'a' is no JSON pointer"));
}

/// A shard of these members, whose pictures nobody decodes.
fn shard(path: &Path, members: &[(&str, &str)]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (name, bytes) in members {
        append(&mut tar, name, bytes.as_bytes());
    }
    tar.finish().unwrap();
}

/// A sample for each label, in the field of this extension.
fn labelled(path: &Path, field: &str, labels: &[&str]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (i, label) in labels.iter().enumerate() {
        append(&mut tar, &format!("{i:02}.jpg"), b"");
        append(&mut tar, &format!("{i:02}.{field}"), label.as_bytes());
    }
    tar.finish().unwrap();
}

fn classes(index: &Index) -> Vec<i64> {
    let class = |id| match index.label(id) {
        Label::Class(class) => class,
        other => panic!("{other:?}"),
    };
    (0..index.len()).map(class).collect()
}

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
fn a_class_table_numbers_the_names_of_all_shards_alike() {
    let dir = tempfile::tempdir().unwrap();
    let val = dir.path().join("val.tar");
    shard(
        &val,
        &[
            ("1.jpg", ""),
            ("1.cls", "cat"),
            ("1.json", "{\"of\":\"dog\"}"),
            ("1.txt", "7"),
        ],
    );
    let table = Classes::new(["zebra", "cat", "ant", "dog"]).unwrap();
    let json = ShardLabels::Json {
        field: "json".into(),
        pointer: "/of".into(),
    };
    // One folder: what is kept without the table is not taken for it.
    let keep = KeepIndex::In(dir.path().join("kept"));
    let read = |labels: &ShardLabels, classes: Option<Classes>| {
        let options = ShardOptions {
            labels: labels.clone(),
            classes,
            keep: keep.clone(),
        };
        Index::from_shards(slice::from_ref(&val), &options).map(|(index, _)| index)
    };
    for (labels, with_table) in [(ShardLabels::Auto, 1), (json, 3)] {
        for _ in 0..2 {
            assert_eq!(classes(&read(&labels, None).unwrap()), [0]);
            let index = read(&labels, Some(table.clone())).unwrap();
            assert_eq!(classes(&index), [with_table]);
            assert_eq!(index.classes(), &table);
        }
    }
    let lacking = Classes::new(["zebra", "dog"]).unwrap();
    let e = read(&ShardLabels::Auto, Some(lacking)).unwrap_err();
    assert!(e.is_usage());
    let e = e.to_string();
    assert!(
        e.contains("val.tar/1.jpg: its class 'cat' is not in the class table"),
        "{e}"
    );
    let e = read(&ShardLabels::Field("txt".into()), Some(table.clone())).unwrap_err();
    assert!(
        e.to_string().contains("the labels here are a class number"),
        "{e}"
    );
    let e = read(&ShardLabels::None, Some(table)).unwrap_err();
    assert!(e.to_string().contains("of no use without labels"), "{e}");

    let file = dir.path().join("classes.txt");
    fs::write(&file, "zebra\ncat\n").unwrap();
    let mut args = vec!["index", val.to_str().unwrap(), "--no-headers", "--json"];
    args.extend(["--classes", file.to_str().unwrap()]);
    let found = json_of(dir.path(), &args);
    assert_eq!(found["classes"], 2);
    assert_eq!(found["largest_class"]["number"], 1, "{found}");
    fs::write(&file, "zebra\n").unwrap();
    let out = featherload(dir.path(), &args);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("'cat' is not in the class table"));
}

fn json_of(cache: &Path, args: &[&str]) -> Value {
    json(&featherload(cache, args))
}

#[test]
fn whole_numbers_among_fractions_are_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
    let in_json = ShardLabels::Json {
        field: "json".into(),
        pointer: String::new(),
    };
    for (field, labels) in [("cls", ShardLabels::Auto), ("json", in_json)] {
        labelled(&a, field, &["1", "2"]);
        let options = ShardOptions {
            labels,
            ..options()
        };
        let read = || Index::from_shards(&[a.clone(), b.clone()], &options);
        // All whole they are classes, and a fraction in another shard makes all
        // of them numbers.
        labelled(&b, field, &["3", "-4"]);
        assert_eq!(classes(&read().unwrap().0), [1, 2, 3, -4]);
        for (of_b, want) in [
            (["0.5", "-4"], [1.0, 2.0, 0.5, -4.0]),
            (["3.0", "4"], [1.0, 2.0, 3.0, 4.0]),
        ] {
            labelled(&b, field, &of_b);
            let (index, _) = read().unwrap();
            assert_eq!(index.label_width(), 1);
            let number = |id| match index.label(id) {
                Label::Vector(v) => v.iter().next().unwrap(),
                other => panic!("{other:?}"),
            };
            assert_eq!((0..4).map(number).collect::<Vec<_>>(), want);
        }
    }
    labelled(&a, "cls", &["1", "0.5"]);
    labelled(&b, "cls", &["cat"]);
    let e = Index::from_shards(&[a, b], &options()).unwrap_err();
    assert!(
        e.to_string().contains("label is a class name, where those"),
        "{e}"
    );
}

#[test]
fn a_compressed_shard_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8], want: &str| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let out = featherload(dir.path(), &["index", path.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        let told = std::str::from_utf8(&out.stderr).unwrap();
        assert!(told.contains(want), "{told}");
        assert!(told.trim_end().chars().all(|c| !c.is_control()), "{told:?}");
    };
    let gzip = b"\x1f\x8b\x08\x00\x1b[31m \xff\x07\n";
    let want = "compressed by gzip: members of a compressed archive have no place of their own; \
                unpack it to a plain tar";
    refused("x.tar.gz", gzip, want);
    refused("x.tgz", gzip, want);
    refused(
        "x.tar.zst",
        b"\x28\xb5\x2f\xfd\xff\x1b[31m \x07",
        "compressed by zstd",
    );
    // What has another name is a list, of which no byte reaches the terminal.
    refused("x.bin", gzip, ":1: label '\\xff\\u{7}' is no whole number");
}

#[test]
fn empty_shards_are_named_and_hidden_ones_not_found() {
    let dir = tempfile::tempdir().unwrap();
    labelled(&dir.path().join("a.tar"), "cls", &["1"]);
    shard(&dir.path().join("b.tar"), &[]);
    shard(&dir.path().join("c.tar"), &[]);
    fs::copy(dir.path().join("a.tar"), dir.path().join(".a.tar")).unwrap();
    let pattern = dir.path().join("*.tar");
    let paths = Index::expand_shards(&[&pattern]).unwrap();
    assert_eq!(paths.len(), 3);
    let spelled_out = Index::expand_shards(&[dir.path().join(".a*")]).unwrap();
    assert_eq!(spelled_out, [dir.path().join(".a.tar")]);
    let deep = Index::expand_shards(&[dir.path().join("**/*.tar")]).unwrap();
    assert_eq!(deep, paths);
    let (index, report) = Index::from_shards(&paths, &options()).unwrap();
    assert_eq!((index.len(), index.shards()), (1, 3));
    let empty = &report.skipped[&SkipReason::EmptyShard];
    assert_eq!((empty.count, report.skipped_total()), (2, 2));
    assert_eq!(empty.examples, [Path::new("b.tar"), Path::new("c.tar")]);
    // Each time, also of the index that is kept.
    for _ in 0..2 {
        let args = ["index", pattern.to_str().unwrap(), "--no-headers"];
        let out = featherload(dir.path(), &args);
        assert_eq!(out.status.code(), Some(0));
        let told = text(&out.stderr);
        assert!(
            told.contains("left out: 2 x empty shard (such as b.tar)"),
            "{told}"
        );
    }
    let e = Index::from_shards(&paths[1..], &options()).unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("empty shard: 2"),
        "{e}"
    );
}

#[test]
fn a_forecast_has_mapped_shards_apart() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 4);
    let all = shards.iter().map(|path| fs::metadata(path).unwrap().len());
    let all = all.sum::<u64>();
    let forecast = |source: Source, workers| {
        let builder = over(source).workers(workers);
        builder.forecast(0).unwrap().memory
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
