//! Caches that are made of data sets in object stores: the bytes are those of a build from the
//! same shards on this machine, however little room there is, whoever makes which share, and
//! whenever the shards came.
//!
//! The store is a folder here (`file://`).

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use featherload::cache::{
    BuildOptions, BuildPart, BuildPhase, BuildReport, CacheBuilder, CacheEncoding, CacheResize,
};
use featherload::fetch::{FetchOptions, FetchReport, StoreAddress};
use featherload::index::{ShardLabels, ShardOptions};
use featherload::{Index, Source};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cache::scene::{Files, assert_same, files};
use crate::common::command::{command, featherload, object, refusal, stderr};
use crate::common::processes::{children, send, wait_for};
use crate::common::{FEATHERLOAD, data};
use crate::shards::scene::shards_of;
use crate::stores::{EACH, SHARDS, make_cache, on_disk};

struct Scene {
    dir: tempfile::TempDir,
    /// The source, which is the store too.
    src: PathBuf,
}

/// A cache as the source.
fn cache() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("src");
    make_cache(&cache, 90);
    Scene { src: cache, dir }
}

/// Tars that are no cache.
fn tars() -> Scene {
    let (src, dir) = (data(8, 15), tempfile::tempdir().unwrap());
    let tars = dir.path().join("src");
    fs::create_dir(&tars).unwrap();
    assert_eq!(shards_of(src.path(), &tars, EACH).len() as u64, SHARDS);
    Scene { src: tars, dir }
}

/// Such shards stand alone.
fn build_options() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Raw,
        resize: Some(CacheResize::Shorter(16)),
        shard_samples: Some(10),
        ..BuildOptions::default()
    }
}

/// These depend on those before them.
fn in_turn() -> BuildOptions {
    BuildOptions {
        shard_samples: None,
        shard_size: Some(50_000),
        shuffle: Some(3),
        ..build_options()
    }
}

fn labels() -> ShardOptions {
    ShardOptions {
        labels: ShardLabels::Field("cls".into()),
        ..ShardOptions::default()
    }
}

impl Scene {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn address(&self) -> String {
        format!("file://{}", self.src.display())
    }

    fn source(&self, limit: Option<u64>) -> Source {
        let mut options = FetchOptions::default();
        options.dir = Some(self.at("fetched"));
        options.limit = limit;
        if !Index::is_cache(&self.src) {
            options.shards = labels();
        }
        Source::Store(StoreAddress::parse(self.address()).unwrap(), options)
    }

    fn here(&self) -> Source {
        match Index::is_cache(&self.src) {
            true => Source::Cache(self.src.clone()),
            false => {
                let shards = Index::expand_shards(&[self.src.join("part-*.tar")]).unwrap();
                Source::Shards(shards, labels())
            }
        }
    }

    fn builder(&self, limit: Option<u64>, dst: &Path, options: BuildOptions) -> CacheBuilder {
        CacheBuilder::new(self.source(limit), dst, options)
            .helper(FEATHERLOAD)
            .num_workers(1)
    }

    /// The same build of the shards here.
    fn want(&self, options: BuildOptions) -> Files {
        let dst = self.at("want");
        let builder = CacheBuilder::new(self.here(), &dst, options).helper(FEATHERLOAD);
        assert!(builder.num_workers(1).build().unwrap().complete);
        built(&dst)
    }

    /// Room for so many shards of the largest, and for what lies beside them.
    fn room_for(&self, shards: u64) -> u64 {
        let all = files(&self.src);
        let tars = all.iter().filter(|(name, _)| name.ends_with(".tar"));
        let largest = tars.map(|(_, bytes)| on_disk(bytes.len() as u64)).max();
        let small = ["manifest.json", "index.fli"].map(|name| all.get(name).map_or(0, Vec::len));
        let small: u64 = small.iter().map(|n| on_disk(*n as u64)).sum();
        // A list, a kept index, a board and small files.
        largest.unwrap() * shards + small + 16 * 4096
    }

    /// The folder of the fetched shards.
    fn fetched(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.at("fetched")).unwrap();
        entries.next().unwrap().unwrap().path()
    }

    /// How many source shards lie there.
    fn tars_there(&self) -> u64 {
        let names = files(&self.fetched()).into_keys();
        names.filter(|name| name.ends_with(".tar")).count() as u64
    }
}

/// What the folder takes of the disk now.
fn taken(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok());
    files.map(|file| file.blocks() * 512).sum()
}

/// The files of a cache; of the manifest all but what it says of the source's files, which lie
/// elsewhere.
fn built(folder: &Path) -> Files {
    let mut all = files(folder);
    let manifest = all.remove("manifest.json").unwrap();
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["complete"], true);
    manifest["checksum"] = Value::Null;
    manifest["source"]["files"] = Value::Null;
    all.insert("manifest.json".into(), manifest.to_string().into_bytes());
    all.remove(".featherload.lock");
    all
}

fn came(report: &BuildReport) -> FetchReport {
    report.fetched.unwrap()
}

fn refused(builder: CacheBuilder) -> String {
    let e = builder.build().expect_err("no refusal");
    assert!(e.is_usage(), "{e}");
    e.to_string()
}

#[test]
fn the_bytes_are_those_of_a_build_from_here() {
    for (scene, options) in [
        (cache(), build_options()),
        (cache(), in_turn()),
        (tars(), build_options()),
        (tars(), in_turn()),
    ] {
        let want = scene.want(options);
        for workers in [2, 0] {
            let dst = scene.at("got");
            let builder = scene.builder(None, &dst, options).num_workers(workers);
            let mut phases = Vec::new();
            let report = builder.build_watched(&mut |progress| {
                assert!(progress.done <= progress.samples, "{progress:?}");
                assert_eq!(progress.share, None);
                if phases.last() != Some(&progress.phase) {
                    phases.push(progress.phase);
                }
                ControlFlow::Continue(())
            });
            let report = report.unwrap();
            assert_same(&built(&dst), &want, "of a store");
            assert_eq!(phases[..3], {
                use BuildPhase::{Checking, Fetching, ReadingHeaders};
                [Checking, Fetching, ReadingHeaders]
            });
            assert_eq!(came(&report).removed, 0);
            assert_eq!(scene.tars_there(), SHARDS);
            // Once more nothing is done, and no shard is needed.
            let tars = scene.fetched().join("shard-000000.tar");
            let _ = fs::remove_file(tars);
            let again = scene.builder(None, &dst, options).build().unwrap();
            assert_eq!(again.kept_samples, report.samples);
            assert_eq!(again.source_bytes, 0);
            fs::remove_dir_all(&dst).unwrap();
            fs::remove_dir_all(scene.at("fetched")).unwrap();
        }
    }
}

/// With room for a few shards the shares are made one after the other; each shard comes once.
#[test]
fn a_source_without_room_is_read_part_by_part() {
    let scene = cache();
    let options = build_options();
    let want = scene.want(options);
    let limit = scene.room_for(9);
    for into_store in [false, true] {
        let dst = match into_store {
            true => PathBuf::from(format!("file://{}", scene.at("got").display())),
            false => scene.at("got"),
        };
        let mut builder = scene.builder(Some(limit), &dst, options);
        if into_store {
            builder = builder.stage_dir(scene.at("stages"));
        }
        let (mut shares, mut most) = (Vec::new(), 0);
        let report = builder.build_watched(&mut |progress| {
            most = most.max(taken(&scene.fetched()));
            if shares.last() != Some(&progress.share) {
                shares.push(progress.share);
            }
            ControlFlow::Continue(())
        });
        let report = report.unwrap();
        assert_same(&built(&scene.at("got")), &want, "part by part");
        assert!(most <= limit, "{most} of {limit}");
        let of = shares[0].unwrap().1;
        assert!(of > 1, "{shares:?}");
        // The last is the end of the cache.
        let due: Vec<_> = (0..of).map(|k| Some((k, of))).chain([None]).collect();
        assert_eq!(shares, due);
        let fetched = came(&report);
        assert!(fetched.removed > 0, "{fetched:?}");
        // One that two shares need may come twice.
        assert!(fetched.shards < SHARDS + of, "{fetched:?}");
        assert_eq!((report.samples, report.kept_samples), (120, 0));
        assert_eq!(report.shards, 12);
        if into_store {
            let sent = report.sent.unwrap();
            assert_eq!(sent.shards_up, 12);
            assert_eq!(fs::read_dir(scene.at("stages")).unwrap().count(), 0);
        }
        // Broken off within a share, it goes on; the folder of shards may be gone by then.
        fs::remove_dir_all(scene.at("got")).unwrap();
        fs::remove_dir_all(scene.at("fetched")).unwrap();
        let build = |until: u64| {
            let mut builder = scene.builder(Some(limit), &dst, options);
            if into_store {
                builder = builder.stage_dir(scene.at("stages"));
            }
            let report = builder.build_watched(&mut |progress| {
                let is_there = progress.share.is_some_and(|(share, _)| share == until);
                match is_there && progress.phase == BuildPhase::Writing && progress.shards > 0 {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            report.unwrap()
        };
        let ended = build(1);
        assert!(!ended.complete && ended.samples >= 20, "{ended:?}");
        fs::remove_dir_all(scene.at("fetched")).unwrap();
        let ended = build(u64::MAX);
        assert!(ended.complete && ended.kept_samples > 0, "{ended:?}");
        assert_same(&built(&scene.at("got")), &want, "goes on");
        fs::remove_dir_all(scene.at("got")).unwrap();
        fs::remove_dir_all(scene.at("fetched")).unwrap();
    }
}

/// As on machines that see the store alone: each has a folder of its own. One has made the index
/// and shared it.
#[test]
fn a_share_gets_its_own_shards_alone() {
    let scene = tars();
    let want = scene.want(build_options());
    let dst = scene.at("got");
    scene.source(None).index_and_share(&|_, _| {}).unwrap();
    let limit = scene.room_for(9);
    for number in 0..4 {
        fs::remove_dir_all(scene.at("fetched")).unwrap();
        let part = BuildPart::Share { number, of: 4 };
        let builder = scene.builder(Some(limit), &dst, build_options()).part(part);
        let report = builder.build().unwrap();
        assert_eq!((report.samples, came(&report).shards), (30, 5));
        assert_eq!(scene.tars_there(), 5);
    }
    let end = scene
        .builder(None, &dst, build_options())
        .part(BuildPart::Finish);
    let report = end.build().unwrap();
    assert_eq!((report.samples, came(&report).shards), (120, 0));
    assert_same(&built(&dst), &want, "by shares");
}

#[test]
fn what_cannot_be_built_is_refused_with_what_to_do() {
    let scene = cache();
    let dst = scene.at("got");
    let few = Some(scene.room_for(6));
    let message = refused(scene.builder(few, &dst, in_turn()));
    for part in [
        "fetch_limit",
        "20 shards of the source",
        "are read at a time: give at least",
        "A shuffled cache is made of all of them",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = refused(scene.builder(
        few,
        &dst,
        BuildOptions {
            shuffle: None,
            ..in_turn()
        },
    ));
    assert!(message.contains("Or give `shard_samples`"), "{message}");
    let many = BuildOptions {
        shard_samples: Some(100),
        ..build_options()
    };
    let message = refused(scene.builder(few, &dst, many));
    assert!(message.contains("Or make smaller shards"), "{message}");
    assert!(!dst.exists() || files(&dst).keys().all(|name| name.starts_with('.')));
    // Where nothing is to be replaced, `force` changes nothing.
    let forced = || scene.builder(few, &dst, build_options()).force(true);
    assert!(forced().build().unwrap().complete);
    let message = refused(forced());
    assert!(
        message.contains("`force` makes all shards again"),
        "{message}"
    );
    fs::remove_dir_all(&dst).unwrap();
    // Where the source lies, whatever it is called.
    for place in [scene.src.clone(), PathBuf::from(scene.address() + "/")] {
        let message = refused(scene.builder(None, &place, build_options()));
        assert!(
            message.contains("is where shards of the source lie"),
            "{message}"
        );
    }

    // Also where braces go over folders, and by a link.
    let split = tars();
    let (one, two) = (split.src.join("one"), split.src.join("two"));
    for (folder, name) in [(&one, "part-000.tar"), (&two, "part-001.tar")] {
        fs::create_dir(folder).unwrap();
        fs::copy(split.src.join(name), folder.join("x.tar")).unwrap();
    }
    let link = split.at("link");
    std::os::unix::fs::symlink(&one, &link).unwrap();
    for (braces, place) in [
        ("{one,two}/x", &two),
        ("{one/x,two/x}", &one),
        ("{one,two}/x", &link),
    ] {
        let address = StoreAddress::parse(format!("{}/{braces}.tar", split.address())).unwrap();
        let mut options = FetchOptions::default();
        options.dir = Some(split.at("fetched"));
        let source = Source::Store(address, options);
        let message =
            refused(CacheBuilder::new(source, place, build_options()).helper(FEATHERLOAD));
        assert!(
            message.contains("is where shards of the source lie"),
            "{message}"
        );
    }

    // The limit of what it said is enough.
    let least = (0..).map(|n| scene.room_for(n)).find(|&limit| {
        let builder = scene.builder(Some(limit), &dst, in_turn());
        builder.build().is_ok()
    });
    assert!(least.unwrap() <= scene.room_for(30));

    let scene = tars();
    let limit = Some(scene.room_for(9));
    let message = refused(scene.builder(limit, &dst, build_options()));
    assert!(message.contains("run `featherload index"), "{message}");
}

/// Calls `meanwhile` with the phase of a build before its first share is written, and before its
/// second. Then the build continues.
fn in_rounds(scene: &Scene, meanwhile: &mut dyn FnMut(BuildPhase)) -> BuildReport {
    let limit = scene.room_for(9);
    let builder = scene.builder(Some(limit), &scene.at("got"), build_options());
    let mut seen = Vec::new();
    let report = builder.build_watched(&mut |progress| {
        let first = progress.share.is_some_and(|(number, _)| number == 0);
        if first && !seen.contains(&progress.phase) {
            seen.push(progress.phase);
            meanwhile(progress.phase);
        }
        ControlFlow::Continue(())
    });
    report.unwrap()
}

/// Shards of the first share are there from a build that was broken off, so nothing is waited for,
/// and what the fetcher is asked then is answered later.
#[test]
fn a_build_that_stands_for_a_while_goes_on() {
    let scene = cache();
    let want = scene.want(build_options());
    let builder = scene.builder(Some(scene.room_for(9)), &scene.at("got"), build_options());
    let report = builder.build_watched(&mut |progress| match progress.phase {
        BuildPhase::ReadingHeaders => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(!report.unwrap().complete);
    let report = in_rounds(&scene, &mut |phase| {
        if phase == BuildPhase::Checking {
            std::thread::sleep(Duration::from_millis(1200));
        }
    });
    assert_eq!(came(&report).deaths, 0);
    assert_same(&built(&scene.at("got")), &want, "after a while");
}

#[test]
fn a_fetcher_that_dies_while_shards_are_read_costs_nothing() {
    let scene = cache();
    let want = scene.want(build_options());
    let me = std::process::id() as i32;
    for phase in [BuildPhase::ReadingHeaders, BuildPhase::Writing] {
        // Tests of this process run beside each other under some runners: one's own is new.
        let fetchers = || -> Vec<i32> {
            let all = children(me).into_iter();
            all.filter(|p| p.name == "featherload-fe")
                .map(|p| p.pid)
                .collect()
        };
        let before = fetchers();
        let report = in_rounds(&scene, &mut |now| {
            if now == phase {
                for pid in fetchers().into_iter().filter(|pid| !before.contains(pid)) {
                    send(pid, Signal::SIGKILL);
                }
            }
        });
        assert!(came(&report).deaths >= 1, "{report:?}");
        assert_same(&built(&scene.at("got")), &want, "of a fetcher that died");
        fs::remove_dir_all(scene.at("got")).unwrap();
        fs::remove_dir_all(scene.at("fetched")).unwrap();
    }
}

/// Each has room alone. The one that comes later waits.
#[test]
fn shares_with_room_for_one_wait_for_each_other() {
    let scene = cache();
    let want = scene.want(build_options());
    let dst = scene.at("got");
    let limit = scene.room_for(11);
    let share = |number| {
        let part = BuildPart::Share { number, of: 4 };
        scene.builder(Some(limit), &dst, build_options()).part(part)
    };
    let (second, third) = (share(1), share(2));
    let mut others = Some((second, third));
    let mut ends = Vec::new();
    let first = share(0).build_watched(&mut |progress| {
        if progress.phase == BuildPhase::ReadingHeaders
            && let Some((second, third)) = others.take()
        {
            for builder in [second, third] {
                ends.push(std::thread::spawn(move || {
                    let mut waited = 0;
                    let report = builder.build_watched(&mut |progress| {
                        let is_waiting = progress.phase == BuildPhase::Fetching;
                        waited += u32::from(is_waiting && progress.done == 0);
                        ControlFlow::Continue(())
                    });
                    (report.unwrap(), waited)
                }));
            }
            std::thread::sleep(Duration::from_millis(700));
        }
        ControlFlow::Continue(())
    });
    assert!(first.unwrap().complete);
    let mut most = 0;
    for end in ends {
        let (report, waited) = end.join().unwrap();
        assert!(report.complete);
        most = most.max(waited);
    }
    // Each of them was refused once, at least.
    assert!(most >= 2, "{most}");
    share(3).build().unwrap();
    let end = scene
        .builder(Some(limit), &dst, build_options())
        .part(BuildPart::Finish);
    assert!(end.build().unwrap().complete);
    assert_same(&built(&dst), &want, "by shares");
}

#[test]
fn a_source_that_is_another_one_by_now_is_refused() {
    for scene in [cache(), tars()] {
        let dst = scene.at("got");
        let builder = scene.builder(None, &dst, build_options());
        let part = BuildPart::Share { number: 0, of: 2 };
        builder.part(part).build().unwrap();
        let first = files(&scene.src).into_keys().find(|n| n.ends_with(".tar"));
        let path = scene.src.join(first.unwrap());
        match Index::is_cache(&scene.src) {
            // Built again of other pictures.
            true => {
                fs::remove_dir_all(&scene.src).unwrap();
                make_cache(&scene.src, 80);
            }
            false => {
                let bytes = fs::read(&path).unwrap();
                fs::remove_file(&path).unwrap();
                fs::write(&path, bytes).unwrap();
            }
        }
        let message = refused(scene.builder(None, &dst, build_options()));
        assert!(message.contains("of the source have changed"), "{message}");
    }
}

/// The command: what it says; it is ended and killed again and again.
#[test]
fn the_command_tells_what_came_and_goes_on() {
    let scene = cache();
    let want = scene.want(build_options());
    let (dst, fetched) = (scene.at("got"), scene.at("fetched"));
    let address = scene.address();
    let limit = format!("{}K", scene.room_for(9) / 1024);
    let args = [
        "cache",
        "build",
        &address,
        dst.to_str().unwrap(),
        "--fetch-dir",
        fetched.to_str().unwrap(),
        "--fetch-limit",
        &limit,
        "--encode",
        "raw",
        "--resize",
        "shorter:16",
        "--shard-samples",
        "10",
        "--num-workers",
        "1",
    ];
    for (kill, signal) in (1..6).zip([Signal::SIGKILL, Signal::SIGINT].into_iter().cycle()) {
        let mut child = command(&args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let there = || {
            let names = fs::read_dir(&dst).into_iter().flatten().flatten();
            let tars = names.filter(|e| e.path().extension().is_some_and(|end| end == "tar"));
            (tars.count() >= kill).then_some(())
        };
        wait_for(Duration::from_secs(20), || {
            there().or_else(|| child.try_wait().unwrap().map(|_| ()))
        });
        send(child.id() as i32, signal);
        child.wait().unwrap();
    }
    let out = featherload(&args);
    assert!(out.status.success(), "{}", stderr(&out));
    let message = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(message.contains("120 samples in 12 shards"), "{message}");
    assert!(message.contains("fetched    "), "{message}");
    assert_same(&built(&dst), &want, "after kills");
    let message = refusal(&featherload(&[&args[..], &["--index-dir", "x"]].concat()));
    assert!(message.contains("--index-dir"), "{message}");
    let report = object(&featherload(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["report"]["kept_samples"], 120);
    assert_eq!(report["report"]["fetched"]["shards"], 0);
}
