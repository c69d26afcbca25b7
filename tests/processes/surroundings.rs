//! Where a pool cannot start, the error says at once what to change.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use featherload::SandboxStatus;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::common::command::{command, object, stderr};
use crate::common::{FEATHERLOAD, data};

/// A wait for something that does not come takes longer (`HELLO_LIMIT` is 5 s).
const AT_ONCE: Duration = Duration::from_secs(4);

/// A library with a thread of its own, as profilers and allocators have.
const LIBRARY: &str = "
#include <pthread.h>
#include <unistd.h>
static void *live(void *of) { for (;;) pause(); return of; }
__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, 0, live, 0);
}
";

fn library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("threads.c"), folder.join("threads.so"));
    fs::write(&source, LIBRARY).unwrap();
    let out = Command::new("cc")
        .args(["-shared", "-fPIC", "-pthread", "-o"])
        .args([&library, &source])
        .output()
        .expect("a C compiler, `cc`");
    assert!(out.status.success(), "{out:?}");
    library
}

fn bench(data: &Path, workers: &str, make: impl FnOnce(&mut Command)) -> (Output, Duration) {
    let mut command = command(&["bench", data.to_str().unwrap()]);
    command
        .args([
            "--num-workers",
            workers,
            "--batch-size",
            "4",
            "--digest",
            "--json",
        ])
        .env_remove("FEATHERLOAD_HELPER");
    make(&mut command);
    let began = Instant::now();
    (command.output().unwrap(), began.elapsed())
}

#[test]
fn a_preloaded_library_with_a_thread_is_named() {
    let dir = data(1, 8);
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let preload = |c: &mut Command| _ = c.env("LD_PRELOAD", &library);
    let (out, took) = bench(dir.path(), "2", preload);
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(3), "{message}");
    let named = format!("LD_PRELOAD={}", library.display());
    for words in [
        "2 threads ran before",
        &named,
        "without it",
        "unsets LD_PRELOAD",
    ] {
        assert!(message.contains(words), "{message} lacks {words}");
    }
    assert!(took < AT_ONCE, "{took:?}");
    let (alone, _) = bench(dir.path(), "0", preload);
    let (unloaded, _) = bench(dir.path(), "2", |_| ());
    assert_eq!(object(&alone)["digest"], object(&unloaded)["digest"]);
}

/// What the error of the test above says to do.
#[test]
fn a_script_that_unsets_ld_preload_is_a_helper() {
    let dir = data(1, 8);
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let script = folder.path().join("helper");
    let text = format!(
        "#!/bin/sh\nunset LD_PRELOAD\nexec {} \"$@\"\n",
        crate::common::FEATHERLOAD
    );
    fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    // `doctor` starts a pool with the helper that a program would find.
    let out = command(&["doctor", "--json"])
        .env("LD_PRELOAD", &library)
        .env("FEATHERLOAD_HELPER", &script)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let pool = findings.iter().find(|f| f["name"] == "pool").unwrap();
    assert_eq!(pool["verdict"], "ok", "{pool}");
    drop(dir);
}

/// Hides /proc from the process that is to be.
fn without_proc() -> io::Result<()> {
    // SAFETY: takes flags; the new namespaces are this process's alone.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: strings that end with 0, no data.
    let mounted = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c"/proc".as_ptr(),
            c"tmpfs".as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    match mounted {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[test]
fn a_run_needs_no_temporary_folder() {
    let dir = data(1, 8);
    // Not even root makes a file there.
    let (out, _) = bench(dir.path(), "2", |c| {
        c.env("TMPDIR", "/proc");
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
}

/// As a container does it: the call has the action's answer.
fn refusing(call: i64, first: Option<u64>, action: SeccompAction) -> BpfProgram {
    let of = |value| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    let rules = first.map(|value| SeccompRule::new(vec![of(value).unwrap()]).unwrap());
    let list = [(call, rules.into_iter().collect())].into();
    let target = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(list, SeccompAction::Allow, action, target).unwrap();
    filter.try_into().unwrap()
}

#[test]
fn where_a_container_refuses_the_sandbox_auto_goes_on_and_require_says_so() {
    let possible = SandboxStatus::possible();
    if !(possible.calls && possible.files) {
        println!("SKIP: this system has no sandbox to be refused: {possible:?}");
        return;
    }
    let dir = data(2, 8);
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    let kill = SeccompAction::KillProcess;
    for (call, first, action, kept) in [
        (libc::SYS_seccomp, Some(filter), denied.clone(), "files"),
        (libc::SYS_seccomp, None, kill.clone(), "files"),
        (libc::SYS_landlock_restrict_self, None, denied, "calls"),
        (
            libc::SYS_landlock_restrict_self,
            None,
            kill.clone(),
            "calls",
        ),
        (libc::SYS_landlock_create_ruleset, None, kill, "calls"),
    ] {
        let program = refusing(call, first, action);
        let run = |choice: &str| {
            let program = program.clone();
            bench(dir.path(), "2", |c| {
                c.args(["--sandbox", choice]);
                // SAFETY: a system call, in a child of one thread.
                unsafe {
                    c.pre_exec(move || {
                        seccompiler::apply_filter(&program).map_err(io::Error::other)
                    })
                };
            })
        };
        let (out, _) = run("auto");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let report = object(&out);
        let both =
            ["calls", "files"].map(|part| report["loader"]["sandboxed"][part].as_bool().unwrap());
        assert_eq!(both, [kept != "files", kept == "files"], "{report}");
        let lost = ["system calls", "files"][usize::from(kept == "calls")];
        let message = stderr(&out);
        assert!(
            message.contains(&format!("not limited to a list of {lost}: ")),
            "{message}"
        );
        let (out, _) = run("off");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let (out, _) = run("require");
        assert_ne!(out.status.code(), Some(0));
        assert!(stderr(&out).contains("it is required"), "{}", stderr(&out));
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error_of_its_name() {
    let dir = data(1, 8);
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 1; exec \"$@\"", "sh", FEATHERLOAD]);
    let out = command
        .args(["cache", "build", "--num-workers", "2"])
        .args([dir.path(), cache.path()])
        .output()
        .unwrap();
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(3), "{message}");
    assert!(message.contains("File too large"), "{message}");
}

#[test]
fn without_proc_the_error_says_so() {
    let dir = data(1, 8);
    let hide = |c: &mut Command| {
        // SAFETY: two system calls, nothing is allocated.
        unsafe { c.pre_exec(without_proc) };
    };
    let mut probe = Command::new("true");
    hide(&mut probe);
    if let Err(e) = probe.status() {
        println!("NOT CHECKED: this system gives tests no namespaces of their own: {e}");
        return;
    }
    let (out, took) = bench(dir.path(), "2", hide);
    let message = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{message}");
    for words in ["need /proc", "mount it", "--num-workers 0"] {
        assert!(message.contains(words), "{message} lacks {words}");
    }
    assert!(took < AT_ONCE, "{took:?}");
    let (alone, _) = bench(dir.path(), "0", hide);
    let (seen, _) = bench(dir.path(), "2", |_| ());
    assert_eq!(object(&alone)["digest"], object(&seen)["digest"]);
    let mut doctor = command(&["doctor", "--json"]);
    hide(&mut doctor);
    let out = doctor.output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let proc = findings.iter().find(|f| f["name"] == "/proc").unwrap();
    assert_eq!(proc["verdict"], "missing", "{proc}");
}
