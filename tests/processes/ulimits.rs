//! Limits of a process (`ulimit`): each refusal names the limit that was reached.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use featherload::SandboxStatus;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::command::{object, stderr};
use crate::common::processes::{children, coordinator_of, send, wait_for};
use crate::common::{FEATHERLOAD, data};

/// How long something may take that takes milliseconds.
const HANG: Duration = Duration::from_secs(8);

/// `bench` over `data` under limits as the shell sets them.
fn limited(limits: &str, data: &Path, sandbox: &str) -> Output {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limits} && exec \"$@\"")])
        .args(["sh", FEATHERLOAD, "bench"])
        .arg(data)
        .args(["--num-workers", "2", "--batch-size", "4", "--json"])
        .args(["--sandbox", sandbox])
        .env_remove("FEATHERLOAD_HELPER")
        .stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn a_sandbox_is_lost_by_a_limit_of_its_name_alone() {
    let possible = SandboxStatus::possible();
    if !(possible.calls && possible.files) {
        println!("SKIP: this system has no sandbox to be lost: {possible:?}");
        return;
    }
    let dir = data(1, 8);
    let files = (10..=14).map(|n| (format!("-n {n}"), "ulimit -n"));
    let memory = [20_000, 40_000].map(|kib| (format!("-d {kib}"), "ulimit -d"));
    let mut runs = 0;
    for (limit, name) in files.chain(memory) {
        let out = limited(&limit, dir.path(), "auto");
        let message = stderr(&out);
        let kept = out.status.success() && {
            runs += 1;
            let sandboxed = &object(&out)["loader"]["sandboxed"];
            sandboxed["calls"] == true && sandboxed["files"] == true
        };
        assert!(kept || message.contains(name), "{limit}: {message}");
        assert!(!message.contains("allocator"), "{limit}: {message}");
        if out.status.success() && !kept {
            let out = limited(&limit, dir.path(), "require");
            let message = stderr(&out);
            assert!(!out.status.success(), "{limit}");
            assert!(
                message.contains("it is required") && message.contains(name),
                "{limit}: {message}"
            );
        }
    }
    assert!(runs > 0, "no run fits in these limits");
}

#[test]
fn a_small_stack_is_refused_with_its_limit() {
    let dir = data(1, 8);
    let out = limited("-s 100", dir.path(), "auto");
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{message}");
    for words in ["100 KiB", "512 KiB", "ulimit -s 8192"] {
        assert!(message.contains(words), "{message} lacks {words}");
    }
}

/// A worker's sandbox has no call that reads limits: naming one would end it.
#[test]
fn a_worker_without_descriptors_fails_its_samples_and_lives() {
    let dir = data(1, 8);
    let mut child = Command::new(FEATHERLOAD)
        .args([
            "bench",
            dir.path().to_str().unwrap(),
            "--num-workers",
            "1",
            "--batch-size",
            "4",
        ])
        .args(["--epochs", "1000000", "--json", "--on-error", "skip"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id() as i32;
    let worker = wait_for(HANG, || {
        let all = children(coordinator_of(id)?);
        all.into_iter()
            .find(|process| process.name == "featherload-wk")
    });
    let worker = worker.expect("a worker");
    let limited = Command::new("prlimit")
        .args(["--pid", &worker.pid.to_string(), "--nofile=3:3"])
        .status()
        .unwrap();
    assert!(limited.success());
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none());
    send(id, Signal::SIGINT);
    let out = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["worker_deaths"], 0, "{}", stderr(&out));
    let reason = report["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("raise it with ulimit -n"), "{reason}");
}

#[test]
fn threads_without_memory_do_not_blame_the_limit_of_processes() {
    let dir = data(1, 8);
    let outs = [2_000, 2_500, 3_000, 4_000].map(|kib| {
        let out = limited(&format!("-d {kib}"), dir.path(), "auto");
        let message = stderr(&out);
        assert!(!message.contains("pids.max"), "{kib}: {message}");
        message
    });
    assert!(
        outs.iter()
            .any(|message| message.contains("no memory for a stack")
                && message.contains("ulimit -d")),
        "{outs:?}"
    );
}
