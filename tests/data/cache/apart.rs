//! Independent shards: whatever process makes them, in any order and any number of times, the cache
//! is the same as from one process.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use featherload::cache::{BuildOptions, BuildPart, BuildPhase, CacheEncoding, OnBadSample};
use featherload::{Loader, Source};

use super::scene::{all_members, assert_same, built, files, text};
use super::small::verified;
use crate::common::{FEATHERLOAD, Random, data};

/// Shards of three samples each: seven shards of `data(2, 10)`.
fn build_options() -> BuildOptions {
    BuildOptions {
        shard_samples: Some(3),
        ..BuildOptions::default()
    }
}

const SHARDS: u64 = 7;

fn share(src: &Path, dst: &Path, options: BuildOptions, number: u64, of: u64) -> (u64, u64) {
    let report = built(src, dst, options)
        .num_workers(0)
        .part(BuildPart::Share { number, of })
        .build()
        .unwrap();
    assert!(report.complete);
    (report.shards, report.kept_shards)
}

/// A data set with bad images: all of shard 3 of the source's order, and one more.
fn with_bad_ones() -> tempfile::TempDir {
    let src = data(2, 10);
    for name in [
        "class0/009.jpg",
        "class1/000.jpg",
        "class1/001.jpg",
        "class1/007.jpg",
    ] {
        let path = src.path().join(name);
        let whole = fs::read(&path).unwrap();
        // Some have a bad header, some fail when they are decoded.
        let keep = if name.ends_with("7.jpg") {
            whole.len() / 2
        } else {
            9
        };
        fs::write(&path, &whole[..keep]).unwrap();
    }
    src
}

#[test]
fn shares_in_any_order_and_number_are_the_cache_of_one_process() {
    let src = with_bad_ones();
    let mut random = Random(3);
    let jpeg = CacheEncoding::Jpeg { quality: 90 };
    for (encode, shuffle) in [(jpeg, None), (CacheEncoding::Raw, Some(5)), (jpeg, Some(6))] {
        let options = BuildOptions {
            encode,
            shuffle,
            on_error: OnBadSample::Skip,
            ..build_options()
        };
        let dst = tempfile::tempdir().unwrap();
        let one = dst.path().join("one");
        let report = built(src.path(), &one, options).build().unwrap();
        assert_eq!(
            (report.samples, report.skipped, report.shards),
            (16, 4, SHARDS)
        );
        let whole = files(&one);
        assert_eq!(whole.len() as u64, 3 * SHARDS + 2);
        for of in [SHARDS, 3, 10] {
            let to = dst.path().join(format!("of-{of}"));
            let mut shares: Vec<u64> = (0..of).chain([1, 0]).collect();
            for i in (1..shares.len()).rev() {
                shares.swap(i, random.below(i as u64 + 1) as usize);
            }
            let mut made = 0;
            for number in shares {
                let (shards, kept) = share(src.path(), &to, options, number, of);
                made += shards - kept;
            }
            assert_eq!(made, SHARDS, "none twice");
            let finish = || {
                built(src.path(), &to, options)
                    .num_workers(0)
                    .part(BuildPart::Finish)
            };
            let report = finish().build().unwrap();
            assert_eq!((report.samples, report.skipped), (16, 4));
            assert_eq!((report.kept_shards, report.complete), (SHARDS, true));
            assert_same(&whole, &files(&to), &format!("{of} shares, {shuffle:?}"));
            // A second call writes nothing, whatever its part.
            finish().build().unwrap();
            assert_eq!(share(src.path(), &to, options, 0, 1), (SHARDS, SHARDS));
            assert_same(&whole, &files(&to), "again");
        }
        assert!(verified(&one, 2).is_good());
        all_members(&one);
        let source = Source::detect(&one).unwrap();
        let mut loader = Loader::builder(source)
            .num_workers(0)
            .batch_size(4)
            .build()
            .unwrap();
        let rows: usize = loader.epoch().map(|batch| batch.unwrap().len()).sum();
        assert_eq!(rows, 16);
    }
}

/// A shard has the same bytes if no other shard was made. Only its own samples are read.
#[test]
fn a_shard_follows_from_its_own_samples() {
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let (one, alone) = (dst.path().join("one"), dst.path().join("alone"));
    built(src.path(), &one, build_options()).build().unwrap();
    let whole = files(&one);
    // All other samples become bad, with the same lengths and times.
    for id in (0..20).filter(|id| !(6..9).contains(id)) {
        let path = src
            .path()
            .join(format!("class{}/{:03}.jpg", id / 10, id % 10));
        let meta = path.metadata().unwrap();
        fs::write(&path, vec![0xee; meta.len() as usize]).unwrap();
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    }
    assert_eq!(
        share(src.path(), &alone, build_options(), 2, SHARDS),
        (1, 0)
    );
    let got = files(&alone);
    for extension in ["tar", "idx", "json"] {
        let name = format!("shard-000002.{extension}");
        assert!(got[&name] == whole[&name], "{name} differs");
    }
    let others = got.keys().filter(|name| !name.starts_with("shard-000002"));
    let others: Vec<_> = others.collect();
    assert_eq!(others, ["manifest.json"]);
    let e = built(src.path(), &alone, build_options())
        .part(BuildPart::Share {
            number: 3,
            of: SHARDS,
        })
        .build();
    assert!(e.unwrap_err().is_sample());
}

#[test]
fn what_is_missing_is_made_and_nothing_else() {
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let make = || built(src.path(), dst.path(), build_options());
    make().build().unwrap();
    let whole = files(dst.path());
    let gone = |number: u64, extension: &str| {
        let name = format!("shard-{number:06}.{extension}");
        fs::remove_file(dst.path().join(name)).unwrap();
    };
    gone(2, "json");
    gone(5, "tar");
    gone(6, "idx");
    let e = make().part(BuildPart::Finish).build().unwrap_err();
    assert_eq!(e.option_name(), Some("finish"));
    let message = "lacks 2 of 7 shards, the first is shard-000002: make them by `shard` first";
    assert!(e.to_string().contains(message), "{e}");
    let report = make().build().unwrap();
    assert_eq!((report.kept_shards, report.shards), (SHARDS - 2, SHARDS));
    assert_same(&whole, &files(dst.path()), "made again");
    // `force` finds the damage, and makes only the damaged shard again.
    let tar = dst.path().join("shard-000004.tar");
    let mut bytes = fs::read(&tar).unwrap();
    bytes[700] ^= 1;
    fs::write(&tar, bytes).unwrap();
    let report = verified(dst.path(), 1);
    assert_eq!(report.findings.len(), 1);
    let hurt = report.findings[0].sample.as_ref().unwrap();
    assert_eq!((hurt.id, &hurt.key[..]), (None, "00000012_002"));
    assert_eq!(make().build().unwrap().kept_shards, SHARDS);
    assert_eq!(make().force(true).build().unwrap().kept_shards, SHARDS - 1);
    assert_same(&whole, &files(dst.path()), "mended");
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let src = data(1, 8);
    let dst = tempfile::tempdir().unwrap();
    let share_of = |options| {
        let share = BuildPart::Share { number: 0, of: 2 };
        built(src.path(), dst.path(), options)
            .num_workers(0)
            .part(share)
    };
    let e = share_of(BuildOptions::default()).build().unwrap_err();
    assert_eq!(e.option_name(), Some("shard"), "{e}");
    assert!(share_of(build_options()).build().unwrap().complete);
    let other = BuildOptions {
        shard_samples: Some(4),
        ..build_options()
    };
    let e = share_of(other).build().unwrap_err().to_string();
    assert!(
        e.contains("a shard was 3 samples and is now 4 samples"),
        "{e}"
    );
    let e = built(src.path(), dst.path(), BuildOptions::default()).build();
    let e = e.unwrap_err().to_string();
    assert!(
        e.contains("shard_size was none and is now 268435456"),
        "{e}"
    );
    // A build with `on_error: stop` rejects shards with left-out samples.
    fs::write(src.path().join("class0/007.jpg"), "no picture").unwrap();
    let (skip, to) = (
        BuildOptions {
            on_error: OnBadSample::Skip,
            ..build_options()
        },
        tempfile::tempdir().unwrap(),
    );
    let first = BuildPart::Share { number: 0, of: 2 };
    let make = |options| built(src.path(), to.path(), options).num_workers(0);
    make(build_options()).part(first).build().unwrap();
    make(skip)
        .part(BuildPart::Share { number: 1, of: 2 })
        .build()
        .unwrap();
    let e = make(build_options())
        .part(BuildPart::Finish)
        .build()
        .unwrap_err();
    assert_eq!(e.option_name(), Some("on_error"), "{e}");
    assert_eq!(
        make(skip).part(BuildPart::Finish).build().unwrap().skipped,
        1
    );
}

#[test]
fn shares_go_side_by_side_and_a_whole_build_alone() {
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let of = |number| BuildPart::Share { number, of: 3 };
    let mut seen = false;
    let held = built(src.path(), dst.path(), build_options())
        .num_workers(0)
        .part(of(0));
    let report = held.build_watched(&mut |printed| {
        if printed.phase == BuildPhase::Writing && !seen {
            seen = true;
            // Makes the same share and another one while this one is made.
            for number in [0, 1] {
                let beside = built(src.path(), dst.path(), build_options()).num_workers(0);
                assert!(beside.part(of(number)).build().unwrap().complete);
            }
            for part in [BuildPart::All, BuildPart::Finish] {
                let alone = built(src.path(), dst.path(), build_options())
                    .num_workers(0)
                    .part(part);
                let e = alone.build().unwrap_err().to_string();
                assert!(e.contains("another process is building this cache"), "{e}");
            }
        }
        ControlFlow::Continue(())
    });
    assert!(report.unwrap().complete && seen);
    let one = tempfile::tempdir().unwrap();
    built(src.path(), one.path(), build_options())
        .build()
        .unwrap();
    let whole = built(src.path(), dst.path(), build_options());
    let mut seen = false;
    let report = whole.num_workers(0).build_watched(&mut |_| {
        if !std::mem::replace(&mut seen, true) {
            let share = built(src.path(), dst.path(), build_options())
                .num_workers(0)
                .part(of(2));
            let e = share.build().unwrap_err().to_string();
            assert!(e.contains("another process is building this cache"), "{e}");
        }
        ControlFlow::Continue(())
    });
    assert_eq!(report.unwrap().kept_shards, 4);
    assert_same(&files(one.path()), &files(dst.path()), "side by side");
}

fn command(src: &Path, dst: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(FEATHERLOAD);
    command.args(["cache", "build"]).args([src, dst]);
    command.args([
        "--encode",
        "raw",
        "--shard-samples",
        "3",
        "--num-workers",
        "1",
    ]);
    command
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Several processes at the same time, killed at random moments and started again, some twice.
#[test]
fn processes_that_are_killed_leave_a_cache_of_the_same_bytes() {
    let src = data(4, 30);
    let dst = tempfile::tempdir().unwrap();
    let (one, many) = (dst.path().join("one"), dst.path().join("many"));
    let output = command(src.path(), &one, &[]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let mut random = Random(7);
    for round in 0..6 {
        let mut children: Vec<_> = [0, 1, 1, 2]
            .iter()
            .map(|number| {
                let share = format!("{number}/3");
                command(src.path(), &many, &["--shard", &share])
                    .spawn()
                    .unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(30 + random.below(250)));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(round == 0 || many.join("manifest.json").exists());
    }
    let early = command(src.path(), &many, &["--finish"]).output().unwrap();
    let whole = early.status.success();
    assert!(
        whole || text(&early).contains("--finish"),
        "{}",
        text(&early)
    );
    for number in 0..3 {
        let share = format!("{number}/3");
        let output = command(src.path(), &many, &["--shard", &share])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let message = format!("share {number}/3: ");
        assert!(text(&output).contains(&message), "{}", text(&output));
    }
    let output = command(src.path(), &many, &["--finish"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_same(&files(&one), &files(&many), "killed and begun again");
}

#[test]
fn the_command_names_its_flags() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    for (more, code, message) in [
        (&["--shard", "3/3"][..], 2, "is 3 of 3: shares count from 0"),
        (&["--shard", "x"], 2, "use K/N, such as 0/8"),
        (&["--finish"], 2, "lacks 2 of 2 shards"),
        (&["--shard", "0/2", "--finish"], 2, "cannot be used with"),
        (&["--shard", "0/2", "--force"], 2, "cannot go with"),
    ] {
        let output = command(src.path(), dst.path(), more).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(message), "{}", text(&output));
    }
}
