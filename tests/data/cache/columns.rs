//! Caches with columns: a loader of the cache gives the values of the source, whatever their type,
//! order and shards; the bytes are the same after kills and for any number of workers; every flipped
//! bit is found; other columns are another cache.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use featherload::cache::{
    self, BuildOptions, BuildPart, CacheBuilder, CacheEncoding, FindingKind, OnBadSample,
};
use featherload::columns::ColumnValues;
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::index::ShardOptions;
use featherload::{Index, Loader, LoaderBuilder, Source};
use nix::sys::signal::Signal;

use super::scene::{assert_same, files, members, wait_for_shard};
use super::small::{flip, verified};
use crate::common::command::{command, featherload, object, refusal};
use crate::common::processes::send;
use crate::common::{FEATHERLOAD, Picture, data};

const NAMES: [&str; 7] = [
    "text",
    "whole",
    "score",
    "tags",
    "box",
    "boxes",
    "/info/deep",
];

struct Scene {
    dir: tempfile::TempDir,
    table: PathBuf,
}

fn text(row: u64) -> String {
    match row % 6 {
        0 => String::new(),
        1 => "é 日本 \u{1F600}".into(),
        2 => "a\nb\t\"\\".into(),
        3 => "x".repeat(1_000_000),
        _ => format!("caption {row}"),
    }
}

/// 20 images with JSON lines, whose values are extreme, missing and of all types.
fn scene() -> Scene {
    let dir = data(2, 10);
    let mut lines = String::new();
    for row in 0..20u64 {
        let whole = [i64::MIN, i64::MAX, 0, -1][row as usize % 4];
        let object = serde_json::json!({
            "path": format!("class{}/{:03}.jpg", row / 10, row % 10),
            "text": if row % 7 == 5 { serde_json::Value::Null } else { text(row).into() },
            "whole": whole,
            "score": if row % 3 == 0 { serde_json::Value::Null } else { (row as f64 / 3.0).into() },
            "tags": (0..row % 3).map(|n| format!("t{row}-{n}")).collect::<Vec<_>>(),
            "box": (0..row % 4).map(|n| n as f64 + 0.5).collect::<Vec<_>>(),
            "boxes": (0..row % 3).map(|n| [n, n + 1, row]).collect::<Vec<_>>(),
            "info": { "deep": format!("d{row}") },
        });
        lines += &format!("{object}\n");
    }
    let table = dir.path().join("all.jsonl");
    fs::write(&table, lines).unwrap();
    Scene { dir, table }
}

impl Scene {
    fn source(&self) -> Source {
        Source::detect(&self.table).unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join("built").join(name)
    }

    fn build(&self, name: &str, options: BuildOptions) -> PathBuf {
        let to = self.at(name);
        let report = builder(self.source(), &to, options).build().unwrap();
        assert!(report.complete);
        assert!(report.needed_bytes >= report.bytes);
        to
    }
}

fn builder(source: Source, to: &Path, options: BuildOptions) -> CacheBuilder {
    CacheBuilder::new(source, to, options)
        .helper(FEATHERLOAD)
        .num_workers(0)
        .columns(NAMES)
}

/// Shards of few samples.
fn small() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Raw,
        shard_samples: Some(3),
        ..BuildOptions::default()
    }
}

/// The values of all samples, as text: one row for each column, by id.
fn values(loader: LoaderBuilder, names: &[&str]) -> BTreeMap<u64, Vec<String>> {
    let mut loader = loader
        .helper(FEATHERLOAD)
        .num_workers(0)
        .batch_size(7)
        .columns(names.iter().copied())
        .build()
        .unwrap();
    let mut all = BTreeMap::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for (row, id) in batch.ids().iter().enumerate() {
            let of_row = names
                .iter()
                .map(|name| one(&batch.column(name).unwrap(), row));
            all.insert(*id, of_row.collect());
        }
    }
    all
}

/// The type of a column and its value in a row.
fn one(values: &ColumnValues, row: usize) -> String {
    match values {
        ColumnValues::Numbers { values, width } => {
            let each = values.kind().bytes() * width.unwrap_or(1);
            let bytes = &values.bytes()[row * each..(row + 1) * each];
            format!("{:?} {width:?} {bytes:?}", values.kind())
        }
        ColumnValues::Text(texts) => format!("{:?}", texts[row]),
        ColumnValues::Bytes(bytes) => format!("{:?}", bytes[row]),
        ColumnValues::Ragged {
            values,
            width,
            offsets,
        } => {
            let each = values.kind().bytes() * width.unwrap_or(1);
            let [from, to] = [row, row + 1].map(|n| offsets[n] as usize * each);
            format!(
                "{:?} {width:?} {:?}",
                values.kind(),
                &values.bytes()[from..to]
            )
        }
        ColumnValues::TextLists(lists) => format!("{:?}", lists[row]),
        other => panic!("{other:?}"),
    }
}

fn of(source: Source) -> LoaderBuilder {
    Loader::builder(source)
}

#[test]
fn a_cache_gives_the_columns_of_its_source() {
    let scene = scene();
    let want = values(of(scene.source()), &NAMES);
    assert_eq!(want.len(), 20);
    assert_eq!(want[&3][0], format!("{:?}", Some(text(3))));
    let in_turn = BuildOptions {
        encode: CacheEncoding::Copy,
        shard_size: Some(2 << 20),
        ..BuildOptions::default()
    };
    for (name, options) in [
        ("apart", small()),
        ("in-turn", in_turn),
        ("default", BuildOptions::default()),
    ] {
        let to = scene.build(name, options);
        let got = values(of(Source::detect(&to).unwrap()), &NAMES);
        assert!(got == want, "{name}: the values differ");
        assert!(verified(&to, 2).is_good());
        // A few of them, in another order.
        let some = ["boxes", "text"];
        let got = values(of(Source::detect(&to).unwrap()), &some);
        assert!(
            got.values()
                .zip(want.values())
                .all(|(got, want)| *got == [want[5].clone(), want[0].clone()])
        );
        // Shards stay within their size.
        for (file, bytes) in files(&to) {
            assert!(name != "in-turn" || !file.ends_with(".tar") || bytes.len() < 2 << 20);
        }
    }
    // The order of a shuffled cache: each image brings its own row.
    let shuffled = BuildOptions {
        shuffle: Some(7),
        ..small()
    };
    let to = scene.build("shuffled", shuffled);
    let index = Index::cache(&to).unwrap();
    let got = values(of(Source::detect(&to).unwrap()), &NAMES);
    let source = scene.source().open().unwrap().0;
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut moved = 0;
    for (id, row) in &got {
        let key = stem(index.relative_path(*id));
        // Class, and number in the class.
        let label = index.label(*id);
        let from = (0..20).find(|from| {
            source.label(*from) == label
                && key.ends_with(&format!("_{}", stem(source.relative_path(*from))))
                && want[from] == *row
        });
        moved += u64::from(from.unwrap() != *id);
    }
    assert!(moved > 5 && got.len() == 20);
}

#[test]
fn csv_and_tars_and_caches_themselves_are_sources_too() {
    let dir = data(1, 9);
    let csv = dir.path().join("all.csv");
    let mut text = String::from("path,caption,n,f\n");
    for row in 0..9 {
        let fraction = if row == 4 {
            String::new()
        } else {
            format!("{}", f64::from(row) / 7.0)
        };
        text += &format!(
            "class0/{row:03}.jpg,\"c, {row}\",{},{fraction}\n",
            i64::from(row) - 4
        );
    }
    fs::write(&csv, text).unwrap();
    let tar = dir.path().join("a.tar");
    let mut writer = tar::Builder::new(fs::File::create(&tar).unwrap());
    let mut add = |name: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        writer.append_data(&mut header, name, bytes).unwrap();
    };
    for n in 0..7u64 {
        let key = format!("{n:03}");
        add(format!("{key}.jpg"), &Picture::rgb(30, 20, n).encode());
        if n != 3 {
            add(format!("{key}.txt"), format!("caption {n}").as_bytes());
        }
        add(format!("{key}.id"), format!("{}", n * n).as_bytes());
        add(format!("{key}.bin"), &vec![n as u8; n as usize * 100]);
        add(
            format!("{key}.json"),
            format!("{{\"score\": {n}.5, \"a\": {{\"b\": [1, {n}]}}}}").as_bytes(),
        );
    }
    writer.finish().unwrap();
    drop(writer);
    let of_csv: &[&str] = &["caption", "n", "f"];
    let of_tar: &[&str] = &["txt", "id", "bin", "score", "/a/b"];
    for (name, source, names) in [("csv", &csv, of_csv), ("tar", &tar, of_tar)] {
        let want = values(of(Source::detect(source).unwrap()), names);
        let to = dir.path().join(name);
        let build = |source: &Path, to: &Path, names: &[&str]| {
            let builder = CacheBuilder::new(Source::detect(source).unwrap(), to, small());
            let builder = builder.helper(FEATHERLOAD).num_workers(0);
            builder.columns(names.iter().copied()).build().unwrap();
        };
        build(source, &to, names);
        assert_eq!(
            values(of(Source::detect(&to).unwrap()), names),
            want,
            "{name}"
        );
        // A cache of the cache, with fewer columns.
        let again = dir.path().join(format!("{name}-again"));
        build(&to, &again, &names[1..]);
        let got = values(of(Source::detect(&again).unwrap()), &names[1..]);
        assert!(got.iter().all(|(id, row)| *row == want[id][1..]));
        // A saved index of the cache, or of tars.
        let saved = dir.path().join(format!("{name}.fli"));
        Index::cache(&to).unwrap().save(&saved).unwrap();
        assert_eq!(values(of(Source::detect(&saved).unwrap()), names), want);
    }
    let saved = dir.path().join("tar.fli");
    Source::detect(&tar)
        .unwrap()
        .open()
        .unwrap()
        .0
        .save(&saved)
        .unwrap();
    let want = values(of(Source::detect(&tar).unwrap()), of_tar);
    assert_eq!(values(of(Source::detect(&saved).unwrap()), of_tar), want);
    // An index of files has none.
    let folder = Source::detect(dir.path().join("class0")).unwrap();
    folder.open().unwrap().0.save(&saved).unwrap();
    let e = of(Source::detect(&saved).unwrap())
        .columns(["txt"])
        .build()
        .unwrap_err();
    assert!(e.to_string().contains("a saved index has none"), "{e}");
}

#[test]
fn the_bytes_are_the_same_for_workers_shares_and_kills() {
    let scene = scene();
    let want = files(&scene.build("one", small()));
    for workers in [1, 3] {
        let to = scene.at(&format!("{workers}-workers"));
        builder(scene.source(), &to, small())
            .num_workers(workers)
            .build()
            .unwrap();
        assert_same(&want, &files(&to), "workers");
    }
    let to = scene.at("shares");
    for number in [2, 0, 1, 1] {
        let share = BuildPart::Share { number, of: 3 };
        builder(scene.source(), &to, small())
            .part(share)
            .build()
            .unwrap();
    }
    builder(scene.source(), &to, small())
        .part(BuildPart::Finish)
        .build()
        .unwrap();
    assert_same(&want, &files(&to), "shares");
    // A kill after each shard.
    let to = scene.at("killed");
    let of_command = || {
        let mut build = command(&[
            "cache",
            "build",
            scene.table.to_str().unwrap(),
            to.to_str().unwrap(),
        ]);
        build.args([
            "--encode",
            "raw",
            "--shard-samples",
            "3",
            "--num-workers",
            "1",
        ]);
        build.args(["--columns", &NAMES.join(",")]);
        build
    };
    let mut kills = 0;
    for number in 0..6 {
        let mut child = of_command().spawn().unwrap();
        wait_for_shard(&mut child, &to, number);
        kills += u32::from(child.try_wait().unwrap().is_none());
        send(child.id() as i32, Signal::SIGKILL);
        child.wait().unwrap();
    }
    assert!(kills > 0);
    assert!(of_command().output().unwrap().status.success());
    assert_same(&want, &files(&to), "kills");
    // A build that goes on after its last shard was removed.
    fs::remove_file(to.join("shard-000006.json")).unwrap();
    assert!(of_command().output().unwrap().status.success());
    assert_same(&want, &files(&to), "the last shard");
}

#[test]
fn other_columns_or_values_are_another_cache() {
    let scene = scene();
    let to = scene.build("cache", small());
    let refused = |names: &[&str]| {
        let builder = CacheBuilder::new(scene.source(), &to, small()).num_workers(0);
        let e = builder.columns(names.iter().copied()).build().unwrap_err();
        assert!(e.is_usage());
        e.to_string()
    };
    let e = refused(&["text"]);
    assert!(
        e.contains("columns was text (text), whole (int64)")
            && e.contains("and is now text (text)"),
        "{e}"
    );
    let e = refused(&[]);
    assert!(e.contains("and is now none"), "{e}");
    // The same again is nothing to do.
    let again = builder(scene.source(), &to, small()).build().unwrap();
    assert_eq!(again.kept_samples, 20);
    // A value changed, and no image.
    let changed = fs::read_to_string(&scene.table)
        .unwrap()
        .replace("caption 4", "caption four");
    fs::write(&scene.table, changed).unwrap();
    let e = refused(&NAMES);
    assert!(e.contains("files of the source have changed"), "{e}");
    let report = builder(scene.source(), &to, small())
        .force(true)
        .build()
        .unwrap();
    assert!(report.complete);
    let got = values(of(Source::detect(&to).unwrap()), &["text"]);
    assert!(got[&4][0].contains("caption four"));
    // Without columns, the cache is as it ever was.
    let plain = scene.at("plain");
    CacheBuilder::new(scene.source(), &plain, small())
        .num_workers(0)
        .build()
        .unwrap();
    let manifest = fs::read_to_string(plain.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"version\": 2,") && !manifest.contains("columns"));
    let last = members(&plain.join("shard-000000.tar")).pop().unwrap();
    assert!(!last.name.starts_with('.'));
    let e = of(Source::detect(&plain).unwrap())
        .columns(["text"])
        .build()
        .unwrap_err();
    assert!(
        e.to_string()
            .contains("build it again with `cache build --columns`"),
        "{e}"
    );
    let e = of(Source::detect(&to).unwrap())
        .columns(["txt"])
        .build()
        .unwrap_err();
    assert!(
        e.to_string()
            .contains("no column 'txt' (its columns: 'text', 'whole'"),
        "{e}"
    );
}

#[test]
fn a_table_that_is_sorted_anew_during_a_build_ends_it() {
    let scene = scene();
    let to = scene.at("cache");
    let text = fs::read_to_string(&scene.table).unwrap();
    let mut calls = 0;
    let build = builder(scene.source(), &to, small());
    let e = build
        .build_watched(&mut |_| {
            calls += 1;
            if calls == 1 {
                // Clocks of file systems tick every few milliseconds.
                std::thread::sleep(Duration::from_millis(30));
                let lines: Vec<&str> = text.lines().rev().collect();
                fs::write(&scene.table, lines.join("\n") + "\n").unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("all.jsonl") && e.contains("changed after"),
        "{e}"
    );
    let manifest = fs::read_to_string(to.join("manifest.json")).unwrap_or_default();
    assert!(!manifest.contains("\"complete\": true"));
    // The table as it is now makes a cache of its own rows.
    let report = builder(scene.source(), &to, small()).force(true).build();
    assert!(report.unwrap().complete);
    let names = &NAMES[..2];
    let got = values(of(Source::detect(&to).unwrap()), names);
    assert_eq!(got, values(of(scene.source()), names));
}

#[test]
fn another_table_of_the_same_length_and_time_is_another_source() {
    let scene = scene();
    let to = scene.build("cache", small());
    let modified = fs::metadata(&scene.table).unwrap().modified().unwrap();
    let other = fs::read_to_string(&scene.table)
        .unwrap()
        .replace("caption 4", "caption 5");
    fs::write(&scene.table, other).unwrap();
    let file = fs::File::options().write(true).open(&scene.table).unwrap();
    file.set_modified(modified).unwrap();
    let e = builder(scene.source(), &to, small()).build().unwrap_err();
    let e = e.to_string();
    assert!(e.contains("files of the source have changed"), "{e}");
}

#[test]
fn values_that_cannot_be_kept_end_the_build_before_it_begins() {
    let scene = scene();
    // A whole number that the last sample of a tar lacks.
    let tar = scene.dir.path().join("a.tar");
    let mut writer = tar::Builder::new(fs::File::create(&tar).unwrap());
    for n in 0..9u64 {
        let picture = Picture::rgb(20, 20, n).encode();
        let fields = [("jpg", picture), ("id", b"7".to_vec())];
        for (extension, bytes) in &fields[..if n == 8 { 1 } else { 2 }] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let name = format!("{n}.{extension}");
            writer.append_data(&mut header, name, &bytes[..]).unwrap();
        }
    }
    writer.finish().unwrap();
    let to = scene.at("none");
    let build = CacheBuilder::new(Source::detect(&tar).unwrap(), &to, small());
    let e = build.num_workers(0).columns(["id"]).build().unwrap_err();
    assert!(e.to_string().contains("which int64 cannot express"), "{e}");
    assert!(!to.exists());
    for (names, what) in [
        (vec!["nothing"], "'nothing'"),
        (vec!["text", "text"], "named twice"),
    ] {
        let build = CacheBuilder::new(scene.source(), &to, small()).num_workers(0);
        let e = build.columns(names).build().unwrap_err();
        assert!(e.is_usage() && e.to_string().contains(what), "{e}");
    }
    let folder = CacheBuilder::new(
        Source::detect(scene.dir.path().join("class0")).unwrap(),
        &to,
        small(),
    );
    let e = folder.num_workers(0).columns(["text"]).build().unwrap_err();
    assert!(e.to_string().contains("a folder has none"), "{e}");
    assert!(!to.exists());
}

#[test]
fn samples_that_are_left_out_take_their_rows_with_them() {
    let scene = scene();
    // All of shard 1 (samples 3 to 5), and one of shard 4.
    for name in [
        "class0/003.jpg",
        "class0/004.jpg",
        "class0/005.jpg",
        "class1/003.jpg",
    ] {
        let path = scene.dir.path().join(name);
        let bytes = fs::read(&path).unwrap();
        // The last one fails only when it is decoded.
        let keep = if name.starts_with("class1") {
            bytes.len() / 2
        } else {
            9
        };
        fs::write(&path, &bytes[..keep]).unwrap();
    }
    let options = BuildOptions {
        on_error: OnBadSample::Skip,
        ..small()
    };
    let to = scene.build("skipped", options);
    let got = values(of(Source::detect(&to).unwrap()), &["/info/deep"]);
    let kept: Vec<u64> = (0..20).filter(|id| ![3, 4, 5, 13].contains(id)).collect();
    let want: Vec<String> = kept
        .iter()
        .map(|id| format!("{:?}", Some(format!("d{id}"))))
        .collect();
    let got: Vec<String> = got.into_values().map(|mut row| row.remove(0)).collect();
    assert_eq!(got, want);
    // A shard without samples is an empty tar.
    assert_eq!(
        fs::metadata(to.join("shard-000001.tar")).unwrap().len(),
        1024
    );
    assert!(verified(&to, 1).is_good());
}

/// A manifest with the right checksum.
fn signed(mut text: String) -> String {
    let field = "\"checksum\": \"";
    let at = text.find(field).unwrap() + field.len();
    text.replace_range(at..at + 32, &"0".repeat(32));
    let hash = twox_hash::XxHash3_128::oneshot(text.as_bytes());
    text.replace_range(at..at + 32, &format!("{hash:032x}"));
    text
}

#[test]
fn each_flipped_byte_of_the_columns_is_found() {
    let scene = scene();
    let to = scene.at("cache");
    let build = CacheBuilder::new(scene.source(), &to, small()).num_workers(0);
    build.columns(["whole", "tags"]).build().unwrap();
    let tar = to.join("shard-000002.tar");
    let member = members(&tar).pop().unwrap();
    assert_eq!(member.name, ".columns.arrow");
    assert!(member.data.starts_with(b"ARROW1") && member.data.ends_with(b"ARROW1"));
    let end = member.at + member.data.len() as u64;
    for (at, kind) in (member.at..end)
        .step_by(7)
        .map(|at| (at, FindingKind::Data))
        .chain([
            (member.at - 512, FindingKind::Header),
            (member.at - 1, FindingKind::Header),
            (end, FindingKind::Padding),
        ])
    {
        flip(&tar, at, 3);
        let report = verified(&to, 1);
        flip(&tar, at, 3);
        let [found] = &report.findings[..] else {
            panic!("{at}: {:?}", report.findings);
        };
        assert_eq!(found.kind, kind, "{at}: {found:?}");
        assert_eq!(found.file, Path::new("shard-000002.tar"));
        assert!(
            found.sample.is_none() && found.message.contains(".columns.arrow"),
            "{found:?}"
        );
    }
    assert!(verified(&to, 1).is_good());
    // `--force` makes the damaged shard again.
    flip(&tar, member.at + 100, 1);
    let build = CacheBuilder::new(scene.source(), &to, small()).num_workers(0);
    build
        .columns(["whole", "tags"])
        .force(true)
        .build()
        .unwrap();
    assert!(verified(&to, 1).is_good());
    // What a loader says of a damaged file: it reads no checksum, and stays within the file.
    let read = || {
        let mut loader = of(Source::detect(&to).unwrap())
            .num_workers(0)
            .columns(["tags"])
            .batch_size(20)
            .build()
            .unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        batch.column("tags").map(drop).map_err(|e| e.to_string())
    };
    flip(&tar, end - 1, 0);
    let e = read().unwrap_err();
    assert!(
        e.contains("shard-000002.tar") && e.contains("is cut off") && e.contains("cache verify"),
        "{e}"
    );
    flip(&tar, end - 1, 0);
    assert_eq!(read(), Ok(()));
    // A manifest with a right checksum, whose columns end behind the shard.
    let path = to.join("manifest.json");
    let honest = fs::read_to_string(&path).unwrap();
    let said = format!("\"bytes\": {}", member.data.len());
    let shard = honest.find("shard-000002").unwrap();
    let columns = shard + honest[shard..].find("\"columns\"").unwrap();
    let at = columns + honest[columns..].find(&said).unwrap();
    let behind = fs::metadata(&tar).unwrap().len() - member.at + 1;
    let mut lying = honest.clone();
    lying.replace_range(at..at + said.len(), &format!("\"bytes\": {behind}"));
    fs::write(&path, signed(lying)).unwrap();
    let e = read().unwrap_err();
    assert!(
        e.contains("shard-000002.tar") && e.contains("and the shard has"),
        "{e}"
    );
    assert_eq!(signed(honest.clone()), honest);
    fs::write(&path, honest).unwrap();
    // A shard that is cut off.
    let whole = fs::read(&tar).unwrap();
    fs::write(&tar, &whole[..member.at as usize + 100]).unwrap();
    let report = verified(&to, 1);
    assert!(
        report
            .findings
            .iter()
            .all(|found| found.kind == FindingKind::Length)
    );
    assert!(!report.findings.is_empty());
}

#[test]
fn commands_name_the_columns() {
    let scene = scene();
    let to = scene.build("cache", small());
    let to = to.to_str().unwrap();
    let info = cache::info(Path::new(to)).unwrap();
    let shown: Vec<String> = info.columns.iter().map(ToString::to_string).collect();
    assert_eq!(shown[0], "text (text)");
    assert_eq!(shown[5], "boxes (lists of 3 x int64)");
    assert!(info.column_bytes > 3_000_000 && info.tar_bytes > info.column_bytes);
    let text = command(&["cache", "info", to]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("columns    text (text), whole (int64)"),
        "{text}"
    );
    let index = object(&command(&["index", to, "--json"]).output().unwrap());
    let available = &index["columns"]["available"];
    assert_eq!(available[1]["name"], "whole", "{index}");
    let text = command(&["index", to]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("columns    text (text)"), "{text}");
    // The tars alone are read as any others: the columns are a hidden member.
    let tars = Index::expand_shards(&[Path::new(to).join("*.tar")]).unwrap();
    let (tars, report) = Index::from_shards(&tars, &ShardOptions::default()).unwrap();
    assert_eq!((tars.len(), report.damaged.len()), (20, 0));
    // A flag that names a column twice.
    let other = scene.at("other");
    let said = refusal(&featherload(&[
        "cache",
        "build",
        scene.table.to_str().unwrap(),
        other.to_str().unwrap(),
        "--columns",
        "text,text",
    ]));
    assert!(said.contains("named twice"), "{said}");
}

#[test]
fn columns_go_into_a_store_and_come_from_it() {
    let scene = scene();
    let store = scene.dir.path().join("store");
    fs::create_dir(&store).unwrap();
    let address = format!("file://{}", store.join("set").display());
    let want = values(of(scene.source()), &NAMES);
    let build = builder(scene.source(), Path::new(&address), small());
    build
        .stage_dir(scene.dir.path().join("stages"))
        .build()
        .unwrap();
    let here = scene.build("here", small());
    let mut there = files(&store.join("set"));
    there.retain(|name, _| !name.starts_with('.'));
    assert_same(&files(&here), &there, "the store");
    let from = |address: &str, limit: Option<u64>, to: &str| {
        let mut options = FetchOptions::default();
        options.dir = Some(scene.dir.path().join(to));
        options.limit = limit;
        Source::Store(StoreAddress::parse(address).unwrap(), options)
    };
    // With room for all shards, and for few of them.
    let room = there
        .iter()
        .filter(|(name, _)| name.ends_with(".tar"))
        .map(|(_, bytes)| bytes.len() as u64);
    let few = 6 * room.max().unwrap();
    for (limit, to) in [(None, "all"), (Some(few), "few")] {
        let got = values(
            of(from(&address, limit, to)).row_limit(Duration::from_secs(60)),
            &NAMES,
        );
        assert!(got == want, "{to}: the values differ");
    }
    // Tars in a store: columns of them are read into a cache.
    let tars = store.join("tars");
    fs::create_dir(&tars).unwrap();
    for shard in 0..3u64 {
        let mut writer =
            tar::Builder::new(fs::File::create(tars.join(format!("{shard}.tar"))).unwrap());
        for n in 0..4 {
            let key = shard * 4 + n;
            let picture = Picture::rgb(20, 20, key).encode();
            for (extension, bytes) in [("jpg", picture), ("txt", format!("c{key}").into_bytes())] {
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                writer
                    .append_data(&mut header, format!("{key:03}.{extension}"), &bytes[..])
                    .unwrap();
            }
        }
        writer.finish().unwrap();
    }
    let address = format!("file://{}", tars.display());
    Source::index(from(&address, None, "tars"), &|_, _| {}).unwrap();
    let e = of(from(&address, None, "tars"))
        .helper(FEATHERLOAD)
        .columns(["txt"])
        .build()
        .unwrap_err();
    assert!(e.to_string().contains("`cache build --columns`"), "{e}");
    let to = scene.at("of-tars");
    let build = CacheBuilder::new(from(&address, None, "tars"), &to, small());
    build
        .helper(FEATHERLOAD)
        .num_workers(0)
        .columns(["txt"])
        .build()
        .unwrap();
    let got = values(of(Source::detect(&to).unwrap()), &["txt"]);
    let want: Vec<String> = (0..12)
        .map(|key| format!("{:?}", Some(format!("c{key}"))))
        .collect();
    assert_eq!(got.into_values().flatten().collect::<Vec<_>>(), want);
}
