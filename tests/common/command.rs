//! The command line: what it says and how it ends.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::FEATHERLOAD;

/// `featherload` with these arguments and nothing on its input.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(FEATHERLOAD);
    command.args(args).stdin(Stdio::null());
    command
}

pub fn featherload(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

pub fn code(out: &Output) -> i32 {
    out.status.code().unwrap_or(-1)
}

pub fn stdout(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// The object that a command prints, which must end with 0.
#[track_caller]
pub fn object(out: &Output) -> Value {
    assert_eq!(code(out), 0, "{}", stderr(out));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The one line that a refused command says.
#[track_caller]
pub fn refusal(out: &Output) -> String {
    assert_eq!(out.stdout, b"", "{}", stderr(out));
    refusal_of_plan(out)
}

/// The same of a plan, which is printed in front of it.
pub fn refusal_of_plan(out: &Output) -> String {
    let message = stderr(out);
    assert_eq!(code(out), 2, "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.ends_with('\n'), "{message}");
    message
}
