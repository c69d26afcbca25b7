//! Caches that are built into an object store: the bytes are those of a build in a folder,
//! whoever dies and however often it is begun; what is there is never replaced by other bytes.
//!
//! The store is a folder here (`file://`); tests of the Python package have S3 and a network that
//! fails.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use featherload::cache::{
    BuildOptions, BuildPart, BuildPhase, BuildReport, CacheBuilder, CacheEncoding, OnBadSample,
};
use featherload::{Error, Source};
use nix::sys::signal::Signal;

use crate::cache::scene::build;
use crate::common::processes::{children, send, wait_for};
use crate::common::{FEATHERLOAD, data};

/// Samples of a shard, and shards, of `data(2, 12)`.
const EACH: u64 = 3;
const SHARDS: u64 = 8;

/// No wait here takes longer, or it hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// A source, the cache of it in a folder, and where a store is.
struct Scene {
    src: tempfile::TempDir,
    dir: tempfile::TempDir,
    options: BuildOptions,
    want: BTreeMap<String, Vec<u8>>,
}

fn build_options() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Jpeg { quality: 90 },
        shard_samples: Some(EACH),
        ..BuildOptions::default()
    }
}

fn scene(options: BuildOptions) -> Scene {
    scene_of(data(2, 12), options)
}

fn scene_of(src: tempfile::TempDir, options: BuildOptions) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("here");
    build(src.path(), &here, options);
    Scene {
        want: files(&here),
        src,
        dir,
        options,
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

impl Scene {
    fn bucket(&self) -> PathBuf {
        self.dir.path().join("bucket/train")
    }

    fn address(&self) -> String {
        format!("file://{}", self.bucket().display())
    }

    fn stages(&self) -> PathBuf {
        self.dir.path().join("stages")
    }

    fn builder(&self) -> CacheBuilder {
        self.builder_of(self.options)
    }

    fn builder_of(&self, options: BuildOptions) -> CacheBuilder {
        CacheBuilder::new(
            Source::detect(self.src.path()).unwrap(),
            self.address(),
            options,
        )
        .helper(FEATHERLOAD)
        .stage_dir(self.stages())
        .num_workers(1)
    }

    fn build(&self) -> BuildReport {
        let report = self.builder().build().unwrap();
        assert!(report.complete);
        report
    }

    fn share(&self, number: u64, of: u64) -> BuildReport {
        let part = BuildPart::Share { number, of };
        self.builder().part(part).build().unwrap()
    }

    /// That the store has the cache, byte by byte, and the stage is gone.
    fn check(&self) {
        let there = files(&self.bucket());
        let names = |of: &BTreeMap<String, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&there), names(&self.want));
        for (name, bytes) in &self.want {
            assert!(there[name] == *bytes, "{name}");
        }
        assert_eq!(self.stages_left(), 0);
    }

    fn stages_left(&self) -> usize {
        fs::read_dir(self.stages()).map_or(0, Iterator::count)
    }

    /// The command line's build, while it runs.
    fn started(&self) -> std::process::Child {
        Command::new(FEATHERLOAD)
            .args(["cache", "build"])
            .arg(self.src.path())
            .arg(self.address())
            .args(["--encode", "jpeg:90", "--shard-samples", &EACH.to_string()])
            .args(["--num-workers", "1", "--stage-dir"])
            .arg(self.stages())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn refused(builder: CacheBuilder) -> String {
    let e: Error = builder.build().expect_err("no refusal");
    assert!(e.is_usage(), "{e}");
    e.to_string()
}

fn sender_of(pid: i32) -> Option<i32> {
    let all = children(pid).into_iter();
    let mut senders = all.filter(|p| p.name == "featherload-se");
    senders.next().map(|p| p.pid)
}

#[test]
fn the_objects_are_the_files_of_a_build_in_a_folder() {
    for options in [
        build_options(),
        BuildOptions {
            shard_samples: None,
            ..build_options()
        },
        BuildOptions {
            shard_samples: None,
            shard_size: Some(100_000),
            shuffle: Some(3),
            encode: CacheEncoding::Copy,
            ..build_options()
        },
    ] {
        let scene = scene(options);
        let report = scene.build();
        let shards = report.shards;
        let sent = report.sent.unwrap();
        assert_eq!(sent.shards_up, shards);
        // Three of each shard; the index. The manifest twice: as begun, and as ended.
        assert!(sent.objects >= 3 * shards + 2, "{sent:?}");
        assert_eq!((sent.retries, sent.deaths), (0, 0));
        scene.check();
        // Once more nothing is done.
        let again = scene.build();
        assert_eq!(again.kept_shards, shards);
        assert_eq!(again.samples, report.samples);
        assert_eq!(again.sent.unwrap().objects, 0);
        scene.check();
        // Nor where the manifest alone is lost in the midst of its end.
        let manifest = scene.bucket().join("manifest.json");
        fs::remove_file(&manifest).unwrap();
        let message = refused(scene.builder());
        assert!(message.contains("holds shard-000000.json"), "{message}");
    }
}

/// Those that wait for the store, one behind them, and one that is written.
#[test]
fn the_stage_holds_a_few_shards_at_a_time() {
    let scene = scene(build_options());
    let tars = || {
        let stages = fs::read_dir(scene.stages()).into_iter().flatten().flatten();
        let names = stages.flat_map(|stage| files(&stage.path()).into_keys());
        names.filter(|name| name.ends_with(".tar")).count()
    };
    let mut most = 0;
    let report = scene.builder().build_watched(&mut |_| {
        most = most.max(tars());
        ControlFlow::Continue(())
    });
    assert!(report.unwrap().complete);
    assert!((1..=4).contains(&most), "{most} of {SHARDS} at a time");
    scene.check();
}

/// A shard that is larger than a part goes there in parts.
#[test]
fn a_large_shard_goes_there_in_parts() {
    let options = BuildOptions {
        shard_samples: Some(1000),
        encode: CacheEncoding::Raw,
        ..BuildOptions::default()
    };
    let scene = scene_of(data(2, 60), options);
    let tar = &scene.want["shard-000000.tar"];
    assert!(tar.len() > 9 << 20, "{}", tar.len());
    scene.build();
    scene.check();
}

/// Wherever it is broken off, the same call goes on and ends with the same bytes.
#[test]
fn a_build_that_is_broken_off_goes_on() {
    for options in [
        build_options(),
        BuildOptions {
            shard_samples: None,
            ..build_options()
        },
    ] {
        let scene = scene(options);
        for most in 1..SHARDS {
            let mut builder = scene.builder();
            if most == 4 {
                // What was built and did not go there is lost.
                let _ = fs::remove_dir_all(scene.stages());
            }
            if most % 2 == 0 {
                builder = builder.num_workers(0);
            }
            let report = builder.build_watched(&mut |progress| match progress.phase
                == BuildPhase::Writing
                && progress.shards >= most
            {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            let report = report.unwrap();
            assert!(!report.complete);
            assert!(!scene.bucket().join("index.fli").exists());
        }
        let report = scene.build();
        assert!(report.kept_shards >= SHARDS / 2, "{report:?}");
        scene.check();
    }
}

#[test]
fn killed_senders_are_replaced_and_a_killed_build_goes_on() {
    let scene = scene(build_options());
    let mut run = scene.started();
    let pid = run.id() as i32;
    let mut killed = 0;
    // One that is killed in the hand-shake is a helper that does not work.
    let begun = scene.bucket().join("manifest.json");
    wait_for(LIMIT, || begun.exists().then_some(())).unwrap();
    while run.try_wait().unwrap().is_none() {
        if let Some(sender) = sender_of(pid).filter(|_| killed < 3) {
            send(sender, Signal::SIGKILL);
            killed += 1;
            let gone = || (sender_of(pid) != Some(sender)).then_some(());
            wait_for(LIMIT, gone).unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    let out = run.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{message}");
    assert!(killed > 0, "{message}");
    assert!(message.contains("sender died"), "{message}");
    // What a killed sender was writing lies beside.
    let left = files(&scene.bucket());
    for name in left.keys().filter(|name| name.contains('#')) {
        fs::remove_file(scene.bucket().join(name)).unwrap();
    }
    scene.check();

    fs::remove_dir_all(scene.bucket()).unwrap();
    for shards in [1, 3, 5] {
        let mut run = scene.started();
        let last = scene.bucket().join(format!("shard-{shards:06}.json"));
        let there = || (last.exists() || run.try_wait().unwrap().is_some()).then_some(());
        wait_for(LIMIT, there).unwrap();
        let _ = run.kill();
        run.wait().unwrap();
        // Whoever it started ends too, and lets go of the stage.
    }
    let report = scene.build();
    assert!(report.complete);
    let left = files(&scene.bucket());
    for name in left.keys().filter(|name| name.contains('#')) {
        fs::remove_file(scene.bucket().join(name)).unwrap();
    }
    scene.check();
}

#[test]
fn other_bytes_and_other_options_are_refused_and_named() {
    let scene = scene(build_options());
    scene.build();
    let other = BuildOptions {
        encode: CacheEncoding::Jpeg { quality: 80 },
        ..scene.options
    };
    let message = refused(scene.builder_of(other));
    assert!(
        message.contains("encode was jpeg:90 and is now jpeg:80")
            && message.contains(&scene.address()),
        "{message}"
    );
    scene.check();
    // By force it is replaced, and what it had more of is removed.
    let fewer = BuildOptions {
        shard_samples: Some(5),
        ..other
    };
    let report = scene.builder_of(fewer).force(true).build().unwrap();
    assert_eq!(report.shards, 5);
    let here = scene.dir.path().join("other");
    build(scene.src.path(), &here, fewer);
    assert!(files(&scene.bucket()) == files(&here));
    scene.builder().force(true).build().unwrap();
    scene.check();
    // An unfinished one names no shards, and those are removed too.
    fs::remove_dir_all(scene.bucket()).unwrap();
    scene.share(0, 1);
    assert_eq!(files(&scene.bucket()).len() as u64, 3 * SHARDS + 1);
    scene.builder_of(fewer).force(true).build().unwrap();
    assert!(files(&scene.bucket()) == files(&here));

    // An object that is no build's stays.
    fs::remove_dir_all(scene.bucket()).unwrap();
    fs::create_dir_all(scene.bucket()).unwrap();
    let foreign = scene.bucket().join("shard-000002.idx");
    fs::write(&foreign, "foreign").unwrap();
    let message = refused(scene.builder());
    assert!(
        message.contains("shard-000002.idx") && message.contains("exists with other bytes"),
        "{message}"
    );
    assert_eq!(fs::read(&foreign).unwrap(), b"foreign");
    assert!(!files(&scene.bucket()).contains_key("index.fli"));
    // What was built is kept, and used.
    fs::remove_file(&foreign).unwrap();
    assert!(scene.build().kept_shards > 0);
    scene.check();

    let web = CacheBuilder::new(
        Source::detect(scene.src.path()).unwrap(),
        "https://host.invalid/train",
        scene.options,
    );
    let message = refused(web.helper(FEATHERLOAD).stage_dir(scene.stages()));
    assert!(message.contains("takes no objects"), "{message}");
    let inside = format!("file://{}/cache", scene.src.path().display());
    let within = CacheBuilder::new(
        Source::detect(scene.src.path()).unwrap(),
        inside,
        scene.options,
    );
    let message = refused(within.helper(FEATHERLOAD).stage_dir(scene.stages()));
    assert!(message.contains("lies inside the source"), "{message}");
    let folder = CacheBuilder::new(
        Source::detect(scene.src.path()).unwrap(),
        scene.dir.path().join("folder"),
        scene.options,
    );
    let message = refused(folder.stage_dir(scene.stages()));
    assert!(message.contains("stage_dir"), "{message}");
}

/// Samples that are left out behind the last complete shard are in its manifest in the end.
#[test]
fn what_is_left_out_at_the_end_is_told_in_the_last_shard() {
    let src = data(2, 12);
    for name in ["class1/010.jpg", "class1/011.jpg"] {
        fs::write(src.path().join(name), b"no picture").unwrap();
    }
    let options = BuildOptions {
        shard_samples: None,
        on_error: OnBadSample::Skip,
        ..build_options()
    };
    let scene = scene_of(src, options);
    let broken = scene
        .builder()
        .build_watched(&mut |progress| match progress.phase == BuildPhase::Writing
            && progress.done >= 22
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
    drop(broken);
    let report = scene.build();
    assert_eq!(report.skipped, 2);
    scene.check();
}

/// Shares by machines that share nothing but the store.
#[test]
fn shares_need_nothing_but_the_store() {
    let scene = scene(build_options());
    let finish = || scene.builder().part(BuildPart::Finish);
    for number in [2, 0, 3] {
        let report = scene.share(number, 4);
        assert!(report.complete);
        assert_eq!((report.shards, report.kept_shards), (2, 0));
        // The next one is another machine.
        assert_eq!(scene.stages_left(), 0);
    }
    let message = refused(finish());
    assert!(
        message.contains("lacks 2 of 8 shards, the first is shard-000002")
            && message.contains("file://"),
        "{message}"
    );
    // Again, and of another number of shares: what is there stays.
    assert_eq!(scene.share(2, 4).kept_shards, 2);
    let report = scene.share(0, 2);
    assert_eq!((report.shards, report.kept_shards), (4, 2));
    assert_eq!(report.sent.unwrap().objects, 6);
    let other = BuildOptions {
        shuffle: Some(1),
        ..scene.options
    };
    let part = BuildPart::Share { number: 1, of: 4 };
    let message = refused(scene.builder_of(other).part(part));
    assert!(
        message.contains("shuffle was none and is now 1"),
        "{message}"
    );
    let report = finish().build().unwrap();
    assert_eq!((report.shards, report.kept_shards), (SHARDS, SHARDS));
    assert_eq!(report.sent.unwrap().shards_up, SHARDS);
    scene.check();
    assert_eq!(finish().build().unwrap().sent.unwrap().objects, 0);
    let report = scene.share(1, 4);
    assert_eq!((report.samples, report.shards), (6, 2));
    scene.check();
}

/// Nobody makes the share of a killed process again.
#[test]
fn the_stage_of_a_share_goes_with_the_build_that_completes_the_cache() {
    for part in [BuildPart::All, BuildPart::Finish] {
        let scene = scene(build_options());
        let share = scene.builder().part(BuildPart::Share { number: 0, of: 2 });
        let broken_off = share.build_watched(&mut |progress| match progress.phase {
            BuildPhase::Writing => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert!(!broken_off.unwrap().complete);
        assert_eq!(scene.stages_left(), 1);
        let foreign = scene.stages().join("foreign");
        fs::create_dir(&foreign).unwrap();
        if part == BuildPart::Finish {
            // By other shares: none has the stage of the first.
            (0..4).for_each(|number| assert!(scene.share(number, 4).complete));
        }
        assert!(scene.builder().part(part).build().unwrap().complete);
        fs::remove_dir(foreign).unwrap();
        scene.check();
    }
}

/// All shares at a time, some of them twice.
#[test]
fn shares_may_be_made_at_a_time() {
    let scene = scene(build_options());
    thread::scope(|scope| {
        for number in [0, 1, 2, 3, 1, 2] {
            let scene = &scene;
            scope.spawn(move || assert!(scene.share(number, 4).complete));
        }
    });
    scene.build();
    scene.check();
}

#[test]
fn a_source_that_changes_meanwhile_leaves_nothing_of_it() {
    let scene = scene(build_options());
    let mut changed = false;
    let e = scene
        .builder()
        .build_watched(&mut |progress| {
            if progress.phase == BuildPhase::Writing && progress.shards >= 2 && !changed {
                changed = true;
                let path = scene.src.path().join("class0/000.jpg");
                let file = fs::File::options().append(true).open(path).unwrap();
                let past = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
                file.set_modified(past).unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert!(e.to_string().contains("changed while"), "{e}");
    let there = files(&scene.bucket());
    assert_eq!(there.keys().collect::<Vec<_>>(), ["manifest.json"]);
    // With what they are now the options are the same, and no shard is lost.
    scene.build();
}

/// Ctrl-C: what is there is told, and the same command goes on.
#[test]
fn an_interrupted_command_says_what_is_there() {
    let scene = scene(build_options());
    let run = scene.started();
    let first = scene.bucket().join("shard-000000.json");
    wait_for(LIMIT, || first.exists().then_some(())).unwrap();
    send(run.id() as i32, Signal::SIGINT);
    let out = run.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() {
        assert_eq!(out.status.code(), Some(130), "{message}");
        assert!(message.contains("shards are there"), "{message}");
        assert!(message.contains("the same command continues"), "{message}");
    }
    scene.build();
    scene.check();
}
