//! However a build ends, no shard is incomplete, and the same build continues to the same bytes.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use featherload::Error;
use featherload::cache::{BuildOptions, BuildPhase, OnBadSample};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::scene::{
    assert_same, build, built, check_whole_shards, command, copy, files, text, wait_for_shard,
};
use crate::common::{Random, data};

#[test]
fn a_complete_cache_is_left_alone_and_a_damaged_one_is_completed() {
    let src = data(2, 10);
    let small = || BuildOptions {
        shard_size: Some(40_000),
        ..copy()
    };
    let dst = tempfile::tempdir().unwrap();
    fs::write(dst.path().join("notes.txt"), "mine").unwrap();
    let report = build(src.path(), dst.path(), small());
    assert!(report.shards >= 3);
    let whole = files(dst.path());
    assert_eq!(whole["notes.txt"], b"mine");
    let times = |folder: &Path| -> Vec<_> {
        let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap());
        let mut times: Vec<_> = entries
            .map(|e| (e.file_name(), e.metadata().unwrap().modified().unwrap()))
            .collect();
        times.sort();
        times
    };
    let before = times(dst.path());
    let again = build(src.path(), dst.path(), small());
    assert_eq!(again.kept_samples, 20);
    assert_eq!(times(dst.path()), before, "nothing was written");

    let at = |name: &str| dst.path().join(name);
    let broken: [(&str, &dyn Fn(), u64); 7] = [
        (
            "a tar is gone",
            &|| fs::remove_file(at("shard-000001.tar")).unwrap(),
            1,
        ),
        (
            "a tar is cut",
            &|| {
                let file = fs::File::options()
                    .write(true)
                    .open(at("shard-000001.tar"))
                    .unwrap();
                file.set_len(700).unwrap();
            },
            1,
        ),
        (
            "a manifest is gone",
            &|| fs::remove_file(at("shard-000000.json")).unwrap(),
            0,
        ),
        (
            "a manifest is damaged",
            &|| {
                let mut text = whole["shard-000002.json"].clone();
                let middle = text.len() / 2;
                text[middle] ^= 1;
                fs::write(at("shard-000002.json"), text).unwrap();
            },
            2,
        ),
        (
            "the index is gone",
            &|| fs::remove_file(at("index.fli")).unwrap(),
            report.shards,
        ),
        (
            "an idx is damaged",
            &|| fs::write(at("shard-000000.idx"), "v1.2 0\n").unwrap(),
            report.shards,
        ),
        (
            "a FIFO is in the place of an idx",
            &|| {
                fs::remove_file(at("shard-000000.idx")).unwrap();
                mkfifo(&at("shard-000000.idx"), Mode::S_IRWXU).unwrap();
            },
            report.shards,
        ),
    ];
    for (what, damage, kept) in broken {
        damage();
        let report = build(src.path(), dst.path(), small());
        assert_eq!(report.kept_shards, kept, "{what}");
        assert_same(&whole, &files(dst.path()), what);
    }
}

#[test]
fn without_a_size_there_are_eight_shards_whoever_makes_them_and_however_often_it_ends() {
    let src = data(2, 10); // two places a shard
    // Bad samples at the first place of a shard, at the last one, and at both places of one shard.
    for id in [2, 9, 12, 13] {
        let bad = format!("class{}/{:03}.jpg", id / 10, id % 10);
        fs::write(src.path().join(bad), b"").unwrap();
    }
    let options = BuildOptions {
        shard_size: None,
        on_error: OnBadSample::Skip,
        ..copy()
    };
    let dst = tempfile::tempdir().unwrap();
    let at = |name: &str| dst.path().join(name);
    let report = build(src.path(), &at("two"), options);
    // One shard has no sample.
    assert_eq!((report.samples, report.skipped, report.shards), (16, 4, 9));
    let whole = files(&at("two"));
    for workers in [0, 1, 5] {
        let to = at(&workers.to_string());
        built(src.path(), &to, options)
            .num_workers(workers)
            .build()
            .unwrap();
        assert_same(&whole, &files(&to), &to.display().to_string());
    }
    for number in (0..report.shards).rev() {
        fs::remove_file(at("two").join(format!("shard-{number:06}.json"))).unwrap();
        assert_eq!(build(src.path(), &at("two"), options).kept_shards, number);
        assert_same(&whole, &files(&at("two")), &format!("from {number} on"));
    }
    // A given size is used, however few shards it makes.
    let given = BuildOptions {
        shard_size: Some(256 << 20),
        ..options
    };
    assert_eq!(build(src.path(), &at("given"), given).shards, 1);
    let e = built(src.path(), &at("two"), given).build().unwrap_err();
    let changed = "a shard was 2 samples and is now as many samples as fit";
    assert!(e.to_string().contains(changed), "{e}");
}

#[test]
fn a_shard_that_cannot_be_read_ends_the_build_and_nothing_is_removed() {
    use std::os::unix::fs::symlink;
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: Some(40_000),
        ..copy()
    };
    let to = dst.path().join("cache");
    let shards = build(src.path(), &to, options).shards;
    assert!(shards >= 3);
    let whole = files(&to);
    // A link to itself is a system error other than "no such file", for root too.
    for name in ["shard-000001.json", "shard-000001.tar"] {
        let path = to.join(name);
        fs::remove_file(&path).unwrap();
        symlink(name, &path).unwrap();
        let e = built(src.path(), &to, options).build().unwrap_err();
        assert!(matches!(e, Error::Io { .. }), "{e:?}");
        assert!(e.to_string().contains(name), "{e}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, &whole[name]).unwrap();
        assert_same(&whole, &files(&to), name);
    }
    // A shard on another disk counts as a shard.
    let (tar, elsewhere) = (to.join("shard-000001.tar"), dst.path().join("elsewhere"));
    fs::rename(&tar, &elsewhere).unwrap();
    symlink(&elsewhere, &tar).unwrap();
    assert_eq!(build(src.path(), &to, options).kept_shards, shards);
    assert!(tar.symlink_metadata().unwrap().is_symlink());
    assert_same(&whole, &files(&to), "a link");
    // That disk is not mounted. Neither its shard nor those after it are made again.
    let aside = dst.path().join("aside");
    for name in ["shard-000001.tar", "shard-000001.json"] {
        let file = to.join(name);
        if !file.is_symlink() {
            fs::rename(&file, &elsewhere).unwrap();
            symlink(&elsewhere, &file).unwrap();
        }
        fs::rename(&elsewhere, &aside).unwrap();
        let e = built(src.path(), &to, options).build().unwrap_err();
        assert!(e.is_usage(), "{e:?}");
        for part in [name, "elsewhere", "mount"] {
            assert!(e.to_string().contains(part), "{e}");
        }
        fs::remove_file(&file).unwrap();
        fs::rename(&aside, &file).unwrap();
        assert_same(&whole, &files(&to), name);
    }
}

#[test]
fn a_watched_build_may_be_ended_and_goes_on() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: Some(30_000),
        ..copy()
    };
    let fresh = dst.path().join("fresh");
    build(src.path(), &fresh, options);
    let to = dst.path().join("ended");
    let mut calls = 0;
    let report = built(src.path(), &to, options)
        .build_watched(&mut |p| {
            calls += 1;
            assert_eq!(p.samples, 40);
            ControlFlow::Break(())
        })
        .unwrap();
    assert!(!report.complete && calls == 1);
    // Nothing was written, so no folder is left.
    assert!(!to.exists());
    let report = build(src.path(), &to, options);
    assert_eq!(report.samples, 40);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn a_build_may_be_ended_in_each_phase_and_nothing_is_removed_before_it_writes() {
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: Some(40_000),
        ..copy()
    };
    build(src.path(), dst.path(), options);
    let whole = files(dst.path());
    // Reads the whole cache, then builds it again in another order.
    let anew = BuildOptions {
        shuffle: Some(5),
        ..options
    };
    for (phase, done, options) in [
        (BuildPhase::Checking, 0, options),
        (BuildPhase::Checking, 1, options),
        (BuildPhase::ReadingHeaders, 0, anew),
        // The build is ready to write.
        (BuildPhase::ReadingHeaders, 20, anew),
    ] {
        let mut calls = Vec::new();
        let builder = built(src.path(), dst.path(), options).force(true);
        let report = builder.build_watched(&mut |p| {
            calls.push((p.phase, p.done));
            assert_eq!(p.samples, 20);
            match p.phase == phase && p.done >= done {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        let report = report.unwrap();
        assert!(!report.complete, "{phase:?}");
        assert_eq!(calls.last().unwrap().0, phase, "{calls:?}");
        assert!(report.samples < 20, "{report:?}");
        assert_same(&whole, &files(dst.path()), &format!("{phase:?}"));
    }
    let mut phases = Vec::new();
    let builder = built(src.path(), dst.path(), anew).force(true);
    let report = builder.build_watched(&mut |p| {
        if phases.last() != Some(&p.phase) {
            phases.push(p.phase);
        }
        ControlFlow::Continue(())
    });
    assert!(report.unwrap().complete);
    let all = [
        BuildPhase::Checking,
        BuildPhase::ReadingHeaders,
        BuildPhase::Writing,
    ];
    assert_eq!(phases, all);
}

#[test]
fn a_killed_builder_goes_on_to_the_same_bytes() {
    let kills: u64 = std::env::var("FEATHERLOAD_KILLS").map_or(6, |n| n.parse().unwrap());
    let src = data(4, 40);
    let dst = tempfile::tempdir().unwrap();
    let fresh = dst.path().join("fresh");
    let began = Instant::now();
    let output = command(src.path(), &fresh).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let whole_build = began.elapsed();
    let expected = files(&fresh);
    let shards = check_whole_shards(&fresh);
    assert!(shards > 4, "{shards}");
    let mut random = Random(17);
    let (mut left, mut kept, mut middle) = (0, 0, 0);
    let to = dst.path().join("killed");
    let mut rounds = 0;
    // Runs more rounds if no kill came in the middle, which happens on a busy machine.
    while rounds < kills || (middle == 0 && rounds < kills + 20) {
        // Starts from nothing if the build before was complete.
        if to.join("index.fli").exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        let complete = check_whole_shards(&to);
        let mut child = command(src.path(), &to).spawn().unwrap();
        // Kills at a random moment, in every second round after a shard of this call is complete.
        if rounds % 2 == 0 {
            let behind = complete + random.below((shards - complete).div_ceil(2).max(1));
            wait_for_shard(&mut child, &to, behind);
            std::thread::sleep(Duration::from_micros(random.below(2000)));
        } else {
            let micros = whole_build.as_micros() as u64;
            std::thread::sleep(Duration::from_micros(random.below(micros)));
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        rounds += 1;
        if to.exists() {
            let complete = check_whole_shards(&to);
            kept += complete;
            middle += u64::from(complete > 0 && complete < shards);
            let temporary = |n: &String| n.starts_with(".featherload-") && !n.ends_with("-lock");
            left += files(&to).keys().filter(|n| temporary(n)).count();
        }
        if rounds % 2 == 0 || rounds >= kills {
            let output = command(src.path(), &to).output().unwrap();
            assert!(output.status.success(), "{}", text(&output));
            assert_same(&expected, &files(&to), &format!("after {rounds} kills"));
        }
    }
    assert!(
        kept > 0 && middle > 0,
        "{rounds} kills, and none of them hit the middle of a build"
    );
    println!(
        "{rounds} kills, {middle} of them in the middle: {kept} shards kept, {left} temporary \
         files left"
    );
}

#[test]
fn ctrl_c_leaves_complete_shards_and_says_130() {
    let src = data(4, 60);
    let dst = tempfile::tempdir().unwrap();
    let (fresh, to) = (dst.path().join("fresh"), dst.path().join("to"));
    assert!(command(src.path(), &fresh).status().unwrap().success());
    let mut child = command(src.path(), &to).spawn().unwrap();
    wait_for_shard(&mut child, &to, 1);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(check_whole_shards(&to) >= 2);
    assert!(!to.join("index.fli").exists());
    let output = command(src.path(), &to).arg("--json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["report"]["kept_shards"].as_u64().unwrap() >= 2);
    assert_same(&files(&fresh), &files(&to), "gone on");
}

#[test]
fn ctrl_c_ends_a_build_that_has_not_begun_to_write() {
    let src = data(1, 1);
    // There are enough headers that reading them takes a while.
    let list = src.path().join("list.txt");
    fs::write(&list, "class0/000.jpg 0\n".repeat(60_000)).unwrap();
    let to = src.path().join("cache");
    // A signal before the run handles it ends the process at once, without output.
    for patience in [30, 100, 300, 900] {
        let mut child = command(&list, &to).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !to.join(".featherload-lock").exists() {
            assert!(child.try_wait().unwrap().is_none() && Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(patience));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        let message = text(&output);
        assert_eq!(output.status.code(), Some(130), "{message}");
        assert!(!message.contains(" 0 samples"), "{message}");
        if message.contains("before any shard was written") {
            assert!(!to.exists(), "the folder was made for nothing");
            return;
        }
        let left: Vec<_> = files(&to).into_keys().collect();
        assert!(left.iter().all(|n| n == ".featherload-lock"), "{left:?}");
        fs::remove_dir_all(&to).unwrap();
    }
    panic!("no build was ended in order");
}

#[test]
fn two_builders_of_one_folder_do_not_meet() {
    let src = data(4, 60);
    let dst = tempfile::tempdir().unwrap();
    let mut child = command(src.path(), dst.path()).spawn().unwrap();
    wait_for_shard(&mut child, dst.path(), 0);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGSTOP).unwrap();
    let output = command(src.path(), dst.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("another process is building"));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGCONT).unwrap();
    assert!(child.wait().unwrap().success());
    check_whole_shards(dst.path());
}
