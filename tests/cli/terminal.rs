//! What reaches a terminal: names of strangers move no cursor, and `preview` leaves the terminal
//! as it was.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use featherload::error::is_harmless;
use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::sys::termios::tcgetattr;
use serde_json::Value;

use crate::common::command::{code, command, featherload, stderr, stdout};
use crate::common::processes::send;
use crate::common::{FEATHERLOAD, class_folder, data};

/// Resets the terminal, ends the line, turns the direction, and is no UTF-8.
const HOSTILE: &[u8] = b"a\x1bc\n\x7f\xc2\x9b1m\xe2\x80\xae\xff";
const SHOWN: &str = "a\\u{1b}c\\n\\u{7f}\\u{9b}1m\\u{202e}";

/// Bytes that a command printed, which may have line breaks and nothing else that acts.
#[track_caller]
fn check(printed: &[u8]) {
    let text = std::str::from_utf8(printed).unwrap();
    let is_good = |c: char| c == '\n' || is_harmless(c);
    assert!(text.chars().all(is_good), "{text:?}");
}

/// Class folders and files with such names; one file is empty.
fn hostile_data() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let plain = class_folder(&dir.path().join("plain"), 1, 2);
    let root = dir.path().join(OsStr::from_bytes(HOSTILE));
    for class in [&b"x"[..], HOSTILE] {
        let class = root.join(OsStr::from_bytes(class));
        fs::create_dir_all(&class).unwrap();
        for entry in fs::read_dir(plain.join("class0")).unwrap() {
            let entry = entry.unwrap();
            let name = [HOSTILE, entry.file_name().as_bytes()].concat();
            fs::copy(entry.path(), class.join(OsStr::from_bytes(&name))).unwrap();
        }
        let empty = [HOSTILE, b".jpg"].concat();
        fs::write(class.join(OsStr::from_bytes(&empty)), b"").unwrap();
    }
    dir
}

#[test]
fn names_of_strangers_move_no_cursor() {
    let dir = hostile_data();
    let root = dir.path().join(OsStr::from_bytes(HOSTILE));
    let gone = root.join("gone");
    let run = |args: &[&str], path: &Path, more: &[&str]| {
        let mut command = command(args);
        command.arg(path).args(more).current_dir(dir.path());
        command.output().unwrap()
    };
    let skip = [
        "--on-error",
        "skip",
        "--batch-size",
        "2",
        "--num-workers",
        "1",
    ];
    for json in [&[][..], &["--json"]] {
        for (args, path, more) in [
            (&["index"][..], &root, &[][..]),
            (&["index"], &gone, &[]),
            (&["plan"], &root, &[]),
            (&["plan"], &gone, &[]),
            (&["bench"], &root, &skip),
            (&["bench", "--batch-size", "2"], &root, &[]),
            (&["preview", "--out", "p.png"], &root, &[]),
            (&["rays"], &root, &[]),
            (&["cache", "verify"], &root, &[]),
        ] {
            let out = run(args, path, &[more, json].concat());
            check(&out.stdout);
            check(&out.stderr);
            if !json.is_empty() && code(&out) == 0 {
                serde_json::from_slice::<Value>(&out.stdout).unwrap();
            }
        }
    }
    let out = run(&["index"], &gone, &[]);
    assert_eq!(stderr(&out).lines().count(), 1, "{}", stderr(&out));
    assert!(stderr(&out).contains(SHOWN), "{}", stderr(&out));
    let out = run(&["bench"], &root, &skip);
    assert!(stdout(&out).contains(SHOWN), "{}", stdout(&out));
    // An argument that no command has.
    let out = run(&[], Path::new("\u{9b}1m"), &[]);
    assert_eq!(code(&out), 2);
    check(&out.stderr);
    // JSON for programs says the same.
    let out = command(&["index", "--json"])
        .arg(&gone)
        .env("FEATHERLOAD_ERRORS", "json")
        .output()
        .unwrap();
    check(&out.stderr);
    let error: Value = serde_json::from_slice(&out.stderr).unwrap();
    let path = error["error"]["path"].as_str().unwrap();
    assert!(path.contains("a\u{1b}c\n\u{7f}\u{9b}1m\u{202e}"), "{path}");
}

#[test]
fn a_path_of_a_hundred_kilobytes_is_not_printed_whole() {
    let long = "x".repeat(100_000);
    for args in [["index", &long], ["plan", &long], ["bench", &long]] {
        let out = featherload(&args);
        let message = stderr(&out);
        assert_eq!(code(&out) & !1, 2, "{}", message.len());
        assert!(message.len() < 20_000, "{}", message.len());
        assert!(message.contains("bytes left out]"), "{}", message.len());
    }
}

#[test]
fn a_state_that_cannot_be_written_loses_no_report() {
    let dir = data(1, 8);
    let files = tempfile::tempdir().unwrap();
    // Longer than a name may be, which shows when the file gets its name.
    let file = files.path().join("x".repeat(300));
    for (option, more) in [
        ("--save-state", "--json"),
        ("--failures", "--json"),
        ("--svg", "-v"),
    ] {
        let out = featherload(&[
            "bench",
            dir.path().to_str().unwrap(),
            "--batch-size",
            "4",
            "--num-workers",
            "1",
            option,
            file.to_str().unwrap(),
            more,
        ]);
        assert_eq!(code(&out), 3, "{option}: {}", stderr(&out));
        assert!(
            stderr(&out).contains("File name too long"),
            "{}",
            stderr(&out)
        );
        match more {
            "--json" => {
                let report: Value = serde_json::from_slice(&out.stdout).unwrap();
                assert_eq!(report["samples"], 8, "{option}");
            }
            _ => assert!(
                stdout(&out).contains("images/s"),
                "{option}: {}",
                stdout(&out)
            ),
        }
    }
}

#[test]
fn a_signal_during_the_question_of_preview_leaves_the_terminal_as_it_was() {
    let dir = data(1, 2);
    for (signal, status) in [
        (Signal::SIGINT, (Some(130), None)),
        (Signal::SIGTERM, (Some(143), None)),
        (Signal::SIGHUP, (None, Some(Signal::SIGHUP as i32))),
        (Signal::SIGQUIT, (None, Some(Signal::SIGQUIT as i32))),
    ] {
        let pty = openpty(None, None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        // The command becomes the one in front of its terminal.
        let mut child = Command::new("setsid")
            .arg("--ctty")
            .arg(FEATHERLOAD)
            .args(["preview", dir.path().to_str().unwrap(), "--rows", "1"])
            .current_dir(dir.path())
            .stdin(end(&pty.slave))
            .stdout(end(&pty.slave))
            .stderr(end(&pty.slave))
            .spawn()
            .unwrap();
        let mut master = File::from(pty.master);
        let mut printed = Vec::new();
        // The last question is put when the terminal has other settings.
        while !printed.ends_with(b"\x1b[c") {
            let mut byte = [0];
            master.read_exact(&mut byte).unwrap();
            printed.extend(byte);
        }
        assert_ne!(tcgetattr(&pty.slave).unwrap(), before);
        send(child.id() as i32, signal);
        let ended = child.wait().unwrap();
        assert_eq!(tcgetattr(&pty.slave).unwrap(), before, "{signal}");
        assert_eq!((ended.code(), ended.signal()), status, "{signal}");
    }
}
