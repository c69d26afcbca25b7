//! Programs that are their own helpers, rightly and in each way that can go wrong:
//! copies of this test's executable, each in a role, with nothing on PATH.

use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use featherload::{Loader, Source};

use crate::common::data;

const ROLE: &str = "FEATHERLOAD_TEST_ROLE";
const DATA: &str = "FEATHERLOAD_TEST_DATA";

/// The first line of `main`, and what a role does wrong before it.
pub fn begin() {
    let is_started_with_arguments = env::args().len() > 1;
    let linger = || {
        thread::spawn(|| thread::sleep(Duration::from_secs(60)));
    };
    match env::var(ROLE).as_deref() {
        Ok("never" | "names itself") => return,
        Ok("late") => linger(),
        Ok("threads") if is_started_with_arguments => linger(),
        Ok("parses") if is_started_with_arguments => std::process::exit(2),
        _ => {}
    }
    featherload::init();
}

/// Plays a role, in a copy that has one: counts the samples of an epoch.
pub fn play() -> Option<ExitCode> {
    let role = env::var(ROLE).ok()?;
    if role == "replaced" {
        let me = env::current_exe().unwrap();
        fs::remove_file(&me).unwrap();
        fs::write(&me, "another program").unwrap();
    }
    let epoch = || -> featherload::Result<usize> {
        let source = Source::detect(env::var_os(DATA).unwrap())?;
        let mut builder = Loader::builder(source).num_workers(2).batch_size(4);
        if role == "names itself" {
            builder = builder.helper(env::current_exe().unwrap());
        }
        let mut loader = builder.build()?;
        let mut samples = 0;
        for batch in loader.epoch() {
            samples += batch?.good_rows().count();
        }
        Ok(samples)
    };
    Some(match epoch() {
        Ok(samples) => {
            println!("{samples} samples");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("Error: {e:?}");
            ExitCode::FAILURE
        }
    })
}

/// A program in `role`, copied into `folder`.
fn program(folder: &Path, role: &str, arguments: &[&str]) -> Output {
    let copy = folder.join("trainer");
    fs::copy(env::current_exe().unwrap(), &copy).unwrap();
    Command::new(&copy)
        .args(arguments)
        .env_clear()
        .env(ROLE, role)
        .env(DATA, folder.join("data"))
        .env("PATH", "/nowhere")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn runs(role: &str) {
    let dir = tempfile::tempdir().unwrap();
    fs::rename(data(2, 3).keep(), dir.path().join("data")).unwrap();
    let out = program(dir.path(), role, &[]);
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{message}");
    assert_eq!(out.stdout, b"6 samples\n");
}

fn fails(role: &str, words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    let out = program(dir.path(), role, &[]);
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.starts_with("Error: "), "{message}");
    for word in words {
        assert!(message.contains(word), "{role}: {message}");
    }
}

pub fn a_program_that_begins_with_init_is_its_helper() {
    runs("right");
}

pub fn a_replaced_program_starts_what_it_is() {
    runs("replaced");
}

pub fn without_init_the_error_names_the_line() {
    fails(
        "never",
        &[
            "add `featherload::init();` as the first line of main",
            "cargo install featherload --features cli",
            "/nowhere/featherload",
        ],
    );
}

/// It would start itself, and that one itself, and so on.
pub fn a_helper_that_never_calls_init_starts_no_other() {
    let words = ["refused to start", "does not call featherload::init()"];
    fails("names itself", &words);
}

pub fn init_behind_a_thread_is_told() {
    fails("late", &["called when 2 threads ran", "first line of main"]);
}

pub fn a_helper_with_threads_says_so() {
    let words = ["refused to start: 2 threads ran", "first line of main"];
    fails("threads", &words);
}

pub fn arguments_that_are_read_before_init_are_told() {
    let words = ["ended before the handshake", "first line of main"];
    fails("parses", &words);
}

pub fn a_stray_argument_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["__coordinator"][..], &["__coordinator", "/tmp/x"]] {
        let out = program(dir.path(), "right", arguments);
        let message = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{message}");
        assert!(message.contains("__coordinator is reserved"), "{message}");
    }
}
