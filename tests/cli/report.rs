//! What people see of a run: a few lines of 80 columns, with numbers that differ from run
//! to run replaced by `N`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::command::{code, command, featherload, object, stderr, stdout};
use crate::common::data;
use crate::common::processes::{children, coordinator_of, send, wait_for};

/// The lines, each number as `N`. What follows from how busy the machine is is left out.
fn shape(text: &str) -> Vec<String> {
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let changing = ["limited by", "CPU", "faster"];
    let kept = text.lines().filter(|line| {
        let label = line.trim_start();
        // The second line of a long text, which only the changing ones have.
        let continues = line.starts_with("                   ");
        !continues && !changing.iter().any(|word| label.starts_with(word))
    });
    kept.map(numbers_as_n).collect()
}

fn numbers_as_n(line: &str) -> String {
    let is_of_number = |c: char| c.is_ascii_digit() || ".,-".contains(c);
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let is_number =
            word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(is_of_number);
        shape.push_str(if is_number { "N" } else { word });
        shape.push(' ');
    }
    // Of a busy machine a time may be one of seconds.
    shape.trim_end().replace("N ms", "N s")
}

fn bench(source: &Path, args: &[&str]) -> String {
    let all = [
        &["bench", source.to_str().unwrap(), "--batch-size", "8"],
        args,
    ]
    .concat();
    let out = featherload(&all);
    assert_eq!(code(&out), 0, "{args:?}: {}", stderr(&out));
    stdout(&out)
}

#[test]
fn a_run_is_told_in_a_few_lines() {
    let dir = data(2, 12);
    let text = bench(dir.path(), &["--num-workers", "1", "--epochs", "12"]);
    let head: String = text.split("\n\n").next().unwrap().replace("\n  ", " | ");
    let head: Vec<&str> = head.split(" | ").collect();
    let source = dir.path().to_str().unwrap();
    let version = concat!("featherload ", env!("CARGO_PKG_VERSION"));
    let want = [
        version,
        source,
        "24 JPEG, 2 classes",
        "train224",
        "batch 8",
        "1 worker",
    ];
    assert_eq!(head, want);
    let body = text.split_once("\n\n").unwrap().1;
    assert_eq!(
        shape(body),
        [
            "N images/s N batches in N s, first after N s",
            "N MiB memory N shared batch buffer + N processes",
            "failures none",
        ]
        .map(|line| line.to_owned()),
        "{text}"
    );
    assert!(text.lines().count() <= 10, "{text}");
    for label in ["  limited by       ", "  CPU              "] {
        assert!(text.contains(label), "{text}");
    }
    // No escape goes into a pipe.
    assert!(!text.contains('\u{1b}'), "{text}");

    let all = bench(dir.path(), &["--num-workers", "1", "-v"]);
    for label in [
        "CPU time",
        "worker time",
        "PSS",
        "page cache",
        "sandbox",
        "profile",
    ] {
        assert!(all.contains(&format!("\n  {label} ")), "{label}: {all}");
        assert!(!text.contains(&format!("\n  {label} ")), "{label}: {text}");
    }
    let alone = bench(dir.path(), &["--num-workers", "0"]);
    assert!(
        alone.contains("no workers") && alone.contains("one process"),
        "{alone}"
    );
}

#[test]
fn colour_is_counted_apart_from_resizing() {
    let dir = data(1, 8);
    let files = tempfile::tempdir().unwrap();
    let recipe = files.path().join("jitter.yaml");
    let ops =
        "featherload: 1\nops:\n  - resize: {size: [64, 64]}\n  - color_jitter: {contrast: 0.4}\n";
    fs::write(&recipe, ops).unwrap();
    let source = dir.path().to_str().unwrap();
    let times = |recipe: &str| {
        let args = [
            "bench",
            source,
            "--json",
            "--num-workers",
            "1",
            "--recipe",
            recipe,
        ];
        let report = object(&featherload(&args));
        ["augment_s", "resample_s", "decode_s"].map(|key| report["loader"]["times"][key].as_f64())
    };
    let [augment, ..] = times("train224").map(Option::unwrap);
    assert_eq!(augment, 0.0);
    for seconds in times(recipe.to_str().unwrap()) {
        assert!(seconds.unwrap() > 0.0);
    }
}

#[test]
fn failures_are_grouped_with_five_examples_and_a_file_has_all() {
    let dir = data(1, 8);
    for i in 0..7 {
        fs::write(dir.path().join(format!("class0/empty{i}.jpg")), b"").unwrap();
    }
    fs::write(dir.path().join("class0/text.jpg"), b"no picture at all").unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("bad.jsonl");
    let skip = ["--on-error", "skip", "--num-workers", "1"];
    let text = bench(
        dir.path(),
        &[&skip[..], &["--failures", file.to_str().unwrap()]].concat(),
    );
    let (_, failures) = text.split_once("\n  failures         ").unwrap();
    let lines: Vec<&str> = failures.lines().map(str::trim).collect();
    assert_eq!(lines[0], "8 of 16 samples; rows masked");
    assert_eq!(lines[1], "7 truncated");
    let of_kind = lines.iter().filter(|line| line.starts_with("class0/empty"));
    assert_eq!(of_kind.count(), 4, "{text}");
    assert!(lines.contains(&"1 unsupported"), "{text}");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("class0/text.jpg: ")),
        "{text}"
    );
    assert!(failures.contains("and 3 more in"), "{text}");
    let written = fs::read_to_string(&file).unwrap();
    let all: Vec<Value> = written
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(all.len(), 8);
    for key in ["id", "path", "kind", "reason", "substitute"] {
        assert!(all[0].get(key).is_some(), "{key}");
    }
    let text = bench(dir.path(), &skip);
    assert!(
        text.contains("and 3 more: --failures FILE lists all"),
        "{text}"
    );
    // `index` counts by headers alone, and both say what they count.
    assert!(text.contains("`index` reads headers"), "{text}");
    let by_headers = stdout(&featherload(&["index", dir.path().to_str().unwrap()]));
    assert!(
        by_headers.contains("unreadable 8 of 16 by their headers"),
        "{by_headers}"
    );
    // A sample fails once an epoch.
    let twice = bench(dir.path(), &[&skip[..], &["--epochs", "2"]].concat());
    assert!(
        twice.contains("  16 of 32 rows, of 8 samples; rows masked"),
        "{twice}"
    );
    // Images a second are those of good samples.
    let out = object(
        &command(
            &[
                &[
                    "bench",
                    dir.path().to_str().unwrap(),
                    "--json",
                    "--epochs",
                    "100",
                ],
                &skip[..],
            ]
            .concat(),
        )
        .output()
        .unwrap(),
    );
    assert_eq!(out["samples"], 1600);
    let behind_first =
        out["seconds"].as_f64().unwrap() - out["first_batch_ms"].as_f64().unwrap() / 1e3;
    let good = out["images_per_s"].as_f64().unwrap() * behind_first;
    assert!(good < 801.0, "{good}");
}

#[test]
fn a_run_that_is_too_short_has_no_rate_and_says_what_makes_it_longer() {
    let dir = data(1, 8);
    let source = dir.path().to_str().unwrap();
    for (args, longer) in [
        (&["--batch-size", "4"][..], "Use --epochs "),
        (&["--batch-size", "64"], "Use --epochs "),
        (&["--batch-size", "2", "--limit", "4"], ", without --limit"),
    ] {
        let run = [&["bench", source, "--num-workers", "1"], args].concat();
        let text = stdout(&featherload(&run));
        let rate = text.lines().find(|line| line.contains("images/s"));
        let begins = "  images/s         too short to measure: ";
        assert!(rate.is_some_and(|rate| rate.starts_with(begins)), "{text}");
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(longer), "{text}");
        for label in ["limited by", "CPU", "faster"] {
            assert!(!text.contains(&format!("\n  {label} ")), "{label}: {text}");
        }
        assert!(text.contains(" MiB memory"), "{text}");
        let out = object(&featherload(&[&run[..], &["--json"]].concat()));
        assert!(
            out["images_per_s"].is_null() && out["bound_by"].is_null(),
            "{out}"
        );
        assert!(out["too_short"].as_str().unwrap().contains(longer), "{out}");
        assert!(out["limited_by"]["faster"].is_null(), "{out}");
    }
    // As it says.
    let longer = ["bench", source, "--batch-size", "4", "--epochs", "400"];
    let text = stdout(&featherload(&longer));
    assert!(!text.contains("too short"), "{text}");
    let table = stdout(&featherload(&["bench", source, "--num-workers", "1,0"]));
    assert!(
        table.contains(" too short ") && table.contains("none: runs are too short to measure"),
        "{table}"
    );
}

#[test]
fn a_build_names_all_that_it_left_out() {
    let dir = data(1, 3);
    for i in 0..125 {
        fs::write(
            dir.path().join(format!("class0/bad{i:03}.jpg")),
            b"\xff\xd8 cut",
        )
        .unwrap();
    }
    let source = dir.path().to_str().unwrap();
    let files = tempfile::tempdir().unwrap();
    let build = |name: &str, bad: usize| {
        for i in bad..125 {
            let _ = fs::remove_file(dir.path().join(format!("class0/bad{i:03}.jpg")));
        }
        let to = files.path().join(name);
        let args = [
            "cache",
            "build",
            source,
            to.to_str().unwrap(),
            "--encode",
            "jpeg:90",
            "--on-error",
            "skip",
        ];
        let out = featherload(&args);
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        let text = stdout(&out);
        (text.matches("/class0/bad").count(), text)
    };
    let (named, text) = build("many", 125);
    assert_eq!(named, 100, "{text}");
    let rest = "           and 25 more: `skipped` in the shards' .json files lists all";
    assert!(
        text.contains("left out   125 samples") && text.contains(rest),
        "{text}"
    );
    let manifests = fs::read_dir(files.path().join("many")).unwrap();
    let manifests = manifests.map(|file| file.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("shard-") && name.ends_with(".json")
    });
    let listed = manifests.map(|path| fs::read_to_string(path).unwrap().matches("/bad").count());
    assert_eq!(listed.sum::<usize>(), 125);
    let (named, text) = build("some", 25);
    assert_eq!(named, 25, "{text}");
    assert!(!text.contains(" more: "), "{text}");
}

#[test]
fn numbers_of_workers_are_compared_in_a_table() {
    let dir = data(2, 12);
    let text = bench(dir.path(), &["--num-workers", "1,2", "--digest"]);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.contains("images/s"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..2], ["workers", "images/s"], "{text}");
    assert_eq!((rows[1][0], rows[2][0]), ("1", "2"), "{text}");
    assert!(text.contains("\n  verdict "), "{text}");
    assert!(text.contains(", in all runs"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");

    let source = dir.path().to_str().unwrap();
    let out = object(&featherload(&[
        "bench",
        source,
        "--json",
        "--num-workers",
        "2,0,1",
        "--epochs",
        "100",
    ]));
    let counts = out["runs"].as_array().unwrap().iter();
    let counts: Vec<_> = counts.map(|run| run["workers"].as_u64().unwrap()).collect();
    assert_eq!(counts, [2, 0, 1]);
    assert!(counts.contains(&out["verdict"]["workers"].as_u64().unwrap()));
    for refused in [
        &["--num-workers", "1,1"][..],
        &["--num-workers", "1,2", "--save-state", "state"],
        &["--num-workers", "1,2", "--ceiling", "full"],
    ] {
        let out = featherload(&[&["bench", source], refused].concat());
        assert_eq!(code(&out), 2, "{refused:?}: {}", stderr(&out));
        assert!(stderr(&out).contains("--num-workers"), "{}", stderr(&out));
    }
}

#[test]
fn an_interrupted_run_says_so() {
    let dir = data(2, 12);
    let source = dir.path().to_str().unwrap();
    let child = command(&["bench", source, "--num-workers", "1", "--epochs", "1000000"])
        .args(["--batch-size", "8", "--digest", "--save-state"])
        .arg(dir.path().join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    // A worker that has worked as long as that is well behind the start, in which a signal
    // ends the process without a report.
    let begun = wait_for(Duration::from_secs(8), || {
        let worker = children(coordinator_of(pid)?).first()?.pid;
        let usage = featherload::measure::ProcessUsage::read(worker).ok()?;
        (usage.cpu_s > 0.1).then_some(())
    });
    assert!(begun.is_some());
    assert!(send(pid, Signal::SIGINT));
    let out = child.wait_with_output().unwrap();
    assert_eq!(code(&out), 130, "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("\n  interrupted      after "), "{text}");
    assert!(text.contains(" of 3,000,000 batches"), "{text}");
}

#[test]
fn a_limit_ends_within_a_batch() {
    let dir = data(2, 12); // 3 batches of 8
    let source = dir.path().to_str().unwrap();
    let files = tempfile::tempdir().unwrap();
    let state = files.path().join("state.json");
    let state = state.to_str().unwrap();
    let batches_of = |rows: &str, args: &[&str]| {
        let all = [
            "bench",
            source,
            "--json",
            "--no-shuffle",
            "--digest",
            "--batch-size",
            rows,
        ];
        object(&featherload(&[&all[..], args].concat()))
    };
    let run = |args: &[&str]| batches_of("8", args);
    for workers in ["0", "2"] {
        let workers = ["--num-workers", workers];
        let cut = run(&[&workers[..], &["--limit", "11", "--save-state", state]].concat());
        assert_eq!((&cut["samples"], &cut["batches"]), (&11.into(), &2.into()));
        // Rows do not depend on the batch that they are in.
        let other = batches_of("11", &[&workers[..], &["--limit", "11"]].concat());
        assert_eq!(cut["digest"], other["digest"]);
        assert_ne!(
            cut["digest"],
            run(&[&workers[..], &["--limit", "12"]].concat())["digest"]
        );
        // The state stands before the batch that was cut.
        let rest = run(&[&workers[..], &["--resume", state]].concat());
        assert_eq!(rest["samples"], 16);
    }
    let out = featherload(&["bench", source, "--limit", "0"]);
    assert_eq!(code(&out), 2, "{}", stderr(&out));
}

#[test]
fn a_cache_is_verified_before_it_is_measured() {
    let dir = data(2, 12);
    let files = tempfile::tempdir().unwrap();
    let cache = files.path().join("cache");
    let (source, cache) = (dir.path().to_str().unwrap(), cache.to_str().unwrap());
    let built = object(&featherload(&["cache", "build", source, cache, "--json"]));
    assert_eq!(built["report"]["shards"], 8);
    let verified = |args: &[&str]| {
        featherload(&[&["bench", cache, "--num-workers", "1", "--verify"], args].concat())
    };
    let out = verified(&[]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains(": good; 24 samples in 8 shards"), "{text}");
    assert!(text.contains("24 JPEG in 8 shards, 2 classes"), "{text}");

    let shard = Path::new(cache).join("shard-000003.tar");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[700] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let out = verified(&[]);
    assert_eq!(code(&out), 1, "{}", stderr(&out));
    let text = stdout(&out);
    assert!(
        text.contains("shard-000003.tar") && !text.contains("images/s"),
        "{text}"
    );
    let out = verified(&["--json"]);
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((code(&out), &object["good"]), (1, &false.into()));
    // A folder of images has no checksums.
    let out = featherload(&["bench", source, "--verify"]);
    assert_eq!(code(&out), 2, "{}", stderr(&out));
}
