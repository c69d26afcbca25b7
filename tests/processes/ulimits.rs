//! Limits of a process (`ulimit`): each refusal names the limit that was reached.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use featherload::Sandboxed;

use crate::common::command::{object, stderr};
use crate::common::{FEATHERLOAD, data};

/// `bench` over `data` under limits as the shell sets them.
fn limited(limits: &str, data: &Path, sandbox: &str) -> Output {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limits} && exec \"$@\"")])
        .args(["sh", FEATHERLOAD, "bench"])
        .arg(data)
        .args(["--workers", "2", "--batch", "4", "--json"])
        .args(["--sandbox", sandbox])
        .env_remove("FEATHERLOAD_HELPER")
        .stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn a_sandbox_is_lost_by_a_limit_of_its_name_alone() {
    let possible = Sandboxed::possible();
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
        let said = stderr(&out);
        let kept = out.status.success() && {
            runs += 1;
            let sandboxed = &object(&out)["loader"]["sandboxed"];
            sandboxed["calls"] == true && sandboxed["files"] == true
        };
        assert!(kept || said.contains(name), "{limit}: {said}");
        assert!(!said.contains("allocator"), "{limit}: {said}");
        if out.status.success() && !kept {
            let out = limited(&limit, dir.path(), "require");
            let said = stderr(&out);
            assert!(!out.status.success(), "{limit}");
            assert!(
                said.contains("it is required") && said.contains(name),
                "{limit}: {said}"
            );
        }
    }
    assert!(runs > 0, "no run fits in these limits");
}

#[test]
fn a_small_stack_is_refused_with_its_limit() {
    let dir = data(1, 8);
    let out = limited("-s 100", dir.path(), "auto");
    let said = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    for words in ["100 KiB", "512 KiB", "ulimit -s 8192"] {
        assert!(said.contains(words), "{said} lacks {words}");
    }
}

#[test]
fn threads_without_memory_do_not_blame_the_limit_of_processes() {
    let dir = data(1, 8);
    let outs = [2_000, 2_500, 3_000, 4_000].map(|kib| {
        let out = limited(&format!("-d {kib}"), dir.path(), "auto");
        let said = stderr(&out);
        assert!(!said.contains("pids.max"), "{kib}: {said}");
        said
    });
    assert!(
        outs.iter()
            .any(|said| said.contains("no memory for a stack") && said.contains("ulimit -d")),
        "{outs:?}"
    );
}
