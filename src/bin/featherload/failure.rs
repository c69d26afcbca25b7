//! An error as a JSON object, for programs that run the command line: the last line of
//! stderr where the environment has `FEATHERLOAD_ERRORS=json`.

use featherload::Error;
use serde_json::{Value, json};

/// Whether the caller is such a program.
pub fn is_asked_for() -> bool {
    std::env::var_os("FEATHERLOAD_ERRORS").is_some_and(|form| form == "json")
}

pub fn of(error: &Error) -> Value {
    let kind = match error {
        Error::Config { .. } => "config",
        Error::Dataset { .. } => "dataset",
        Error::Sample { .. } => "sample",
        Error::Device { .. } => "device",
        Error::Io { .. } => "system",
        _ => "worker",
    };
    // Whose fault it is; what is wrong, with options in backticks, by the library's names; where.
    json!({ "error": {
        "kind": kind,
        "text": error.to_string(),
        // What is no UTF-8 of it is replaced.
        "path": error.path().map(|p| p.display().to_string()),
        "option": error.option_name(),
        "line": error.line(),
        "id": error.id(),
        // Of a sample: what is wrong with it.
        "fault": error.fault().map(|fault| fault.kind.name()),
    }})
}
