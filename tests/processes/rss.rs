//! `featherload rss`: what it counts adds up, bounds end it with 1, nothing of
//! it outlives it.

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::command::{command, stderr};
use crate::common::processes::{MARK, fresh_mark, marked, send, wait_for, wait_gone};
use crate::common::{Picture, data};

const MIB: f64 = (1 << 20) as f64;

fn run(source: &Path, args: &[&str]) -> Output {
    command(&["rss", source.to_str().unwrap(), "--batch-size", "8"])
        .args(args)
        .output()
        .unwrap()
}

/// `rss SRC --json --batch-size 8 ...`, which must end with `code`: its one object.
fn report(source: &Path, args: &[&str], code: i32) -> Value {
    let out = run(source, &[args, &["--json"]].concat());
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one object: {text}");
    serde_json::from_str(&text).unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    let found = value[key].as_f64();
    found.unwrap_or_else(|| panic!("{key} is no number in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let found = value[key].as_array();
    found.unwrap_or_else(|| panic!("{key} is no list in {value}"))
}

fn check_memory(m: &Value) {
    let [rss, pss, uss, shared] =
        ["rss_bytes", "pss_bytes", "uss_bytes", "shared_bytes"].map(|k| number(m, k));
    // Each is a median by itself.
    let slack = 0.5 * MIB;
    assert!(pss > 0.0 && uss <= pss + slack && pss <= rss + slack, "{m}");
    assert!((rss - uss - shared).abs() <= slack, "{m}");
    let parts: f64 = ["pss_anon_bytes", "pss_file_bytes", "pss_shmem_bytes"]
        .map(|k| number(m, k))
        .iter()
        .sum();
    assert!((parts - pss).abs() <= slack, "{m}");
    assert_eq!(number(m, "pinned_bytes"), 0.0, "nothing pins memory here");
    assert!(number(m, "swap_bytes") >= 0.0);
}

#[test]
fn figures_of_processes_and_of_all_belong_together() {
    let dir = data(2, 20);
    let files = tempfile::tempdir().unwrap();
    let svg = files.path().join("chart.svg");
    let args = ["--num-workers", "0,1,2,3", "--seconds", "0.5", "--svg"];
    let r = report(
        dir.path(),
        &[&args[..], &[svg.to_str().unwrap()]].concat(),
        0,
    );
    assert_eq!(r["samples"], 40);
    assert_eq!(r["ring_bytes_equal"], true);
    check_slope(&r);
    let rows = list(&r, "rows");
    assert_eq!(rows.len(), 4);
    for (row, workers) in rows.iter().zip([0usize, 1, 2, 3]) {
        assert_eq!(row["workers"], workers);
        assert!(number(row, "samples") >= 20.0 && number(row, "sampled_s") >= 0.5);
        let processes = list(row, "processes");
        let roles: Vec<&str> = processes
            .iter()
            .map(|p| p["role"].as_str().unwrap())
            .collect();
        let mut expected = vec!["consumer"];
        if workers > 0 {
            expected.push("coordinator");
            expected.extend(vec!["worker"; workers]);
        }
        assert_eq!(roles, expected);
        processes.iter().for_each(check_memory);
        check_memory(&row["total"]);
        for key in ["rss_bytes", "pss_bytes", "uss_bytes"] {
            let sum: f64 = processes.iter().map(|p| number(p, key)).sum();
            let total = number(&row["total"], key);
            assert!((sum - total).abs() < 0.1 * total + MIB, "{key}: {row}");
        }
        let total = number(row, "pss_total_bytes");
        let rest = number(row, "pss_without_ring_bytes");
        let input = number(row, "pss_input_bytes");
        assert_eq!(input, number(&row["total"], "pss_input_bytes"));
        assert_eq!(number(row, "pss_own_bytes"), rest - input);
        let ring = number(row, "ring_bytes");
        assert_eq!(total, number(&row["total"], "pss_bytes"));
        assert_eq!(ring > 0.0, workers > 0);
        assert!(rest > 0.0 && rest <= total + 0.5 * MIB && total - rest <= ring + 0.5 * MIB);
        // Five full batches an epoch: every row of the three slots is used.
        let unmapped = number(row, "ring_unmapped_bytes");
        assert!(total - rest >= 0.9 * ring, "{row}");
        assert!(unmapped <= 0.1 * ring, "{row}");
        let in_ring = number(&row["total"], "pss_ring_bytes");
        assert!((in_ring + unmapped - ring).abs() <= 0.1 * MIB, "{row}");
        assert!(number(row, "peak_pss_bytes") >= total);
        let rows_done = list(row, "rows_by_worker");
        assert_eq!(rows_done.len(), workers.max(1));
        assert!(rows_done.iter().all(|n| n.as_u64().unwrap() >= 20));
        assert_eq!(row["worker_deaths"], 0);
        assert!(number(&row["page_cache"], "bytes") >= 0.0);
        assert!(
            row["page_cache"]["source"]
                .as_str()
                .unwrap()
                .contains(" less ")
        );
    }
    let chart = fs::read_to_string(&svg).unwrap();
    check_xml(&chart);
    for words in [
        "worker processes",
        "all, MiB",
        "consumer",
        "coordinator",
        "workers",
        "ring",
        "train224, batch 8, depth 3",
        " MiB for each worker more",
    ] {
        assert!(chart.contains(words), "the chart lacks {words}");
    }
}

/// The slope is that of the least-squares line through the rows with workers.
fn check_slope(r: &Value) {
    let points: Vec<(f64, f64)> = list(r, "rows")
        .iter()
        .map(|row| {
            let mib = number(row, "pss_own_bytes") / MIB;
            (number(row, "workers"), mib)
        })
        .filter(|(workers, _)| *workers > 0.0)
        .collect();
    let slope = number(r, "slope_mib_per_worker");
    let n = points.len() as f64;
    let mean = points
        .iter()
        .fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    // What is left beside a line of this slope through the mean has no trend.
    let (trend, spread) = points.iter().fold((0.0, 0.0), |sum, p| {
        let (x, y) = (p.0 - mean.0, p.1 - mean.1);
        (sum.0 + x * (y - slope * x), sum.1 + x * x)
    });
    assert!(
        n >= 2.0 && (trend / spread).abs() < 1e-6,
        "{slope}: {points:?}"
    );
}

/// By the library's own figures, of this process.
#[test]
fn a_file_that_is_mapped_to_be_read_is_input() {
    let input = || {
        let memory = featherload::measure::ProcessMemory::read(std::process::id() as i32).unwrap();
        (memory.pss_input_bytes, memory.pss_bytes)
    };
    // The executable and the libraries are mapped.
    let before = input();
    assert!(before.0 < 1 << 20 && before.1 > before.0, "{before:?}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &vec![7; 32 << 20]).unwrap();
    // SAFETY: nobody else knows the file.
    let map = unsafe { memmap2::Mmap::map(file.as_file()) }.unwrap();
    assert!(input().0 < 1 << 20, "nothing of it is in memory");
    let sum: u64 = map.iter().step_by(4096).map(|b| u64::from(*b)).sum();
    assert_eq!(sum, 7 * (32 << 20) / 4096);
    let read = input();
    assert_eq!(read.0 - before.0, 32 << 20);
    // The rest moves by the pages of libraries that others come to map, or cease to.
    let rest = (before.1 - before.0).abs_diff(read.1 - read.0);
    assert!(rest < 4 << 20, "{before:?} {read:?}");
    drop(map);
    assert_eq!(input().0, before.0);
}

/// Shards stay mapped: most of them stand in the total, and in nothing else.
#[test]
fn shards_that_workers_map_are_input_and_no_part_of_the_rest() {
    use featherload::cache::{BuildOptions, CacheBuilder, CacheEncoding};
    let source = tempfile::tempdir().unwrap();
    for i in 0..16 {
        let picture = Picture::rgb(700, 500, i).encode();
        fs::write(source.path().join(format!("{i:02}.jpg")), picture).unwrap();
    }
    let cache = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        encode: CacheEncoding::Raw,
        ..BuildOptions::default()
    };
    let built = CacheBuilder::new(
        featherload::Source::detect(source.path()).unwrap(),
        cache.path(),
        options,
    )
    .num_workers(0)
    .build()
    .unwrap();
    let args = ["--num-workers", "2", "--seconds", "0.5"];
    let r = report(cache.path(), &args, 0);
    let row = &list(&r, "rows")[0];
    let (input, shards) = (number(row, "pss_input_bytes"), built.bytes as f64);
    assert!(
        input > 0.5 * shards && input < 1.1 * shards,
        "{shards}: {row}"
    );
    // By the same pool over the files.
    let files = report(source.path(), &args, 0);
    let files = &list(&files, "rows")[0];
    assert!(number(files, "pss_input_bytes") < 0.1 * shards, "{files}");
    let own = |row| number(row, "pss_own_bytes");
    assert!(own(row) < own(files) + 0.3 * shards, "{row} {files}");
    let pss = number(row, "pss_total_bytes") - number(row, "pss_without_ring_bytes");
    assert!((own(row) + input + pss - number(row, "pss_total_bytes")).abs() < 1.0);
}

/// What `plan` says of the same run.
fn planned(source: &Path, workers: &str) -> f64 {
    let source = source.to_str().unwrap();
    let args = [
        "plan",
        source,
        "--batch-size",
        "8",
        "--num-workers",
        workers,
        "--json",
    ];
    let out = command(&args).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
    number(&plan["memory"], "total_bytes")
}

#[test]
fn the_plan_stands_beside_what_was_measured_and_the_last_line_compares_them() {
    let dir = data(2, 24);
    let args = ["--num-workers", "0,1,2", "--seconds", "0.5"];
    let r = report(dir.path(), &args, 0);
    let mut above = false;
    for row in list(&r, "rows") {
        let plan = planned(dir.path(), &row["workers"].to_string());
        assert_eq!(number(row, "planned_bytes"), plan);
        // No shards, so that all of it counts.
        let measured = number(row, "measured_bytes");
        assert_eq!(measured, number(row, "memory_bytes"));
        // An executable that is not optimised is larger than the plan's.
        assert!(measured < plan + 8.0 * MIB, "{row}");
        above |= measured > plan;
    }
    let verdict = r["verdict"].as_str().unwrap();
    assert_eq!(verdict.starts_with("ABOVE the plan by "), above, "{r}");
    assert_eq!(verdict.starts_with("within the plan; "), !above, "{r}");

    let out = run(dir.path(), &args);
    // Whether it holds is no check that somebody asked for.
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, last) = text.rsplit_once("\nverdict    ").unwrap();
    assert!(last.contains("the plan"), "{text}");
    let tenth = |bytes: f64| format!("{:.1}", (bytes / MIB * 10.0).ceil() / 10.0);
    for workers in ["0", "1", "2"] {
        let plan = tenth(planned(dir.path(), workers));
        let mut lines = text.lines().map(|line| line.split_whitespace());
        let found = lines
            .any(|mut words| words.next() == Some(workers) && words.next() == Some(plan.as_str()));
        assert!(found, "{workers}: {plan} in\n{text}");
    }
}

#[test]
fn all_lines_have_80_columns() {
    let dir = data(2, 48);
    let args = [
        "--num-workers",
        "1,3",
        "--epochs",
        "10",
        "--max-slope-mib=-1000",
    ];
    let out = run(dir.path(), &args);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    for words in ["worker (of 3)", "growth", "FAILED", "pinned", "verdict"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    // The folder has a name without a blank.
    for line in text.lines().skip(1) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn only_the_ring_is_taken_off_and_what_nobody_maps_of_it_is_told() {
    // One picture an epoch uses one row of the eight in each slot.
    let dir = data(1, 1);
    let r = report(dir.path(), &["--num-workers", "1", "--seconds", "0.5"], 0);
    let row = &list(&r, "rows")[0];
    let ring = number(row, "ring_bytes");
    let unmapped = number(row, "ring_unmapped_bytes");
    assert!(unmapped > 0.5 * ring && unmapped < ring, "{row}");
    let total = &row["total"];
    let in_ring = number(total, "pss_ring_bytes");
    assert!(in_ring > 0.0 && in_ring < 0.5 * ring, "{row}");
    // The index is shared memory too.
    assert!(in_ring < number(total, "pss_shmem_bytes"), "{row}");
    let rest = number(row, "pss_without_ring_bytes");
    assert_eq!(number(total, "pss_bytes") - in_ring, rest);
}

/// Tags are closed in the order in which they were opened, quotes in pairs.
fn check_xml(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        let (tag, after) = after.split_once('>').expect("a tag that ends");
        rest = after;
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = |t: &str| t.split_whitespace().next().unwrap_or_default().to_owned();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name(closed)));
        } else if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
            open.push(name(tag));
        }
    }
    assert_eq!(open, Vec::<String>::new());
    assert!(text.contains("<svg "));
}

#[test]
fn a_bound_that_does_not_hold_exits_with_1_and_is_named() {
    let dir = data(1, 24);
    let args = ["--num-workers", "1,2", "--seconds", "0.5"];
    let r = report(
        dir.path(),
        &[&args[..], &["--max-slope-mib=-1000"]].concat(),
        1,
    );
    let broken = list(&r, "broken_bounds");
    assert!(broken[0].as_str().unwrap().contains("--max-slope-mib"));
    let out = run(
        dir.path(),
        &[&args[..], &["--max-slope-mib", "1000"]].concat(),
    );
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    for words in [
        "24 samples",
        "coordinator",
        "worker (of 2)",
        "MiB a worker",
        "page cache",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
}

#[test]
fn epochs_have_medians_and_growth_has_a_bound() {
    let dir = data(1, 48);
    let args = ["--num-workers", "2", "--epochs", "10", "--max-growth-mib"];
    let r = report(dir.path(), &[&args[..], &["1000"]].concat(), 0);
    let row = &list(&r, "rows")[0];
    let epochs = list(row, "epoch_medians");
    assert_eq!(epochs.len(), 10);
    for (i, epoch) in epochs.iter().enumerate() {
        assert_eq!(epoch["epoch"], i);
        assert!(number(epoch, "samples") >= 3.0);
        assert!(number(epoch, "pss_without_ring_bytes") > 0.0);
    }
    let medians: Vec<f64> = epochs.iter().map(|e| number(e, "pss_own_bytes")).collect();
    let middle = |five: &[f64]| {
        let mut five = five.to_vec();
        five.sort_by(f64::total_cmp);
        five[2]
    };
    let growth = (middle(&medians[5..]) - middle(&medians[..5])) / MIB;
    assert!((number(row, "growth_mib") - growth).abs() < 1e-6);
    assert!(number(row, "samples") >= 20.0);
    let broken = report(
        dir.path(),
        &[&args[..4], &["--max-growth-mib=-1000"]].concat(),
        1,
    );
    assert!(
        list(&broken, "broken_bounds")[0]
            .as_str()
            .unwrap()
            .contains("--max-growth-mib")
    );
}

#[test]
fn workers_that_die_are_counted_and_the_samples_are_of_whole_pools() {
    let dir = data(1, 48);
    let args = [
        "--num-workers",
        "2",
        "--seconds",
        "1",
        "--kill-workers-every",
        "100",
    ];
    let r = report(dir.path(), &args, 0);
    let row = &list(&r, "rows")[0];
    assert!(number(row, "worker_deaths") > 0.0);
    assert!(number(row, "samples") >= 20.0);
    let workers = list(row, "processes")
        .iter()
        .filter(|p| p["role"] == "worker");
    assert!(
        workers.count() > 2,
        "those that came later are listed: {row}"
    );
}

#[test]
fn what_cannot_be_measured_is_refused_at_once() {
    let dir = data(1, 3);
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--num-workers", "1,1"], &["twice"]),
        (&["--num-workers", "1,x"], &["1,2,4"]),
        (&["--seconds", "0.1"], &["0.5 to 600"]),
        (&["--epochs", "9"], &["--epochs", "10"]),
        (&["--epochs", "10", "--seconds", "5"], &["--seconds"]),
        (&["--max-growth-mib", "2"], &["--epochs"]),
        (
            &["--max-slope-mib", "4", "--num-workers", "0,4"],
            &["two numbers"],
        ),
        (&["--svg", "/nowhere/chart.svg"], &["--svg", "/nowhere"]),
    ];
    for (args, words) in cases {
        let out = run(dir.path(), args);
        let message = stderr(&out);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert_eq!(out.stdout, b"", "{args:?}");
        for word in words {
            assert!(message.contains(word), "{args:?} lacks {word}: {message}");
        }
    }
    // The measured consumer's own refusals come through with their exit code.
    let out = run(dir.path(), &["--depth", "0"]);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("`--depth` is 0"), "{}", stderr(&out));
    fs::write(dir.path().join("class0/bad.jpg"), b"no picture").unwrap();
    let out = run(dir.path(), &["--num-workers", "1"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    for word in ["bad.jpg", "--on-error skip"] {
        assert!(stderr(&out).contains(word), "{}", stderr(&out));
    }
}

/// A run with its whole tree: this process's child, consumer, coordinator, two
/// workers.
fn started(dir: &Path, mark: &str) -> Child {
    let child = command(&["rss", dir.to_str().unwrap(), "--num-workers", "2"])
        .env(MARK, mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let all = wait_for(Duration::from_secs(30), || {
        (marked(mark).len() == 5).then_some(())
    });
    assert!(all.is_some(), "{:?}", marked(mark));
    child
}

#[test]
fn a_signal_ends_it_and_nothing_outlives_it() {
    let dir = data(1, 24);
    for (signal, code) in [
        (Signal::SIGINT, Some(130)),
        (Signal::SIGTERM, Some(143)),
        (Signal::SIGKILL, None),
    ] {
        let mark = fresh_mark();
        let child = started(dir.path(), &mark);
        assert!(send(child.id() as i32, signal));
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), code, "{signal}");
        assert_eq!(out.stdout, b"", "{signal}");
        wait_gone(&mark, Duration::from_secs(10))
            .unwrap_or_else(|left| panic!("{signal} left {left:?}"));
    }
}

#[test]
fn images_of_a_scene_are_counted_once_whatever_the_workers() {
    let dir = tempfile::tempdir().unwrap();
    let scenes = dir.path().join("scenes");
    let made = command(&["demo", "--scene", scenes.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let scene = scenes.join("opencv");
    let rays = ["rays", scene.to_str().unwrap(), "--rays", "256"];
    let out = command(&[&rays[..], &["--rss", "1,3", "--seconds", "0.5", "--json"]].concat())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = list(&report, "rows");
    assert_eq!(rows.len(), 2);
    for (row, workers) in rows.iter().zip([1usize, 3]) {
        assert_eq!(row["workers"], workers);
        assert_eq!(list(row, "processes").len(), workers + 2);
        check_memory(&row["total"]);
        // Six images of 61 x 47, and what the last page has beside them.
        let store = number(row, "pss_store_bytes");
        let least = 6.0 * 3.0 * 61.0 * 47.0;
        assert!(least <= store && store <= 3.0 * least, "{row}");
        let parts = number(row, "pss_own_bytes") + store + number(&row["total"], "pss_ring_bytes");
        let input = number(&row["total"], "pss_input_bytes");
        let total = number(row, "pss_total_bytes");
        assert!((parts + input - total).abs() < 0.5 * MIB, "{row}");
        assert!(number(row, "peak_pss_bytes") >= total && number(row, "batches") >= 20.0);
    }
    let out = command(&[&rays[..], &["--rss", "0"]].concat())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(
        stderr(&out).contains("0 workers have no processes"),
        "{}",
        stderr(&out)
    );
}
