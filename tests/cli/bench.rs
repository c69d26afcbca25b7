//! The command line's contract: exit codes, JSON, resuming, equal digests.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::command::{code, command, featherload, stderr};
use crate::common::processes::{children, coordinator_of, send, wait_for};
use crate::common::{FEATHERLOAD, Picture, class_folder, data};

fn with_env(args: &[&str], env: &[(&str, &str)]) -> Output {
    command(args).envs(env.iter().copied()).output().unwrap()
}

/// `bench SRC --json --batch-size 8 ...`, which must end with 0: its one object.
fn bench(source: &Path, args: &[&str]) -> Value {
    bench_env(source, args, &[])
}

fn bench_env(source: &Path, args: &[&str], env: &[(&str, &str)]) -> Value {
    let mut all = vec![
        "bench",
        source.to_str().unwrap(),
        "--json",
        "--batch-size",
        "8",
    ];
    all.extend_from_slice(args);
    let out = with_env(&all, env);
    assert_eq!(code(&out), 0, "{args:?}: {}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one object: {text}");
    serde_json::from_str(&text).unwrap()
}

fn digest(source: &Path, args: &[&str]) -> String {
    let args: Vec<&str> = args.iter().copied().chain(["--digest"]).collect();
    bench(source, &args)["digest"].as_str().unwrap().to_owned()
}

#[test]
fn bad_usage_and_bad_input_exit_with_2_and_say_what_to_do() {
    let dir = data(1, 3);
    let good = dir.path().to_str().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let list = dir.path().join("bad.txt");
    fs::write(&list, "class0/000.jpg 0\nclass0/001.jpg one\n").unwrap();
    let cases: [(&[&str], &[&str]); 13] = [
        (
            &["bench", good, "--dtype", "bfloat16"],
            &["bfloat16", "u8, f16, bf16, f32"],
        ),
        (&[], &["Usage"]),
        (&["bnech", good], &["bnech"]),
        (&["bench"], &["SRC"]),
        (
            &["bench", "/nowhere/at/all"],
            &["/nowhere/at/all", "folder"],
        ),
        (
            &["bench", good, "--recipe", "train225"],
            &["train225", "train224", "eval224"],
        ),
        (&["bench", good, "--start", "3"], &["EPOCH:BATCH"]),
        (&["bench", good, "--start", "0:77"], &["77", "1 batches"]),
        (&["bench", good, "--num-workers", "many"], &["many"]),
        (
            &["bench", good, "--batch-size", "0", "--num-workers", "0"],
            &["--batch-size` is 0"],
        ),
        (
            &["bench", good, "--resume", "/nowhere/state"],
            &["/nowhere/state"],
        ),
        (&["bench", empty], &[empty]),
        (&["bench", list.to_str().unwrap()], &["bad.txt:2"]),
    ];
    for (args, words) in cases {
        let out = featherload(args);
        assert_eq!(code(&out), 2, "{args:?}: {}", stderr(&out));
        assert_eq!(out.stdout, b"", "{args:?}");
        for word in words {
            assert!(
                stderr(&out).contains(word),
                "{args:?} lacks {word}: {}",
                stderr(&out)
            );
        }
    }
    let out = with_env(
        &["bench", good, "--num-workers", "0"],
        &[("FEATHERLOAD_CPU", "avx9000")],
    );
    assert_eq!(code(&out), 2, "{}", stderr(&out));
    assert!(
        stderr(&out).contains("scalar, sse4.1 or avx2"),
        "{}",
        stderr(&out)
    );
    for args in [["--version"], ["--help"]] {
        assert_eq!(code(&featherload(&args)), 0);
    }
}

#[test]
fn programs_may_have_a_failure_as_an_object() {
    let dir = data(1, 3);
    let good = dir.path().to_str().unwrap();
    let failure = |args: &[&str]| -> Value {
        let out = with_env(args, &[("FEATHERLOAD_ERRORS", "json")]);
        assert_eq!((code(&out), &*out.stdout), (2, &b""[..]), "{args:?}");
        let message = stderr(&out);
        let last = message.lines().last().unwrap();
        serde_json::from_str::<Value>(last).unwrap()["error"].take()
    };
    let e = failure(&["index", "/nowhere", "--json"]);
    assert_eq!(
        (&e["kind"], &e["path"]),
        (&"dataset".into(), &"/nowhere".into())
    );
    let odd = OsStr::from_bytes(b"/nowhere/\xff");
    let out = command(&["index", "--json"])
        .arg(odd)
        .env("FEATHERLOAD_ERRORS", "json")
        .output()
        .unwrap();
    assert_eq!(code(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("\"path\":\"/nowhere/\u{fffd}\""));
    let e = failure(&["bench", good, "--json", "--start", "0:77"]);
    assert_eq!(
        (&e["kind"], &e["option"]),
        (&"config".into(), &"start".into())
    );
    assert!(e["text"].as_str().unwrap().contains("`start` is batch 77"));
    let list = dir.path().join("bad.txt");
    fs::write(&list, "class0/000.jpg 0\nclass0/001.jpg one\n").unwrap();
    let e = failure(&["plan", list.to_str().unwrap(), "--json"]);
    assert_eq!((&e["kind"], &e["line"]), (&"dataset".into(), &2.into()));
}

/// Must end with 2, without a panic, and name all of `words`.
fn refused(args: &[&str], words: &[&str]) {
    let out = featherload(args);
    let message = stderr(&out);
    assert_eq!(code(&out), 2, "{args:?}: {message}");
    assert!(!message.contains("panicked"), "{args:?}: {message}");
    for word in words {
        assert!(message.contains(word), "{args:?} lacks {word}: {message}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let dir = data(1, 3);
    let good = dir.path().to_str().unwrap();
    for window in ["-1", "0", "nan", "inf", "0.04", "601", "1e300"] {
        refused(
            &["bench", good, "--ceiling", "full", "--window", window],
            &["--window", "0.05 to 600"],
        );
    }
    refused(
        &["bench", good, "--max-scratch", "1048577T"],
        &["--max-scratch", "1048576T"],
    );
    // The product of samples and epochs has no room in a number.
    let epochs = u64::MAX.to_string();
    let out = bench(
        dir.path(),
        &["--epochs", &epochs, "--limit", "3", "--num-workers", "1"],
    );
    assert_eq!(out["samples"], 3);
}

#[test]
fn options_that_the_source_would_ignore_are_refused() {
    let dir = data(2, 3);
    let folder = dir.path().to_str().unwrap();
    let files = tempfile::tempdir().unwrap();
    let list = dir.path().join("list.txt");
    fs::write(&list, "class0/000.jpg 0\n").unwrap();
    let list = list.to_str().unwrap();
    let saved = files.path().join("saved");
    let saved = saved.to_str().unwrap();
    let out = featherload(&["index", folder, "--save", saved]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    for command in ["bench", "index"] {
        refused(
            &[command, list, "--classes", "names"],
            &["--classes", list, "a list file", "remove the option"],
        );
        refused(
            &[command, saved, "--classes", "names"],
            &["--classes", saved, "a saved index", "make the index again"],
        );
        refused(
            &[command, saved, "--labels", "none"],
            &["--labels none", "a saved index", "make the index again"],
        );
        for (source, kind) in [(folder, "a folder"), (saved, "a saved index")] {
            for option in [
                &["--root", folder][..],
                &["--delimiter", ","],
                &["--allow-outside"],
            ] {
                refused(
                    &[&[command, source], option].concat(),
                    &[option[0], source, kind, "give a list file"],
                );
            }
        }
    }
}

#[test]
fn a_run_without_an_epoch_says_that_there_is_nothing_to_do() {
    let dir = data(1, 3);
    let good = dir.path().to_str().unwrap();
    for args in [
        &["--epochs", "2", "--start", "2:0"][..],
        &["--start", "7:0"],
    ] {
        for workers in ["0", "1"] {
            refused(
                &[&["bench", good, "--num-workers", workers], args].concat(),
                &["nothing to do", "--epochs"],
            );
        }
    }
    refused(
        &["bench", good, "--epochs", "0"],
        &["`--epochs` is 0: use at least 1"],
    );
}

#[test]
fn a_file_that_is_read_or_written_elsewhere_is_not_replaced() {
    let dir = data(1, 3);
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (list, failures) = (at("list.txt"), at("failures.txt"));
    fs::write(&list, "class0/000.jpg 0\n").unwrap();
    let root = dir.path().to_str().unwrap();
    let of_list = [
        "bench",
        "--list",
        &list,
        "--root",
        root,
        "--num-workers",
        "0",
    ];
    for (more, other) in [
        (&["--save-state", &list][..], "--list"),
        (&["--svg", &list], "--list"),
        (
            &["--failures", &failures, "--save-state", &failures],
            "--failures",
        ),
    ] {
        let args = [&of_list[..], more].concat();
        refused(&args, &["would replace", other, "name another file"]);
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), "class0/000.jpg 0\n");
    // A number is no file, whatever a file is called.
    let out = command(&of_list)
        .args(["--batch-size", "1", "--save-state", "1"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(dir.path().join("1").exists());
}

#[test]
fn a_state_that_cannot_be_written_is_found_before_the_run() {
    let dir = data(1, 3);
    let good = dir.path().to_str().unwrap();
    let check = |file: &Path, words: &[&str]| {
        let name = file.to_str().unwrap();
        refused(
            &["bench", good, "--num-workers", "0", "--save-state", name],
            &[&["--save-state", name], words].concat(),
        );
    };
    check(dir.path(), &["a folder"]);
    check(&dir.path().join("none/state"), &["none:", "another place"]);
    let locked = dir.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).unwrap();
    // Nothing is refused to root.
    if fs::write(locked.join("probe"), "").is_err() {
        check(&locked.join("state"), &["locked:", "another place"]);
    }
    // What this command never wrote stays.
    let shard = dir.path().join("shard.tar");
    fs::write(&shard, [b'a', 0, 0]).unwrap();
    check(&shard, &["is not text", "another file"]);
    assert_eq!(fs::read(&shard).unwrap(), [b'a', 0, 0]);
    // A device is written to, and not replaced.
    let out = featherload(&[
        "bench",
        good,
        "--num-workers",
        "0",
        "--save-state",
        "/dev/full",
    ]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    assert!(
        fs::metadata("/dev/full")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    // A neighbour with a likely name is not touched.
    let other = dir.path().join("state.tmp");
    fs::write(&other, "mine").unwrap();
    let file = dir.path().join("state.json");
    bench(
        dir.path(),
        &["--num-workers", "0", "--save-state", file.to_str().unwrap()],
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    assert!(fs::read_to_string(&file).unwrap().starts_with('{'));
}

#[test]
fn a_failed_sample_exits_with_3_under_stop_and_0_under_skip() {
    let dir = data(2, 8);
    fs::write(dir.path().join("class1/bad.jpg"), b"").unwrap();
    let source = dir.path().to_str().unwrap();
    for workers in ["0", "2"] {
        let out = featherload(&["bench", source, "--json", "--num-workers", workers]);
        assert_eq!(code(&out), 3, "{}", stderr(&out));
        for word in ["bad.jpg", "--on-error skip", "--on-error substitute"] {
            assert!(stderr(&out).contains(word), "{}", stderr(&out));
        }
        assert_eq!(out.stdout, b"");
        let report = bench(
            dir.path(),
            &["--on-error", "skip", "--num-workers", workers],
        );
        assert_eq!(report["samples"], 17);
        assert_eq!(
            (&report["failed"], &report["skipped"]),
            (&1.into(), &1.into())
        );
        let failure = &report["failures"][0];
        assert!(
            failure["path"]
                .as_str()
                .unwrap()
                .ends_with("class1/bad.jpg")
        );
        assert_eq!(failure["kind"], "truncated");
        assert!(failure["reason"].as_str().unwrap().contains("empty"));
    }
    // For people: named as well.
    let out = featherload(&["bench", source, "--on-error", "skip", "--num-workers", "1"]);
    assert_eq!(code(&out), 0);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        text.contains("bad.jpg") && text.contains("images/s"),
        "{text}"
    );
}

#[test]
fn a_substituted_sample_is_counted_and_named_with_the_one_in_its_place() {
    let dir = data(2, 8);
    fs::write(dir.path().join("class1/bad.jpg"), b"").unwrap();
    let run = |policy: &str, workers: &str| {
        let options = ["--on-error", policy, "--num-workers", workers, "--digest"];
        bench(dir.path(), &options)
    };
    let skipped = run("skip", "2");
    assert_eq!(skipped["substituted"], 0);
    assert_eq!(
        skipped["failures"][0]["substitute"],
        serde_json::Value::Null
    );
    let mut digests = Vec::new();
    for workers in ["0", "1", "2"] {
        let report = run("substitute", workers);
        let counts = ["samples", "failed", "skipped", "substituted"].map(|key| &report[key]);
        assert_eq!(counts, [17, 1, 0, 1]);
        let failure = &report["failures"][0];
        assert!(failure["path"].as_str().unwrap().ends_with("bad.jpg"));
        assert!(failure["substitute"].as_u64().unwrap() < 17);
        assert_ne!(failure["substitute"], failure["id"]);
        digests.push(report["digest"].clone());
    }
    assert!(digests.iter().all(|d| *d == digests[0]), "{digests:?}");
    assert_ne!(digests[0], skipped["digest"]);
    let source = dir.path().to_str().unwrap();
    let out = featherload(&[
        "bench",
        source,
        "--on-error",
        "substitute",
        "--num-workers",
        "1",
    ]);
    assert_eq!(code(&out), 0);
    let text = String::from_utf8(out.stdout).unwrap();
    for words in ["bad.jpg", "1 of 17 samples; rows filled by other samples"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_repeated_row_whose_sample_is_bad_is_counted_as_repeated_too() {
    let dir = data(1, 4);
    // The first of five: of three ranks the last repeats it.
    fs::write(dir.path().join("class0/0.jpg"), b"").unwrap();
    for workers in ["0", "2"] {
        for (policy, substituted) in [("skip", 0), ("substitute", 1)] {
            let options = ["--on-error", policy, "--num-workers", workers];
            let ranks = ["--no-shuffle", "--rank", "2", "--world-size", "3"];
            let report = bench(dir.path(), &[&options[..], &ranks].concat());
            let counts = ["samples", "repeated", "failed", "substituted"].map(|key| &report[key]);
            assert_eq!(counts, [2, 1, 1, substituted], "{policy}");
        }
    }
}

#[test]
fn the_json_object_has_the_names_of_the_contract() {
    let dir = data(3, 8);
    for workers in [0u64, 2] {
        let report = bench(
            dir.path(),
            &["--num-workers", &workers.to_string(), "--epochs", "100"],
        );
        for key in [
            "images_per_s",
            "first_batch_ms",
            "startup_ms",
            "cpu_s_per_1k_images",
            "pss_total_mib",
        ] {
            let value = report[key].as_f64().unwrap_or(-1.0);
            assert!(value > 0.0 && value.is_finite(), "{key} is {}", report[key]);
        }
        assert_eq!(report["gpu_mib"].as_f64(), Some(0.0));
        assert_eq!(report["samples"], 2400);
        for key in ["failed", "skipped", "substituted", "worker_deaths"] {
            assert_eq!(report[key], 0, "{key}");
        }
        assert!(report["profile"].is_object());
        assert!(report["failures"].as_array().unwrap().is_empty());
        assert!(report.get("digest").is_none() && report.get("digests").is_none());
        assert_eq!(
            report["loader"]["workers"].as_array().unwrap().len() as u64,
            workers
        );
    }
}

#[test]
fn an_interrupted_run_reports_and_the_pool_says_on_stderr_who_died() {
    let dir = data(6, 9);
    let mut child = Command::new(FEATHERLOAD)
        .arg("bench")
        .arg(dir.path())
        .args(["--json", "--num-workers", "3", "--epochs", "1000000000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    let limit = Duration::from_secs(8);
    let worker = wait_for(limit, || {
        let workers = children(coordinator_of(pid)?);
        (workers.len() == 3).then(|| workers[0].pid)
    });
    // A worker that has worked as long as that is well behind the start, in
    // which a signal ends the process without a report.
    let began = wait_for(limit, || {
        let usage = featherload::measure::ProcessUsage::read(worker?).ok()?;
        (usage.cpu_s > 0.1).then_some(())
    });
    assert!(began.is_some());
    assert!(send(worker.unwrap(), Signal::SIGKILL));
    let mut message = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut message)
        .unwrap();
    assert!(message.contains("featherload: warning: "), "{message}");
    assert!(send(pid, Signal::SIGINT));
    let out = child.wait_with_output().unwrap();
    assert_eq!(code(&out), 130, "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    // As many as were asked for, whoever is alive.
    assert_eq!(report["workers"], 3);
    assert_eq!(report["worker_deaths"], 1);
    assert!(report["samples"].as_u64().unwrap() > 0);
}

#[test]
fn a_digest_does_not_depend_on_who_does_the_work() {
    let dir = data(6, 9);
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["--epochs", "2"].iter().chain(args).copied().collect();
        digest(dir.path(), &args)
    };
    let want = run(&["--num-workers", "0"]);
    assert_eq!(want.len(), 32);
    for args in [
        &["--num-workers", "1"][..],
        &["--num-workers", "4"],
        &["--num-workers", "2", "--launch", "fork"],
        &["--num-workers", "3", "--depth", "7"],
        &["--num-workers", "3", "--kill-workers-every", "5"],
    ] {
        assert_eq!(run(args), want, "{args:?}");
    }
    // And does depend on all that makes the stream.
    for args in [
        &["--seed", "1"][..],
        &["--no-shuffle"],
        &["--dtype", "f32"],
        &["--dtype", "bf16"],
        &["--layout", "nhwc"],
        &["--recipe", "eval224"],
        &["--drop-last"],
        &["--pad-last"],
        &["--rank", "1", "--world-size", "2"],
    ] {
        let args: Vec<&str> = ["--num-workers", "0"].iter().chain(args).copied().collect();
        assert_ne!(run(&args), want, "{args:?}");
    }
    let bf16 = |workers| run(&["--dtype", "bf16", "--num-workers", workers]);
    assert_eq!(bf16("2"), bf16("0"));
}

#[test]
fn without_a_device_workers_decode_or_the_run_is_refused() {
    let dir = data(2, 5);
    let folder = dir.path().to_str().unwrap();
    let run = |on: &str| digest(dir.path(), &["--num-workers", "1", "--decode-on", on]);
    assert_eq!(run("auto"), run("cpu"));
    for command in ["bench", "plan"] {
        refused(
            &[command, folder, "--decode-on", "gpu"],
            &["--decode-on gpu", "use device cuda"],
        );
        refused(
            &[command, folder, "--decode-on", "both"],
            &["invalid value 'both'", "auto, gpu, cpu"],
        );
    }
}

#[test]
fn every_instruction_set_gives_the_same_digest() {
    let dir = data(6, 9);
    for recipe in ["train224", "eval224"] {
        let args = ["--recipe", recipe, "--digest", "--num-workers"];
        let run = |workers: &str, level: &str| {
            let args: Vec<&str> = args.iter().copied().chain([workers]).collect();
            let out = bench_env(dir.path(), &args, &[("FEATHERLOAD_CPU", level)]);
            out["digest"].as_str().unwrap().to_owned()
        };
        let want = run("0", "scalar");
        assert_eq!(run("2", "scalar"), want);
        for (level, is_there) in [
            ("sse4.1", is_x86_feature_detected!("sse4.1")),
            ("avx2", is_x86_feature_detected!("avx2")),
        ] {
            if !is_there {
                println!("SKIP: {level}: this CPU has none");
                continue;
            }
            for workers in ["0", "2"] {
                assert_eq!(run(workers, level), want, "{recipe} {level} {workers}");
            }
        }
    }
}

#[test]
fn start_limit_and_state_cut_the_stream_where_they_say() {
    let dir = data(6, 9); // 7 batches of 8 an epoch
    let full = bench(
        dir.path(),
        &["--epochs", "3", "--digest", "--num-workers", "2"],
    );
    let epochs = full["digests"].as_array().unwrap();
    assert_eq!(epochs.len(), 3);
    let from_one = bench(
        dir.path(),
        &[
            "--epochs",
            "3",
            "--start",
            "1:0",
            "--digest",
            "--num-workers",
            "2",
        ],
    );
    assert_eq!(from_one["digests"].as_array().unwrap()[..], epochs[1..]);
    assert_eq!(from_one["samples"], 108);
    let limited = bench(
        dir.path(),
        &["--epochs", "3", "--limit", "24", "--num-workers", "2"],
    );
    assert_eq!(limited["samples"], 24);

    for workers in ["0", "2"] {
        let files = tempfile::tempdir().unwrap();
        let file = files.path().join("state.json");
        let state = file.to_str().unwrap();
        let args = ["--epochs", "3", "--num-workers", workers];
        let with = |more: &[&str]| {
            let args: Vec<&str> = args.iter().chain(more).copied().collect();
            bench(dir.path(), &args)
        };
        // In the midst of an epoch, at its end, and in the next.
        for (limit, epoch, batch) in [("24", 0, 3), ("54", 1, 0), ("70", 1, 2)] {
            with(&["--limit", limit, "--save-state", state]);
            let saved: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(
                (&saved["epoch"], &saved["samples"]),
                (&epoch.into(), &(8 * batch).into())
            );
            let resumed = with(&["--resume", state, "--digest"]);
            let start = format!("{epoch}:{batch}");
            let started = with(&["--start", &start, "--digest"]);
            assert_eq!(resumed["digests"], started["digests"], "{start}");
            assert_eq!(resumed["samples"], started["samples"]);
        }
        // Two ranks, and another batch size: what is left of the first epoch and the others.
        let saved = |limit| {
            with(&["--limit", limit, "--save-state", state]);
        };
        saved("24");
        let of_rank = |rank: &str| {
            let source = dir.path().to_str().unwrap();
            let elsewhere = ["--resume", state, "--rank", rank, "--world-size", "2"];
            let shape = ["--batch-size", "5", "--json"];
            let out = featherload(&[&["bench", source][..], &args, &elsewhere, &shape].concat());
            assert_eq!(code(&out), 0, "{}", stderr(&out));
            let report: Value = serde_json::from_slice(&out.stdout).unwrap();
            report["samples"].as_u64().unwrap()
        };
        assert_eq!(of_rank("0") + of_rank("1"), 30 + 2 * 54);
        saved("70");
        assert_eq!(
            fs::read_dir(files.path()).unwrap().count(),
            1,
            "no temporary file"
        );
        let out = featherload(&[
            "bench",
            dir.path().to_str().unwrap(),
            "--batch-size",
            "8",
            "--num-workers",
            workers,
            "--resume",
            state,
            "--seed",
            "9",
        ]);
        assert_eq!(code(&out), 2);
        assert!(stderr(&out).contains("seed"), "{}", stderr(&out));
    }
}

#[test]
fn the_state_of_a_run_that_failed_is_the_failed_batch() {
    let dir = data(2, 16);
    let bad = dir.path().join("class1/zzz.jpg");
    fs::write(&bad, b"").unwrap();
    let file = dir.path().join("state.json");
    let args = [
        "bench",
        dir.path().to_str().unwrap(),
        "--batch-size",
        "8",
        "--num-workers",
        "2",
        "--no-shuffle",
        "--labels",
        "none",
        "--json",
    ];
    let run = |more: &[&str]| featherload(&[&args[..], more].concat());
    let out = run(&["--save-state", file.to_str().unwrap()]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    let saved: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        (&saved["epoch"], &saved["samples"]),
        (&0.into(), &32.into())
    );
    fs::write(&bad, Picture::rgb(100, 100, 3).encode()).unwrap();
    let out = run(&["--resume", file.to_str().unwrap()]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["samples"], 1);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = data(2, 8);
    let source = dir.path().to_str().unwrap();
    let saved = dir.path().join("saved.index");
    for args in [
        &["bench", source, "--json", "--num-workers", "1"][..],
        &["bench", source, "--num-workers", "0"],
        &["index", source, "--json", "--save", saved.to_str().unwrap()],
    ] {
        let mut child = Command::new(FEATHERLOAD)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!(code(&out), 0, "{args:?}: {}", stderr(&out));
        assert_eq!(stderr(&out), "", "{args:?}");
    }
    // A full disk is one.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let out = command(&["index", source, "--json"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    // Nor is nobody who reads the complaint.
    let mut child = Command::new(FEATHERLOAD)
        .args(["bench", "/nowhere"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_saved_index_and_a_list_give_what_the_folder_gives() {
    let dir = data(4, 8);
    let files = tempfile::tempdir().unwrap();
    let want = digest(dir.path(), &["--num-workers", "2"]);

    let saved = files.path().join("index");
    let out = featherload(&[
        "index",
        dir.path().to_str().unwrap(),
        "--save",
        saved.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&report["samples"], &report["classes"]),
        (&32.into(), &4.into())
    );
    assert_eq!(digest(&saved, &["--num-workers", "2"]), want);
    assert_eq!(digest(&saved, &["--num-workers", "0"]), want);

    // The same samples in the same order with the same labels.
    let lines = |label: fn(u64) -> u64| {
        (0..32u64)
            .map(|i| format!("class{}/{:03}.jpg {}\n", i / 8, i % 8, label(i / 8)))
            .collect::<String>()
    };
    let list = files.path().join("list.txt");
    let root = ["--root", dir.path().to_str().unwrap(), "--num-workers", "1"];
    fs::write(&list, lines(|class| class)).unwrap();
    assert_eq!(digest(&list, &root), want);
    fs::write(&list, lines(|class| class + 1)).unwrap();
    assert_ne!(digest(&list, &root), want, "labels are in the digest");
    // Paths are relative to the list when no root is given.
    let beside = dir.path().join("list.txt");
    fs::write(&beside, lines(|class| class)).unwrap();
    assert_eq!(digest(&beside, &["--num-workers", "1"]), want);
    // A flat folder has no labels: another digest, the same samples.
    let flat = class_folder(&files.path().join("flat"), 1, 8).join("class0");
    assert_eq!(bench(&flat, &["--num-workers", "1"])["samples"], 8);
}

#[test]
fn the_ceiling_is_measured_beside_the_loader() {
    let dir = data(2, 8);
    for part in ["full", "crop"] {
        let report = bench(
            dir.path(),
            &[
                "--ceiling",
                part,
                "--pairs",
                "2",
                "--window",
                "0.1",
                "--num-workers",
                "1",
            ],
        );
        for key in ["ceiling_images_per_s", "ceiling_ratio", "images_per_s"] {
            assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report}");
        }
        assert_eq!(report["pairs"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_report_says_what_workers_were_kept_to() {
    let dir = data(1, 4);
    let kept = |args: &[&str]| bench(dir.path(), args)["loader"]["sandboxed"].clone();
    let possible = featherload::SandboxStatus::possible();
    let message = kept(&["--num-workers", "1"]);
    assert_eq!(message["calls"], possible.calls);
    assert_eq!(message["files"], possible.files);
    for args in [
        &["--num-workers", "1", "--sandbox", "off"][..],
        &["--num-workers", "0"],
    ] {
        let message = kept(args);
        assert_eq!(
            (&message["calls"], &message["files"]),
            (&false.into(), &false.into())
        );
    }
    let source = dir.path().to_str().unwrap();
    let out = featherload(&["bench", source, "--sandbox", "yes"]);
    assert_eq!(code(&out), 2);
    assert!(
        stderr(&out).contains("auto, require, off"),
        "{}",
        stderr(&out)
    );
}
