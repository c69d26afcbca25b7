//! `featherload doctor`: its lines, its object, and that a promise that falls
//! is named and ends it with 1.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::command::{self, code, command, stderr, stdout};
use crate::common::{FEATHERLOAD, data};

fn doctor(args: &[&str], env: &[(&str, &str)]) -> Output {
    command(&["doctor"])
        .args(args)
        .env_remove("FEATHERLOAD_HELPER")
        .env_remove("FEATHERLOAD_CPU")
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

/// The one object, and the exit code that belongs to it.
fn report(args: &[&str], env: &[(&str, &str)]) -> (Value, i32) {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let out = doctor(&args, env);
    assert_eq!(out.stderr, b"", "{}", stderr(&out));
    assert_eq!(stdout(&out).lines().count(), 1);
    (serde_json::from_slice(&out.stdout).unwrap(), code(&out))
}

fn finding<'a>(report: &'a Value, name: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    let mut named = findings.iter().filter(|f| f["name"] == name);
    let found = named.next();
    assert!(named.next().is_none(), "two of {name}");
    found.unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn verdict<'a>(report: &'a Value, name: &str) -> &'a str {
    finding(report, name)["verdict"].as_str().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn where_these_tests_run_everything_is_there() {
    let (report, code) = report(&[], &[]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["broken_promises"], Value::Array(Vec::new()));
    for found in report["findings"].as_array().unwrap() {
        for key in ["name", "value", "verdict", "meaning"] {
            let text = found[key].as_str().unwrap();
            assert!(!text.is_empty() && !text.contains('\n'), "{key} of {found}");
        }
    }
    for name in [
        "memfd_create",
        "pidfd_open",
        "close_range",
        "pool",
        "helper",
    ] {
        assert_eq!(verdict(&report, name), "ok", "{report}");
    }
    let locked = finding(&report, "RLIMIT_MEMLOCK")["meaning"].as_str();
    assert!(
        locked.unwrap().contains("the driver pins the ring"),
        "{report}"
    );
    for name in ["kernel", "CPUs", "memory", "RLIMIT_NOFILE", "RLIMIT_AS"] {
        assert_ne!(verdict(&report, name), "missing", "{report}");
    }
    let pool = finding(&report, "pool")["value"].as_str().unwrap();
    assert!(pool.contains("ms to the first batch"), "{pool}");
    let memory = finding(&report, "memory of workers")["value"].as_str();
    assert!(memory.unwrap().contains("MiB PSS"), "{report}");
}

#[test]
fn the_lines_say_what_the_object_says() {
    let (report, _) = report(&[], &[]);
    let out = doctor(&[], &[]);
    assert_eq!(code(&out), 0);
    let text = stdout(&out);
    let lines: Vec<&str> = text.lines().collect();
    let findings = report["findings"].as_array().unwrap();
    let begins = lines.iter().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(begins, findings.len() + 1, "{text}");
    // Each finding on one line again.
    let joined = text.replace(&format!("\n{:32}", ""), " ");
    for (line, found) in joined.lines().zip(findings) {
        assert!(
            line.starts_with(found["verdict"].as_str().unwrap()),
            "{line}"
        );
        for key in ["name", "meaning"] {
            let message = found[key].as_str().unwrap();
            // Memory and times change between the two.
            assert!(
                message.contains("up to --depth") || line.contains(message),
                "{line}"
            );
        }
    }
    for line in &lines {
        // A path has no blank to break at.
        let has_path = line.contains('/');
        assert!(has_path || line.chars().count() <= 80, "{line}");
    }
    assert_eq!(
        lines[lines.len() - 1],
        "everything that a run needs is there"
    );
}

#[test]
fn what_falls_is_named_and_the_exit_code_is_1() {
    let elsewhere = tempfile::tempdir().unwrap();
    let wrong = elsewhere.path().join("featherload");
    fs::write(&wrong, "#!/bin/sh\nexit 0\n").unwrap();
    let mut mode = fs::metadata(&wrong).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&wrong, mode).unwrap();
    for (variable, value, missing, word) in [
        (
            "FEATHERLOAD_HELPER",
            "/nowhere/featherload",
            &["helper", "pool"][..],
            "/nowhere/featherload",
        ),
        ("FEATHERLOAD_HELPER", text(&wrong), &["pool"], "handshake"),
        (
            "FEATHERLOAD_CPU",
            "avx9000",
            &["instruction set", "pool"],
            "avx9000",
        ),
        ("TMPDIR", "/nowhere/at/all", &["pool"], "/nowhere/at/all"),
    ] {
        let env = [(variable, value)];
        let (report, code) = report(&[], &env);
        assert_eq!(code, 1, "{variable}={value}: {report}");
        for name in missing {
            assert_eq!(verdict(&report, name), "missing", "{report}");
        }
        let pool = finding(&report, "pool");
        assert!(pool["value"].as_str().unwrap().contains(word), "{pool}");
        let promises = report["broken_promises"].as_array().unwrap();
        assert!(promises.contains(&pool["promise"]), "{report}");

        let out = doctor(&[], &env);
        assert_eq!(command::code(&out), 1);
        for promise in promises {
            let line = format!("not kept here: {}", promise.as_str().unwrap());
            assert!(stdout(&out).contains(&line), "{}", stdout(&out));
        }
    }
}

#[test]
fn limits_are_seen_and_do_not_break_a_promise() {
    let (report, code) = report(&[], &[("FEATHERLOAD_CPU", "scalar")]);
    assert_eq!(code, 0, "{report}");
    let level = finding(&report, "instruction set");
    assert!(
        level["value"].as_str().unwrap().contains("scalar"),
        "{level}"
    );

    let out = Command::new("sh")
        .args([
            "-c",
            "ulimit -Sn 24; exec \"$0\" doctor --json",
            FEATHERLOAD,
        ])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(verdict(&report, "RLIMIT_NOFILE"), "limited", "{report}");
    let found = finding(&report, "RLIMIT_NOFILE")["value"].as_str();
    assert!(found.unwrap().starts_with("24 "), "{report}");
}

#[test]
fn a_data_set_is_looked_at_where_it_lies() {
    let dir = data(2, 2);
    let (seen, code) = report(&[text(dir.path())], &[]);
    assert_eq!(code, 0, "{seen}");
    assert_eq!(finding(&seen, "samples")["value"], "4, 4 of them opened");
    assert_ne!(verdict(&seen, "file system"), "missing", "{seen}");

    // Beside class folders too, and without following a FIFO.
    let fifo = dir.path().join("class0/pipe.jpg");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
    fs::copy(
        dir.path().join("class0/000.jpg"),
        dir.path().join("flat.jpg"),
    )
    .unwrap();
    let (seen, code) = report(&[text(dir.path())], &[]);
    assert_eq!(code, 0, "{seen}");
    let samples = finding(&seen, "samples");
    assert_eq!(samples["verdict"], "limited");
    let meaning = samples["meaning"].as_str().unwrap();
    assert!(
        meaning.contains("pipe.jpg: not a regular file"),
        "{meaning}"
    );

    let gone = tempfile::tempdir().unwrap();
    for name in ["a.jpg", "b.jpg"] {
        std::os::unix::fs::symlink("nowhere", gone.path().join(name)).unwrap();
    }
    let (seen, code) = report(&[text(gone.path())], &[]);
    assert_eq!((code, verdict(&seen, "samples")), (1, "missing"), "{seen}");
    assert_eq!(seen["broken_promises"][0], "the data set can be read");
}

#[test]
fn a_wrong_source_is_bad_input() {
    let empty = tempfile::tempdir().unwrap();
    for path in ["/nowhere/at/all", text(empty.path())] {
        let out = doctor(&[path], &[]);
        assert_eq!(code(&out), 2);
        assert_eq!(out.stdout, b"");
        assert!(stderr(&out).contains(path));
    }
}
