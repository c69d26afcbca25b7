//! Tar shards in an object store that are no cache: their index is made once, of whole shards; the
//! stream is that of the same tars on this machine; and what changed or is missing is named.
//!
//! The store is a folder here (`file://`).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::index::{ClassList, ShardLabels, ShardOptions};
use featherload::{Index, Loader, LoaderBuilder, Source};
use serde_json::Value;

use crate::common::command::{command, object};
use crate::common::data;
use crate::common::rows::{assert_same, stream, take};
use crate::shards::scene::{options, shards_of, text};
use crate::stores::through_shards;

const EACH: u64 = 6;
const SHARDS: u64 = 20;

struct Scene {
    _dir: tempfile::TempDir,
    tars: PathBuf,
    fetched: PathBuf,
}

fn scene() -> Scene {
    let (src, dir) = (data(8, 15), tempfile::tempdir().unwrap());
    let tars = dir.path().join("tars");
    fs::create_dir(&tars).unwrap();
    assert_eq!(shards_of(src.path(), &tars, EACH).len() as u64, SHARDS);
    // What is no tar, or lies deeper, is no shard.
    fs::write(tars.join("part-000.idx"), "v1.2 0").unwrap();
    fs::write(tars.join(".part-000.tar"), "under way").unwrap();
    fs::create_dir(tars.join("deeper")).unwrap();
    fs::copy(tars.join("part-000.tar"), tars.join("deeper/x.tar")).unwrap();
    fs::remove_file(tars.join("part-000.idx")).unwrap();
    Scene {
        fetched: dir.path().join("fetched"),
        tars,
        _dir: dir,
    }
}

fn error(builder: LoaderBuilder) -> String {
    match builder.build() {
        Ok(_) => panic!("no refusal"),
        Err(e) => e.to_string(),
    }
}

fn blocks(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok());
    files.map(|file| file.blocks() * 512).sum()
}

impl Scene {
    fn prefix(&self) -> String {
        format!("file://{}", self.tars.display())
    }

    fn pattern(&self) -> String {
        format!("{}/part-{{000..019}}.tar", self.prefix())
    }

    fn here(&self, options: ShardOptions) -> LoaderBuilder {
        let shards = Index::expand_shards(&[self.tars.join("part-*.tar")]).unwrap();
        through_shards(Loader::builder(Source::Shards(shards, options)), EACH)
    }

    fn store(&self, address: &str, limit: Option<u64>, shards: ShardOptions) -> LoaderBuilder {
        let mut options = FetchOptions::default();
        options.dir = Some(self.fetched.clone());
        options.limit = limit;
        options.shards = shards;
        let address = StoreAddress::parse(address).unwrap();
        through_shards(Loader::builder(Source::Store(address, options)), EACH)
    }

    fn index(&self, address: &str, args: &[&str]) -> Output {
        let fetched = self.fetched.to_str().unwrap();
        let all = ["index", address, "--fetch-dir", fetched, "--json"];
        command(&[&all, args].concat()).output().unwrap()
    }

    fn report(&self, address: &str, args: &[&str]) -> Value {
        object(&self.index(address, args))
    }

    /// So many shards of the largest, and room for the small files beside them.
    fn room_for(&self, shards: u64) -> u64 {
        let all = Index::expand_shards(&[self.tars.join("part-*.tar")]).unwrap();
        let largest = all.iter().map(|path| fs::metadata(path).unwrap().len());
        let small = 16 * 4096;
        (largest.max().unwrap().div_ceil(4096) * 4096 * shards + small) * 4 / 3
    }

    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.fetched).into_iter().flatten();
        let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders
    }

    /// Files of the only folder that end so.
    fn there(&self, end: &str) -> Vec<String> {
        let folders = self.folders();
        assert_eq!(folders.len(), 1, "{folders:?}");
        let entries = fs::read_dir(&folders[0]).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(end)).collect();
        names.sort();
        names
    }
}

#[test]
fn the_stream_is_that_of_the_tars_here() {
    let scene = scene();
    let mut here = scene.here(options()).build().unwrap();
    let want = stream(&mut here, 2);
    for address in [scene.prefix(), scene.pattern()] {
        // Without a limit all come at the start, and the index is made of them.
        let mut loader = scene
            .store(&address, None, options())
            .epochs(2)
            .build()
            .unwrap();
        assert_eq!(scene.there(".fli").len(), 1);
        assert_same(&stream(&mut loader, 2), &want, &address);
        assert_eq!(loader.index().hash(), here.index().hash());
        let fetch = loader.report().unwrap().fetch.unwrap();
        assert_eq!((fetch.removed, fetch.deaths), (0, 0));
        // Those of which the index was made are told, too.
        assert!(fetch.shards > 0);
        if address == scene.prefix() {
            assert_eq!(fetch.shards, SHARDS);
        }
        assert_eq!(scene.there(".tar").len() as u64, SHARDS);
        drop(loader);
        // Both addresses name the same shards: one folder.
        let limit = scene.room_for(6);
        for workers in [2, 0] {
            let builder = scene
                .store(&address, Some(limit), options())
                .num_workers(workers);
            let mut loader = builder.build().unwrap();
            assert_same(&stream(&mut loader, 2), &want, &address);
            let fetch = loader.report().unwrap().fetch.unwrap();
            assert!(fetch.removed > 0 && fetch.shards > 0, "{fetch:?}");
            assert!(blocks(&scene.folders()[0]) <= limit);
        }
    }
    // A state of here goes on there.
    let (_, state) = take(&mut here, 5);
    let mut there = scene
        .store(&scene.prefix(), None, options())
        .build()
        .unwrap();
    there.resume(&state).unwrap();
    here.resume(&state).unwrap();
    assert_same(&stream(&mut there, 4), &stream(&mut here, 4), "a resume");
}

/// Another machine, which has a folder of its own, needs no shard to know all samples.
#[test]
fn a_shared_index_is_found_by_other_machines() {
    let mut scene = scene();
    let want = stream(&mut scene.here(options()).build().unwrap(), 1);
    let here = scene.fetched.clone();
    let room = scene.room_for(6);
    let limit = Some(room);
    let shared = |scene: &Scene| -> Vec<PathBuf> {
        let entries = fs::read_dir(&scene.tars).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "fli"))
            .collect()
    };
    let message = scene.report(&scene.prefix(), &["--share"]);
    assert_eq!(message["samples"], 120);
    let [object] = shared(&scene).try_into().unwrap();
    let bytes = fs::read(&object).unwrap();
    // By braces it is asked for too; with other labels it is another one.
    for (address, n) in [(scene.prefix(), 0), (scene.pattern(), 1)] {
        scene.fetched = here.with_file_name(format!("other-{n}"));
        let mut loader = scene.store(&address, limit, options()).build().unwrap();
        assert_eq!(scene.there(".fli").len(), 1);
        assert_same(&stream(&mut loader, 1), &want, "by a shared index");
        assert!(blocks(&scene.folders()[0]) <= room);
        drop(loader);
        let other = ShardOptions {
            labels: ShardLabels::None,
            ..options()
        };
        let none = error(scene.store(&address, limit, other));
        assert!(none.contains("run `featherload index"), "{none}");
    }
    // A damaged one is none: neither is it used, nor does it stand in the way.
    scene.fetched = here.with_file_name("damaged");
    for damaged in [
        &bytes[..bytes.len() / 2],
        b"",
        &[bytes.as_slice(), b"x"].concat(),
    ] {
        fs::write(&object, damaged).unwrap();
        let e = error(scene.store(&scene.prefix(), limit, options()));
        assert!(e.contains("run `featherload index"), "{e}");
        assert!(scene.there(".fli").is_empty());
    }
    // Of other shards, as one that was copied there.
    let others = self::scene();
    fs::remove_file(others.tars.join("part-019.tar")).unwrap();
    fs::copy(
        others.tars.join("part-000.tar"),
        others.tars.join("part-020.tar"),
    )
    .unwrap();
    others.report(&others.prefix(), &["--share"]);
    let [wrong] = shared(&others).try_into().unwrap();
    fs::copy(&wrong, &object).unwrap();
    let e = error(scene.store(&scene.prefix(), limit, options()));
    assert!(e.contains("run `featherload index"), "{e}");
    // More than the limit leaves for one.
    fs::write(&object, vec![0; 1 << 20]).unwrap();
    let e = error(scene.store(&scene.prefix(), limit, options()));
    assert!(e.contains("run `featherload index"), "{e}");
    fs::write(&object, &bytes[..100]).unwrap();
    let out = scene.index(&scene.prefix(), &["--share"]);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{message}");
    assert!(
        message.contains("is damaged, of another version"),
        "{message}"
    );
    assert!(fs::read(&object).unwrap() == bytes);
    // It is of the shards as they were.
    let first = scene.tars.join("part-000.tar");
    let tar = fs::read(&first).unwrap();
    fs::remove_file(&first).unwrap();
    fs::write(&first, tar).unwrap();
    scene.fetched = here.with_file_name("changed");
    let e = error(scene.store(&scene.prefix(), limit, options()));
    assert!(e.contains("run `featherload index"), "{e}");
    // What has no such index is refused.
    let local = scene.tars.join("part-{000..019}.tar");
    let out = command(&["index", local.to_str().unwrap(), "--share"])
        .output()
        .unwrap();
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("--share needs tar shards in an object"));
}

#[test]
fn an_index_is_made_within_the_limit() {
    let scene = scene();
    let limit = scene.room_for(5);
    let address = scene.pattern();
    let e = error(scene.store(&address, Some(limit), options()));
    for part in [
        &address,
        "has 20 tar shards, but no index for these options",
        &format!("run `featherload index '{address}'` with the same options"),
        "fetches all 20 tar shards (",
    ] {
        assert!(e.contains(part), "{e}");
    }
    assert!(scene.there(".tar").is_empty());
    let limit_text = format!("{}K", limit / 1024);
    let mut child = command(&["index", &address, "--json", "--fetch-limit", &limit_text])
        .args(["--fetch-dir".as_ref(), scene.fetched.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(blocks(&scene.folders()[0]));
        thread::sleep(Duration::from_millis(1));
    }
    let report = object(&child.wait_with_output().unwrap());
    assert!(most > 0 && most <= limit, "{most} of {limit}");
    assert_eq!(
        (&report["samples"], &report["shards"]),
        (&120.into(), &20.into())
    );
    assert_eq!(report["headers"], Value::Null);
    let local = scene.here(options()).build().unwrap();
    assert_eq!(report["hash"], format!("{:032x}", local.index().hash()));
    assert!((scene.there(".tar").len() as u64) < SHARDS);
    assert!(scene.there(".part").is_empty());
    // Made once: nothing is asked for but what objects are there.
    let again = scene.report(&address, &["--fetch-limit", &limit_text]);
    assert_eq!(again, report);
    let mut loader = scene
        .store(&address, Some(limit), options())
        .build()
        .unwrap();
    let want = stream(&mut scene.here(options()).build().unwrap(), 1);
    assert_same(&stream(&mut loader, 1), &want, "behind its index");
    // A limit that no index fits in, or no shard.
    let out = scene.index(&address, &["--fetch-limit", "40K", "--labels", "none"]);
    assert!(
        text(&out.stderr).contains("give at least"),
        "{}",
        text(&out.stderr)
    );
}

/// The number that a refusal names.
#[test]
fn the_least_limit_that_is_named_works() {
    let scene = scene();
    let address = scene.prefix();
    let out = scene.index(&address, &["--fetch-limit", "40K"]);
    let printed = text(&out.stderr);
    let (_, least) = printed.split_once("give at least ").expect(&printed);
    let mut words = least.split_whitespace();
    let (number, unit) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!(unit, "KiB", "{printed}");
    let limit = format!("{}K", number.parse::<f64>().unwrap().ceil());
    let report = scene.report(&address, &["--fetch-limit", &limit]);
    assert_eq!(report["samples"], 120);
}

/// A cache has its labels.
#[test]
fn how_shards_are_read_is_not_said_of_a_cache() {
    let scene = scene();
    let cache = scene.tars.join("cache");
    let (shards, to) = (scene.tars.join("part-*.tar"), cache.to_str().unwrap());
    let build = ["cache", "build", shards.to_str().unwrap(), to];
    let out = command(&build).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let address = format!("file://{to}");
    for args in [["--labels", "none"], ["--label-field", "cls"]] {
        let out = scene.index(&address, &args);
        let printed = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{printed}");
        assert!(
            printed.contains("is a cache, whose classes and labels are fixed"),
            "{printed}"
        );
    }
    assert_eq!(scene.report(&address, &[])["samples"], 120);
}

#[test]
fn a_shard_that_changed_is_noticed() {
    let scene = scene();
    let (address, limit) = (scene.prefix(), Some(scene.room_for(6)));
    scene.report(&address, &[]);
    let mut loader = scene.store(&address, limit, options()).build().unwrap();
    // Its folder and its list are those of before.
    let changed = scene.tars.join("part-007.tar");
    let other = fs::read(scene.tars.join("part-008.tar")).unwrap();
    fs::write(&changed, &other).unwrap();
    let e = loop {
        if let Some(e) = loader.epoch().find_map(Result::err) {
            break e.to_string();
        }
    };
    assert!(
        e.contains("/tars/part-007.tar: ") && e.contains("run `featherload index`"),
        "{e}"
    );
    drop(loader);
    let e = error(scene.store(&address, limit, options()));
    assert!(
        e.contains("1 of its 20 shards changed, are new or are gone since it was indexed")
            && e.contains(&format!("run `featherload index {address}` with")),
        "{e}"
    );
    scene.report(&address, &[]);
    let mut loader = scene.store(&address, limit, options()).build().unwrap();
    let want = stream(&mut scene.here(options()).build().unwrap(), 1);
    assert_same(&stream(&mut loader, 1), &want, "of the new shard");
    assert_eq!(scene.folders().len(), 2);
    drop(loader);
    fs::remove_file(changed).unwrap();
    let e = error(scene.store(&address, limit, options()));
    assert!(e.contains("1 of its 19 shards changed"), "{e}");
    let e = error(scene.store(&scene.pattern(), limit, options()));
    assert!(e.contains("/tars/part-007.tar: does not exist"), "{e}");
}

#[test]
fn bytes_that_are_not_those_that_were_indexed_are_refused() {
    let scene = scene();
    let address = scene.prefix();
    scene.report(&address, &[]);
    let folder = &scene.folders()[0];
    let shard = folder.join("part-003.tar");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[1000] ^= 1;
    fs::remove_file(&shard).unwrap();
    // As a process that was killed, or another start of the machine, leaves it.
    fs::write(folder.join("part-003.tar.part"), &bytes[..2000]).unwrap();
    let mut loader = scene.store(&address, None, options()).build().unwrap();
    let want = stream(&mut scene.here(options()).build().unwrap(), 1);
    assert_same(&stream(&mut loader, 1), &want, "behind a bad part");
    let fetch = loader.report().unwrap().fetch.unwrap();
    assert_eq!(fetch.shards, 1);
    assert!(fetch.bytes > bytes.len() as u64, "{fetch:?}");
}

#[test]
fn labels_are_read_as_they_are_here() {
    let scene = scene();
    let json = |pointer: &str| ShardLabels::Json {
        field: "json".to_owned(),
        pointer: pointer.to_owned(),
    };
    let names = (0..9).map(|n| format!("class{}", 8 - n));
    let table = ClassList::new(names).unwrap();
    let all = [
        (ShardLabels::None, None),
        (ShardLabels::Field("cls".to_owned()), None),
        (json("/of/name"), None),
        (json("/of/name"), Some(table)),
        (json("/of/v"), None),
    ];
    for (labels, classes) in &all {
        let options = ShardOptions {
            labels: labels.clone(),
            classes: classes.clone(),
            ..options()
        };
        let mut here = scene.here(options.clone()).build().unwrap();
        let mut there = scene
            .store(&scene.pattern(), None, options)
            .build()
            .unwrap();
        assert_eq!(there.index().hash(), here.index().hash(), "{labels:?}");
        assert_eq!(there.index().classes(), here.index().classes());
        assert_same(&stream(&mut there, 1), &stream(&mut here, 1), "labels");
    }
    // Their shards are the same.
    assert_eq!(scene.there(".tar").len() as u64, SHARDS);
    assert_eq!(scene.there(".fli").len(), all.len());
    let out = scene.index(&scene.prefix(), &["--label-field", "none"]);
    let printed = text(&out.stderr);
    assert!(
        printed.contains("no sample has a label in a field 'none'"),
        "{printed}"
    );
    let first = format!("{}/part-000.tar", scene.prefix());
    assert!(
        printed.contains(&first) && !printed.contains("/fetched/"),
        "{printed}"
    );
}

#[test]
fn a_damaged_tar_costs_what_it_costs_here() {
    let scene = scene();
    let path = scene.tars.join("part-004.tar");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 4000]).unwrap();
    let mut bytes = fs::read(scene.tars.join("part-005.tar")).unwrap();
    bytes[..512].fill(b'x');
    fs::write(scene.tars.join("part-005.tar"), bytes).unwrap();
    let mut here = scene.here(options()).build().unwrap();
    let (want, lost) = (
        stream(&mut here, 1),
        here.scan_report().unwrap().damaged.clone(),
    );
    assert_eq!(lost.len(), 2);
    for _ in 0..2 {
        let mut there = scene
            .store(&scene.prefix(), None, options())
            .build()
            .unwrap();
        assert_same(&stream(&mut there, 1), &want, "of damaged shards");
        let scan = there.scan_report().unwrap();
        for (there, here) in scan.damaged.iter().zip(&lost) {
            let name = here.path.file_name().unwrap().to_str().unwrap();
            assert_eq!(
                there.path.to_str().unwrap(),
                format!("{}/{name}", scene.prefix())
            );
            assert_eq!((there.at, &there.what), (here.at, &here.what));
        }
        assert_eq!(scan.skipped, here.scan_report().unwrap().skipped);
    }
    // What is no tar at all is refused by its address.
    fs::write(&path, "no tar").unwrap();
    let e = error(scene.store(&scene.prefix(), None, options()));
    let want = format!("{}/part-004.tar: is not a tar archive", scene.prefix());
    assert!(e.contains(&want), "{e}");
}

#[test]
fn a_kept_index_that_is_damaged_is_made_again() {
    let scene = scene();
    let address = scene.prefix();
    scene.report(&address, &[]);
    let kept = scene.folders()[0].join(&scene.there(".fli")[0]);
    let good = fs::read(&kept).unwrap();
    for at in [3, 40, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&kept, bad).unwrap();
        let e = error(scene.store(&address, Some(scene.room_for(6)), options()));
        assert!(e.contains("but no index for these"), "{at}: {e}");
    }
    // All are here.
    let loader = scene.store(&address, None, options()).build().unwrap();
    drop(loader);
    assert!(fs::read(&kept).unwrap() == good);
}

#[test]
fn what_has_no_tars_or_other_ones_is_told() {
    let scene = scene();
    let empty = scene.tars.join("deeper/empty");
    fs::create_dir(&empty).unwrap();
    fs::write(empty.join("a.tar.gz"), "x").unwrap();
    let e = error(scene.store(&format!("file://{}", empty.display()), None, options()));
    assert!(
        e.contains("deeper/empty: has neither a cache (manifest.json), nor tar shards (.tar)"),
        "{e}"
    );
    // Of several folders, in the order of the pattern.
    let order = ["deeper/x", "part-001", "part-000"];
    let address = format!("{}/{{deeper/x,part-{{001,000}}}}.tar", scene.prefix());
    let shards = order.map(|name| scene.tars.join(format!("{name}.tar")));
    let here = through_shards(
        Loader::builder(Source::Shards(shards.to_vec(), options())),
        EACH,
    );
    let mut there = scene.store(&address, None, options()).build().unwrap();
    let want = stream(&mut here.build().unwrap(), 1);
    assert_same(&stream(&mut there, 1), &want, "of several folders");
    let numbered = (0..3).map(|n| format!("shard-{n:06}.tar"));
    assert_eq!(scene.there(".tar"), numbered.collect::<Vec<_>>());
    drop(there);
    for (args, want) in [
        (
            vec!["--save", "x.fli"],
            "--save has no effect on shards in an object store",
        ),
        (vec!["--index-dir", "none"], "`--index-dir` has no effect"),
        (vec!["--write-idx"], "--write-idx needs tar shards"),
        (vec!["--root", "/"], "`--root` has no effect"),
    ] {
        let out = scene.index(&scene.prefix(), &args);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(want), "{}", text(&out.stderr));
    }
}

/// Several ranks that start at the same time make one index.
#[test]
fn ranks_that_start_together_fetch_each_shard_once() {
    let scene = scene();
    let want = stream(&mut scene.here(options()).build().unwrap(), 1);
    let shards = thread::scope(|threads| {
        let ends = [0, 1, 2].map(|_| {
            threads.spawn(|| {
                let builder = scene.store(&scene.prefix(), None, options());
                let mut loader = builder.epochs(1).build().unwrap();
                assert_same(&stream(&mut loader, 1), &want, "a rank");
            })
        });
        for end in ends {
            end.join().unwrap();
        }
        scene.there(".tar").len() as u64
    });
    assert_eq!(shards, SHARDS);
    assert_eq!(scene.there(".fli").len(), 1);
    assert!(scene.there(".part").is_empty() && scene.there(".board").is_empty());
}
