//! An error as a JSON object, for programs that run the command line: the last line of
//! stderr where the environment has `FEATHERLOAD_ERRORS=json`.

use featherload::Error;
use serde::Serialize;
use serde_json::{Value, json};

/// Whether the caller is such a program.
pub fn is_asked_for() -> bool {
    std::env::var_os("FEATHERLOAD_ERRORS").is_some_and(|form| form == "json")
}

#[derive(Serialize)]
struct Failure {
    /// Whose fault it is: `config`, `dataset`, `sample`, `device`, `system` or `worker`.
    kind: &'static str,
    /// As the library says it: options in backticks, by their names.
    text: String,
    /// What is no UTF-8 of it is replaced.
    path: Option<String>,
    option: Option<&'static str>,
    line: Option<u64>,
    id: Option<u64>,
    /// Of a sample: what is wrong with it.
    fault: Option<&'static str>,
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
    let failure = Failure {
        kind,
        text: error.to_string(),
        path: error.path().map(|p| p.display().to_string()),
        option: error.option_name(),
        line: error.line(),
        id: error.id(),
        fault: error.fault().map(|fault| fault.kind.name()),
    };
    json!({ "error": failure })
}
