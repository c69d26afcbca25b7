//! A fault that may pass (a missing file, failing storage) is never recorded in a cache, and does
//! not damage an existing cache.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use featherload::cache::{BuildOptions, BuildPhase, BuildReport, CacheBuilder, OnBadSample};
use featherload::index::{KeepIndex, ShardOptions};
use featherload::{Error, FaultKind, Result, Source};
use nix::sys::signal::Signal;
use nix::unistd::{Uid, setfsuid};

use super::scene::{assert_same, build, built, copy, files, foreign_shard, jpeg, raw};
use crate::common::hunt::hunt;
use crate::common::processes::{coordinator_of, send};
use crate::common::{Picture, data, slow_picture};

fn skip() -> BuildOptions {
    BuildOptions {
        on_error: OnBadSample::Skip,
        shard_size: Some(30_000),
        ..copy()
    }
}

/// Builds in this process. Calls `meanwhile` after the headers are read, before the first sample.
fn with(builder: CacheBuilder, meanwhile: impl FnOnce()) -> Result<BuildReport> {
    let mut meanwhile = Some(meanwhile);
    builder.num_workers(0).build_watched(&mut |p| {
        if p.phase == BuildPhase::Writing
            && let Some(meanwhile) = meanwhile.take()
        {
            meanwhile();
        }
        ControlFlow::Continue(())
    })
}

/// Three tars. Their index is not saved.
fn shards(dir: &Path) -> Vec<PathBuf> {
    let tars: Vec<_> = (0..3).map(|n| dir.join(format!("d-{n}.tar"))).collect();
    tars.iter().for_each(|tar| foreign_shard(tar));
    tars
}

fn of_shards(tars: &[PathBuf], to: &Path) -> CacheBuilder {
    let options = ShardOptions {
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    };
    CacheBuilder::new(Source::Shards(tars.to_vec(), options), to, skip())
}

#[test]
fn a_file_that_goes_while_the_cache_is_built_is_not_left_out_for_good() {
    let src = data(2, 6);
    let dir = tempfile::tempdir().unwrap();
    let tars = shards(dir.path());
    let to = dir.path().join("cache");
    let pictures = || built(src.path(), &to, skip());
    let of_tars = || of_shards(&tars, &to);
    type Make<'a> = &'a dyn Fn() -> CacheBuilder;
    let cases: [(&str, PathBuf, u64, Make<'_>); 2] = [
        ("a file", src.path().join("class1/002.jpg"), 12, &pictures),
        ("a shard", tars[1].clone(), 18, &of_tars),
    ];
    for (what, file, samples, make) in cases {
        let aside = dir.path().join("aside");
        let e = with(make(), || fs::rename(&file, &aside).unwrap()).unwrap_err();
        let Error::Sample { fault, .. } = &e else {
            panic!("{what}: {e:?}");
        };
        assert_eq!(fault.kind, FaultKind::Unreadable, "{what}: {e}");
        for part in ["may pass", "build again"] {
            assert!(e.to_string().contains(part), "{what}: {e}");
        }
        fs::rename(&aside, &file).unwrap();
        let report = make().num_workers(0).build().unwrap();
        assert!(report.complete, "{what}");
        assert_eq!((report.samples, report.skipped), (samples, 0), "{what}");
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn a_sample_whose_workers_die_stops_the_build_by_name() {
    let src = data(1, 4);
    let slow = src.path().join("class0/slow.jpg");
    fs::write(&slow, slow_picture(3)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("cache");
    let options = BuildOptions {
        on_error: OnBadSample::Skip,
        ..raw()
    };
    let mut hunting = None;
    let built_then = built(src.path(), &to, options).build_watched(&mut |_| {
        // The coordinator runs, but no worker yet.
        hunting.get_or_insert_with(|| {
            let coordinator = coordinator_of(std::process::id() as i32).unwrap();
            hunt(coordinator, &slow, |worker| {
                send(worker, Signal::SIGSEGV);
                send(worker, Signal::SIGCONT);
                true
            })
        });
        ControlFlow::Continue(())
    });
    let (stop, hunter) = hunting.unwrap();
    stop.store(true, Ordering::Release);
    assert_eq!(hunter.join().unwrap(), 2);
    let e = built_then.unwrap_err();
    let Error::Sample {
        id: 4, path, fault, ..
    } = &e
    else {
        panic!("{e:?}");
    };
    assert_eq!(fault.kind, FaultKind::Quarantined, "{e}");
    assert!(path.ends_with("class0/slow.jpg"), "{e}");
    for part in ["SIGSEGV", "may pass", "build again"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    let report = build(src.path(), &to, options);
    assert_eq!((report.samples, report.skipped), (5, 0));
}

#[test]
fn shards_of_files_that_were_changed_meanwhile_are_not_kept() {
    let src = data(2, 10);
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("cache");
    build(src.path(), &to, skip());
    let whole = files(&to);
    // The first shard is from an earlier call.
    for name in whole.keys() {
        let late = name.starts_with("shard-") && !name.starts_with("shard-000000");
        if late || name == "index.fli" {
            fs::remove_file(to.join(name)).unwrap();
        }
    }
    let picture = src.path().join("class1/009.jpg");
    let was = picture.metadata().unwrap().modified().unwrap();
    let set = |time| {
        let file = fs::File::options().append(true).open(&picture).unwrap();
        file.set_modified(time).unwrap();
    };
    let builder = built(src.path(), &to, skip());
    let e = with(builder, || {
        set(was + std::time::Duration::from_secs(1));
    })
    .unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("changed while"),
        "{e}"
    );
    let left: Vec<_> = files(&to).into_keys().collect();
    let kept = ["idx", "json", "tar"].map(|e| format!("shard-000000.{e}"));
    assert_eq!(left[0], "manifest.json");
    assert_eq!(left[1..], kept, "what this call made is gone");
    // With the files as they were the build continues after the first shard.
    set(was);
    let report = build(src.path(), &to, skip());
    assert_eq!(report.kept_shards, 1);
    assert_same(&whole, &files(&to), "gone on");
}

#[test]
fn what_changed_files_left_out_is_listed_nowhere() {
    let src = tempfile::tempdir().unwrap();
    let small = BuildOptions {
        shard_size: Some(4096),
        ..skip()
    };
    for (n, name) in [(1, "a.jpg"), (2, "b.jpg")] {
        fs::write(src.path().join(name), Picture::rgb(90, 80, n).encode()).unwrap();
    }
    let dst = tempfile::tempdir().unwrap();
    assert_eq!(build(src.path(), dst.path(), small).shards, 2);
    let whole = files(dst.path());
    // Loses the second shard. Its sample is bad during this call only.
    fs::remove_file(dst.path().join("shard-000001.tar")).unwrap();
    let picture = src.path().join("b.jpg");
    let (good, meta) = (fs::read(&picture).unwrap(), picture.metadata().unwrap());
    let put = |bytes: &[u8]| {
        fs::write(&picture, bytes).unwrap();
        let file = fs::File::options().append(true).open(&picture).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    };
    let e = with(built(src.path(), dst.path(), small), || {
        fs::write(&picture, "being copied").unwrap();
    })
    .unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("changed while"),
        "{e}"
    );
    let first = fs::read(dst.path().join("shard-000000.json")).unwrap();
    assert!(first == whole["shard-000000.json"], "b.jpg is left out");
    put(&good);
    let report = build(src.path(), dst.path(), small);
    assert_eq!((report.kept_shards, report.skipped), (1, 0));
    assert_same(&whole, &files(dst.path()), "as the files were");
}

#[test]
fn files_that_cannot_be_looked_at_at_the_end_cost_no_shard() {
    let src = data(2, 10);
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("cache");
    build(src.path(), &to, skip());
    let whole = files(&to);
    fs::remove_dir_all(&to).unwrap();
    fs::create_dir(&to).unwrap();
    let rights = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    // Any user may write to the cache, so that the build can end.
    rights(dir.path(), 0o777);
    rights(&to, 0o777);
    let me = Uid::effective();
    let mut is_closed = false;
    let built_then = built(src.path(), &to, skip())
        .num_workers(0)
        .build_watched(&mut |p| {
            if p.phase == BuildPhase::Writing && p.done == p.samples && !is_closed {
                is_closed = true;
                rights(src.path(), 0);
                // Root ignores permissions, so this thread uses another user for file access.
                if me.is_root() {
                    setfsuid(Uid::from_raw(65534));
                }
            }
            ControlFlow::Continue(())
        });
    setfsuid(me);
    rights(src.path(), 0o755);
    let e = built_then.unwrap_err();
    assert!(is_closed && matches!(e, Error::Io { .. }), "{e:?}");
    for part in ["look at", "000.jpg", "Permission denied"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    let shards = whole.keys().filter(|n| n.ends_with(".tar")).count() as u64;
    assert!(shards >= 3);
    assert_eq!(build(src.path(), &to, skip()).kept_shards, shards);
    assert_same(&whole, &files(&to), "every shard was kept");
}

#[test]
fn a_source_that_is_away_costs_no_cache_whatever_force_says() {
    let src = data(2, 6);
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("cache");
    build(src.path(), &to, skip());
    let whole = files(&to);
    let forced = |src: &Path| {
        let forced = built(src, &to, skip()).force(true).build();
        forced.unwrap_err()
    };
    // Every file of the source is missing, as if its disk were not mounted.
    let list = dir.path().join("list.txt");
    fs::write(&list, "a/000.jpg 0\na/001.jpg 1\n").unwrap();
    let e = forced(&list);
    assert!(e.is_usage(), "{e:?}");
    for part in ["none of 2 samples", "No such file"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    assert_same(&whole, &files(&to), "a source that is away");
    // One file fails with a fault that may pass: reading the memory of a process at address 0 is an
    // I/O error.
    let last = src.path().join("class1/005.jpg");
    fs::remove_file(&last).unwrap();
    symlink("/proc/self/mem", &last).unwrap();
    let e = forced(src.path());
    let Error::Sample { id: 11, fault, .. } = &e else {
        panic!("{e:?}");
    };
    assert_eq!(fault.kind, FaultKind::Unreadable, "{e}");
    assert!(e.to_string().contains("may pass"), "{e}");
    assert_same(&whole, &files(&to), "storage that fails");
}

#[test]
fn a_build_whose_coordinator_dies_names_the_same_command() {
    let src = data(2, 60);
    let dst = tempfile::tempdir().unwrap();
    let mut killed = false;
    let e = built(src.path(), dst.path(), raw())
        .build_watched(&mut |progress| {
            if progress.phase == BuildPhase::Writing && !killed {
                let coordinator = coordinator_of(std::process::id() as i32).unwrap();
                killed = send(coordinator, Signal::SIGKILL);
            }
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert!(killed && e.is_worker(), "{e}");
    assert!(
        e.to_string().contains("a cache build by the same command"),
        "{e}"
    );
}

/// The link is followed once, before the check that it does not lead into the source.
#[test]
fn a_destination_link_that_is_turned_meanwhile_does_not_lead_into_the_source() {
    let src = data(2, 6);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    build(src.path(), &at("source"), copy());
    let whole = files(&at("source"));
    let link = at("link");
    for (name, place) in [
        ("folder", link.clone()),
        ("store", format!("file://{}", link.display()).into()),
    ] {
        fs::create_dir(at(name)).unwrap();
        symlink(at(name), &link).unwrap();
        let mut builder = built(&at("source"), &place, jpeg(50)).force(true);
        if name == "store" {
            builder = builder.stage_dir(at("stages"));
        }
        let report = with(builder, || {
            fs::remove_file(&link).unwrap();
            symlink(at("source"), &link).unwrap();
        });
        assert!(report.unwrap().complete, "{name}");
        assert_same(&whole, &files(&at("source")), name);
        assert!(at(name).join("manifest.json").is_file(), "{name}");
        fs::remove_file(&link).unwrap();
    }
}
