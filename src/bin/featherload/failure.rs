//! Errors as JSON objects, for programs that run the command line. The object is the last line of
//! stderr if the environment has `FEATHERLOAD_ERRORS=json`.

use featherload::Error;
use serde_json::{Value, json};

/// Whether the caller requests JSON errors.
pub fn is_requested() -> bool {
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
    // `text` names options in backticks, by the library's names.
    json!({ "error": {
        "kind": kind,
        "text": error.to_string(),
        // Bytes that are not UTF-8 are replaced.
        "path": error.path().map(|p| p.display().to_string()),
        "option": error.option_name(),
        "line": error.line(),
        "id": error.id(),
        // For a sample: its fault.
        "fault": error.fault().map(|fault| fault.kind.name()),
    }})
}
