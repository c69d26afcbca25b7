//! Caches in object stores: the stream is that of a cache on this machine, whatever the folder
//! holds and whoever dies; and what cannot be had is named.
//!
//! The store is a folder here (`file://`); tests of the Python package have S3 and a network that
//! fails.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use featherload::cache::{BuildOptions, CacheEncoding};
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::{Error, Loader, LoaderBuilder, OnError, Rank, Recipe, Sampler, Source};
use nix::sys::signal::Signal;

use crate::cache::scene::build;
use crate::common::processes::{children, send, wait_for};
use crate::common::rows::{Row, assert_same, rows, stream, take};
use crate::common::{FEATHERLOAD, data};

/// Samples of a shard, and shards.
pub(crate) const EACH: u64 = 6;
pub(crate) const SHARDS: u64 = 20;

/// A cache, the folder that its shards come to, and no pictures beside it.
struct Scene {
    _dir: tempfile::TempDir,
    cache: PathBuf,
    fetched: PathBuf,
}

/// A cache of so many shards in `folder`.
pub(crate) fn make_cache(folder: &Path, quality: u8) {
    let options = BuildOptions {
        encode: CacheEncoding::Jpeg { quality },
        shard_samples: Some(EACH),
        ..BuildOptions::default()
    };
    assert_eq!(build(data(8, 15).path(), folder, options).shards, SHARDS);
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    make_cache(&cache, 90);
    Scene {
        fetched: dir.path().join("fetched"),
        cache,
        _dir: dir,
    }
}

fn shards_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut shards: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "tar"))
        .collect();
    shards.sort();
    shards
}

/// Of the disk: whole blocks.
fn bytes_of(shards: &[PathBuf]) -> u64 {
    // One that goes meanwhile takes nothing.
    shards
        .iter()
        .map(|path| fs::metadata(path).map_or(0, |meta| on_disk(meta.len())))
        .sum()
}

/// What all files of a folder take of the disk; none while some come and go.
fn taken(folder: &Path) -> Option<u64> {
    let names = || {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    let before = names();
    let files = before.iter().map(|path| fs::metadata(path).ok());
    let blocks: u64 = files.map(|file| Some(file?.blocks())).sum::<Option<_>>()?;
    (names() == before).then_some(blocks * 512)
}

pub(crate) fn on_disk(bytes: u64) -> u64 {
    bytes.div_ceil(4096) * 4096
}

impl Scene {
    /// The most bytes of so many shards, manifest and index, a rank's board and four small files.
    fn room_for(&self, shards: u64) -> u64 {
        let all = shards_of(&self.cache);
        let largest = all
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .max();
        let small = ["manifest.json", "index.fli"].map(|name| self.cache.join(name));
        on_disk(largest.unwrap()) * shards + bytes_of(&small) + 5 * 4096
    }

    fn store(&self, limit: Option<u64>) -> LoaderBuilder {
        let address = StoreAddress::parse(format!("file://{}", self.cache.display())).unwrap();
        let mut options = FetchOptions::default();
        options.dir = Some(self.fetched.clone());
        options.limit = limit;
        through_shards(Loader::builder(Source::Store(address, options)), EACH)
    }

    fn here(&self) -> LoaderBuilder {
        through_shards(Loader::builder(Source::Cache(self.cache.clone())), EACH)
    }

    /// The folder of the cache.
    fn folder(&self) -> PathBuf {
        let mut entries = fs::read_dir(&self.fetched).unwrap();
        let folder = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        folder
    }

    /// Names in it that nobody would expect after a run.
    fn left_over(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let known = [
            "manifest.json",
            "index.fli",
            "checksums",
            "leader.lock",
            ".featherload-fetched",
        ];
        names
            .filter(|name| !known.contains(&&**name) && !name.ends_with(".tar"))
            .collect()
    }
}

/// A run through shards of `each` samples.
pub(crate) fn through_shards(builder: LoaderBuilder, each: u64) -> LoaderBuilder {
    builder
        .helper(FEATHERLOAD)
        .recipe(Recipe::eval224())
        .batch_size(4)
        .num_workers(2)
        .sampler(Sampler::ShardShuffle {
            shard: Some(each),
            window: 9,
        })
}

fn refused(builder: LoaderBuilder) -> Error {
    match builder.build() {
        Ok(mut loader) => loader.epoch().find_map(Result::err).expect("no refusal"),
        Err(e) => e,
    }
}

fn fetcher_of(me: i32) -> Vec<i32> {
    let all = children(me).into_iter();
    all.filter(|p| p.name == "featherload-fe")
        .map(|p| p.pid)
        .collect()
}

#[test]
fn the_stream_is_that_of_a_cache_here() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 3);
    for limit in [None, Some(scene.room_for(6)), Some(scene.room_for(100))] {
        for workers in [2, 1, 0] {
            let builder = scene.store(limit).num_workers(workers).epochs(3);
            let mut loader = builder.build().unwrap();
            assert_same(&stream(&mut loader, 3), &want, "from a store");
            let fetch = loader.report().unwrap().fetch.unwrap();
            assert_eq!(fetch.deaths, 0);
            drop(loader);
            let there = shards_of(&scene.folder());
            match limit {
                Some(limit) if limit < scene.room_for(SHARDS) => {
                    assert!(bytes_of(&there) <= limit);
                    assert!(fetch.removed > 0 && fetch.shards > SHARDS, "{fetch:?}");
                }
                _ => {
                    assert_eq!(there.len() as u64, SHARDS);
                    assert_eq!((fetch.shards, fetch.removed), (SHARDS, 0));
                }
            }
            assert_eq!(scene.left_over(), [""; 0]);
            fs::remove_dir_all(&scene.fetched).unwrap();
        }
    }
}

/// Two ranks: what each needs comes once, and the folder stays within its limit all the time.
#[test]
fn ranks_share_a_folder() {
    let scene = scene();
    let limit = scene.room_for(10);
    let rank = |builder: LoaderBuilder, rank| builder.rank(Rank { rank, world: 2 }).epochs(2);
    let wants = [0, 1].map(|n| stream(&mut rank(scene.here(), n).build().unwrap(), 2));
    let together = |limit| {
        let loaders = [0, 1].map(|n| rank(scene.store(limit), n).build().unwrap());
        let ends = loaders.map(|mut loader| {
            thread::spawn(move || {
                let rows = stream(&mut loader, 2);
                (rows, loader.report().unwrap().fetch.unwrap())
            })
        });
        let mut most = 0;
        while ends.iter().any(|end| !end.is_finished()) {
            most = most.max(taken(&scene.folder()).unwrap_or(0));
            thread::sleep(Duration::from_millis(1));
        }
        let mut shards = 0;
        for (end, want) in ends.into_iter().zip(&wants) {
            let (rows, fetch) = end.join().unwrap();
            assert_same(&rows, want, "a rank");
            shards += fetch.shards;
        }
        (shards, most)
    };
    let (_, most) = together(Some(limit));
    assert!(most <= limit, "{most} of {limit}");
    fs::remove_dir_all(&scene.fetched).unwrap();
    assert_eq!(together(None).0, SHARDS);
}

#[test]
fn a_fetcher_that_is_killed_costs_nothing_but_time() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 6);
    let me = std::process::id() as i32;
    // Tests of this process run beside each other under some runners: one's own is new.
    let before = fetcher_of(me);
    let mut loader = scene.store(Some(scene.room_for(6))).build().unwrap();
    let mut got: Vec<Row> = Vec::new();
    for kill in 0..5 {
        let own = || fetcher_of(me).into_iter().find(|pid| !before.contains(pid));
        let pid = wait_for(Duration::from_secs(10), own).expect("no fetcher");
        assert!(send(pid, Signal::SIGKILL));
        let epochs = kill + 1;
        got.extend(stream(&mut loader, epochs));
    }
    got.extend(stream(&mut loader, 6));
    assert_same(&got, &want, "with dead fetchers");
    assert!(loader.report().unwrap().fetch.unwrap().deaths >= 4);
}

/// The process that fetches for a loader.
fn fetcher(loader: &mut featherload::Loader) -> i32 {
    loader.report().unwrap().fetch.unwrap().process
}

#[test]
fn a_fetcher_that_is_stopped_costs_nothing_but_time() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 3);
    let mut loader = scene.store(Some(scene.room_for(6))).build().unwrap();
    let mut got = Vec::new();
    for epoch in 1..3 {
        assert!(send(fetcher(&mut loader), Signal::SIGSTOP));
        got.extend(stream(&mut loader, epoch));
    }
    // One that goes on before it is missed is let be.
    let pid = fetcher(&mut loader);
    assert!(send(pid, Signal::SIGSTOP));
    thread::sleep(Duration::from_millis(300));
    assert!(send(pid, Signal::SIGCONT));
    got.extend(stream(&mut loader, 3));
    assert_same(&got, &want, "with stopped fetchers");
    let fetch = loader.report().unwrap().fetch.unwrap();
    assert_eq!((fetch.deaths, fetch.process), (2, pid));
}

/// Two ranks, of which the first one's fetcher leads; its process.
fn led(scene: &Scene, limit: Duration) -> ([featherload::Loader; 2], i32) {
    let room = scene.room_for(10);
    let loaders = [0, 1].map(|rank| {
        let address = StoreAddress::parse(format!("file://{}", scene.cache.display())).unwrap();
        let mut options = FetchOptions::default().leader_limit(limit);
        options.dir = Some(scene.fetched.clone());
        options.limit = Some(room);
        let builder = through_shards(Loader::builder(Source::Store(address, options)), EACH);
        let mut loader = builder.rank(Rank { rank, world: 2 }).build().unwrap();
        let leads = || {
            let text = fs::read_to_string(scene.folder().join("leader.lock")).ok()?;
            text.split_whitespace().next()?.parse::<i32>().ok()
        };
        let leader = wait_for(Duration::from_secs(10), leads).unwrap();
        assert_eq!(leader == fetcher(&mut loader), rank == 0);
        loader
    });
    let mut loaders = loaders;
    let leader = fetcher(&mut loaders[0]);
    (loaders, leader)
}

#[test]
fn a_leader_that_is_stopped_is_replaced_for_all_ranks() {
    let scene = scene();
    let of_rank = |rank| scene.here().rank(Rank { rank, world: 2 });
    let wants = [0, 1].map(|rank| stream(&mut of_rank(rank).build().unwrap(), 2));
    let (loaders, leader) = led(&scene, Duration::from_secs(60));
    assert!(send(leader, Signal::SIGSTOP));
    let ends = loaders.map(|mut loader| {
        thread::spawn(move || {
            let rows = stream(&mut loader, 2);
            (rows, loader.report().unwrap().fetch.unwrap())
        })
    });
    let mut deaths = 0;
    for (end, want) in ends.into_iter().zip(&wants) {
        let (rows, fetch) = end.join().unwrap();
        assert_same(&rows, want, "a rank");
        deaths += fetch.deaths;
    }
    assert_eq!(deaths, 1);
}

/// Its own rank does not look, as one that does something else.
#[test]
fn a_leader_that_stands_still_is_named() {
    let scene = scene();
    let here = || scene.here().rank(Rank { rank: 1, world: 2 });
    let want = stream(&mut here().build().unwrap(), 2);
    let ([one, mut two], leader) = led(&scene, Duration::from_millis(400));
    assert!(send(leader, Signal::SIGSTOP));
    let mut got = Vec::new();
    let mut failed = None;
    // What is there is used up before.
    for _ in 0..2 {
        for batch in two.epoch() {
            match batch {
                Ok(batch) => got.extend(rows(&batch)),
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
    }
    let e = failed.expect("nobody noticed").to_string();
    let (number, folder) = (format!("process {leader} "), scene.folder());
    assert!(
        e.contains(&number)
            && e.contains("has not responded")
            && e.contains(folder.to_str().unwrap()),
        "{e}"
    );
    // It goes on where it stood.
    assert!(send(leader, Signal::SIGCONT));
    got.extend(stream(&mut two, 2));
    assert_same(&got, &want, "behind a leader that stood still");
    drop(one);
}

#[test]
fn jumps_and_resumes_fetch_what_is_needed_then() {
    let scene = scene();
    let (mut here, mut store) = (
        scene.here().build().unwrap(),
        scene.store(Some(scene.room_for(6))).build().unwrap(),
    );
    for loader in [&mut here, &mut store] {
        take(loader, 3);
    }
    let (want, state) = take(&mut here, 5);
    let (got, other) = take(&mut store, 5);
    assert_same(&got, &want, "behind an epoch that was broken off");
    assert_eq!(state, other);
    for loader in [&mut here, &mut store] {
        loader.set_epoch(7);
    }
    assert_same(&stream(&mut store, 9), &stream(&mut here, 9), "a jump");
    store.resume(&state).unwrap();
    here.resume(&state).unwrap();
    assert_same(&stream(&mut store, 3), &stream(&mut here, 3), "a resume");
}

/// What other fetchers left: parts, good ones and others; shards of the wrong length; whole ones
/// with other bytes.
#[test]
fn a_folder_is_taken_over() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 1);
    let run = || {
        let mut loader = scene.store(None).epochs(1).build().unwrap();
        assert_same(
            &stream(&mut loader, 1),
            &want,
            "over a folder that was there",
        );
        let fetch = loader.report().unwrap().fetch.unwrap();
        drop(loader);
        assert_eq!(scene.left_over(), [""; 0]);
        fetch
    };
    assert_eq!(run().shards, SHARDS);
    assert_eq!(run().shards, 0);
    let folder = scene.folder();
    let shard = |n: u64| folder.join(format!("shard-{n:06}.tar"));
    let whole = |n: u64| fs::read(scene.cache.join(format!("shard-{n:06}.tar"))).unwrap();
    let part = |n: u64| folder.join(format!("shard-{n:06}.tar.part"));
    for n in 0..3 {
        fs::remove_file(shard(n)).unwrap();
    }
    fs::write(part(0), &whole(0)[..1000]).unwrap();
    fs::write(part(1), vec![7; 1000]).unwrap();
    fs::write(part(2), vec![0; whole(2).len() + 1]).unwrap();
    fs::write(shard(3), b"short").unwrap();
    let fetch = run();
    assert_eq!(fetch.shards, 4);
    let lengths: u64 = (0..4).map(|n| whole(n).len() as u64).sum();
    // Of the first the rest; of the second all, behind what was its rest.
    assert_eq!(fetch.bytes, lengths - 1000 + whole(1).len() as u64 - 1000);

    let mut damaged = whole(5);
    damaged[2000] ^= 1;
    fs::write(shard(5), damaged).unwrap();
    // All are compared; nothing comes but the one.
    let fetch = run();
    assert_eq!((fetch.shards, fetch.bytes), (1, whole(5).len() as u64));
    assert!(fs::read(shard(5)).unwrap() == whole(5));
    // Nothing of the folder is believed but what the store says: neither a record of other bytes
    // nor a missing one.
    for record in [Some(vec![1; 16 * SHARDS as usize]), None] {
        match record {
            Some(bytes) => fs::write(folder.join("checksums"), bytes).unwrap(),
            None => fs::remove_file(folder.join("checksums")).unwrap(),
        }
        assert_eq!(run().shards, 0);
    }
}

#[test]
fn a_shard_that_changed_here_is_no_row_where_the_store_has_lost_it() {
    let scene = scene();
    stream(&mut scene.store(None).epochs(1).build().unwrap(), 1);
    let shard = scene.folder().join("shard-000005.tar");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[2000] ^= 1;
    fs::write(&shard, bytes).unwrap();
    fs::remove_file(scene.cache.join("shard-000005.tar")).unwrap();
    let message = refused(scene.store(None).epochs(1)).to_string();
    assert!(
        message.contains("/cache/shard-000005.tar: does not exist"),
        "{message}"
    );
    assert!(message.contains("changed since its download"), "{message}");
    assert!(message.contains(shard.to_str().unwrap()), "{message}");
}

/// What was left counts: parts go for what is needed, and so do shards where there was more room.
#[test]
fn what_is_there_counts_from_the_beginning() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 1);
    stream(&mut scene.store(None).epochs(1).build().unwrap(), 1);
    let folder = scene.folder();
    for n in 0..SHARDS {
        if n % 3 == 0 {
            let path = folder.join(format!("shard-{n:06}.tar"));
            fs::rename(&path, path.with_extension("tar.part")).unwrap();
        }
    }
    let limit = scene.room_for(6);
    let mut loader = scene.store(Some(limit)).epochs(1).build().unwrap();
    let mut got = Vec::new();
    for batch in loader.epoch() {
        got.extend(rows(&batch.unwrap()));
        let all = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
        let of_shards = |path: &PathBuf| path.to_string_lossy().contains("/shard-");
        let all: Vec<PathBuf> = all.filter(of_shards).collect();
        assert!(bytes_of(&all) <= limit);
    }
    assert_same(&got, &want, "in less room than before");
}

/// `epochs` is a hint.
#[test]
fn a_run_may_go_on_behind_its_last_epoch() {
    let scene = scene();
    let want = stream(&mut scene.here().build().unwrap(), 3);
    for limit in [None, Some(scene.room_for(6))] {
        let mut loader = scene.store(limit).epochs(1).build().unwrap();
        assert_same(&stream(&mut loader, 3), &want, "behind the last epoch");
    }
}

#[test]
fn what_cannot_work_is_refused_with_what_would() {
    let scene = scene();
    let text = |builder| {
        let e = refused(builder);
        (e.option_name(), e.to_string())
    };
    let (option, e) = text(scene.store(Some(scene.room_for(1))));
    assert!(
        option == Some("fetch_limit") && e.contains("give at least"),
        "{e}"
    );
    // The number that it names works.
    let least = scene.room_for(2);
    let (option, e) = text(scene.store(Some(least)).sampler(Sampler::Shuffle));
    assert!(
        option == Some("fetch_limit") && e.contains("shard-shuffle"),
        "{e}"
    );
    let some = scene.room_for(6);
    let (option, e) = text(scene.store(Some(some)).on_error(OnError::Substitute));
    assert!(
        option == Some("on_error") && e.contains("substitutes"),
        "{e}"
    );
    for builder in [
        scene.store(None).memory_limit(1 << 30),
        scene.store(None).recipe(Recipe::full()),
        scene
            .store(None)
            .sampler(Sampler::LargestFirst { classes: 4 }),
    ] {
        let (_, e) = text(builder);
        assert!(e.contains("are in an object store"), "{e}");
    }
    let elsewhere = |text: &str| {
        let source = Source::Store(StoreAddress::parse(text).unwrap(), FetchOptions::default());
        Loader::builder(source).helper(FEATHERLOAD)
    };
    let (_, e) = text(elsewhere("file:///nowhere/at/all"));
    assert!(
        e.contains("file:///nowhere/at/all: has neither a cache (manifest.json), nor tar shards"),
        "{e}"
    );

    // Two limits for one folder.
    let one = scene.store(Some(scene.room_for(8))).build().unwrap();
    let (option, e) = text(scene.store(None));
    assert!(
        option == Some("fetch_limit") && e.contains("another run uses"),
        "{e}"
    );
    drop(one);

    // A folder that somebody else made.
    drop(scene.store(None).build().unwrap());
    let folder = scene.folder();
    fs::remove_file(folder.join(".featherload-fetched")).unwrap();
    fs::write(folder.join("mine"), "precious").unwrap();
    let (option, e) = text(scene.store(None));
    assert!(
        option == Some("fetch_dir") && e.contains("not made by featherload"),
        "{e}"
    );
    assert!(folder.join("mine").exists());
}

/// Names of a manifest become names of files here.
#[test]
fn a_manifest_with_other_names_is_refused() {
    let scene = scene();
    let path = scene.cache.join("manifest.json");
    let manifest = fs::read_to_string(&path).unwrap();
    let begin = manifest.replace("shard-000003", "../../precious");
    // Its checksum, as whoever writes such a manifest would put it.
    let found: serde_json::Value = serde_json::from_str(&begin).unwrap();
    let checksum = found["checksum"].as_str().unwrap().to_owned();
    let zeroed = begin.replace(&checksum, &"0".repeat(32));
    let right = format!(
        "{:032x}",
        twox_hash::XxHash3_128::oneshot(zeroed.as_bytes())
    );
    fs::write(&path, begin.replace(&checksum, &right)).unwrap();
    let e = refused(scene.store(None)).to_string();
    assert!(
        e.contains("the invalid name '../../precious' for shard 3"),
        "{e}"
    );
}

#[test]
fn what_the_store_lacks_or_has_otherwise_is_named() {
    for (what, change) in [
        (
            "does not exist",
            (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        ),
        ("its bytes are not those", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[1000] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("bytes, and the manifest says", |path| {
            fs::write(path, b"short").unwrap();
        }),
    ] {
        let scene = scene();
        let want = stream(&mut scene.here().build().unwrap(), 1);
        let shard = scene.cache.join("shard-000004.tar");
        let whole = fs::read(&shard).unwrap();
        change(&shard);
        let mut loader = scene.store(None).build().unwrap();
        let mut got = Vec::new();
        let mut epoch = loader.epoch();
        let e = loop {
            match epoch.next().unwrap() {
                Ok(batch) => got.extend(rows(&batch)),
                Err(e) => break e,
            }
        };
        drop(epoch);
        assert!(e.is_dataset(), "{e}");
        let e = e.to_string();
        assert!(
            e.contains("/cache/shard-000004.tar") && e.contains(what),
            "{e}"
        );
        // Told again; and once it is mended, the run goes on where it stood.
        assert!(loader.epoch().next().unwrap().is_err());
        fs::write(&shard, whole).unwrap();
        got.extend(stream(&mut loader, 1));
        assert_same(&got, &want, what);
    }
}

#[test]
fn all_processes_go_with_the_loader() {
    let scene = scene();
    let me = std::process::id() as i32;
    let before = fetcher_of(me);
    let loader = scene.store(None).build().unwrap();
    let own: Vec<_> = fetcher_of(me)
        .into_iter()
        .filter(|p| !before.contains(p))
        .collect();
    assert!(!own.is_empty());
    drop(loader);
    let gone = || (!fetcher_of(me).iter().any(|pid| own.contains(pid))).then_some(());
    assert!(wait_for(Duration::from_secs(2), gone).is_some());
}
