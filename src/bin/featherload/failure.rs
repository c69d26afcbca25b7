//! An error as a JSON object, for programs that run the command line.

use std::path::PathBuf;

use featherload::Error;
use serde::Serialize;

#[derive(Serialize)]
pub struct Failure {
    error: Told,
}

#[derive(Serialize)]
struct Told {
    /// Whose fault it is: `config`, `dataset`, `sample`, `device`, `system` or `worker`.
    kind: &'static str,
    /// As the library says it: options in backticks, by their names.
    text: String,
    path: Option<PathBuf>,
    option: Option<&'static str>,
    line: Option<u64>,
    id: Option<u64>,
    /// Of a sample: what is wrong with it.
    fault: Option<&'static str>,
}

pub fn of(error: &Error) -> Failure {
    let kind = match error {
        Error::Config { .. } => "config",
        Error::Dataset { .. } => "dataset",
        Error::Sample { .. } => "sample",
        Error::Device { .. } => "device",
        Error::Io { .. } => "system",
        _ => "worker",
    };
    Failure {
        error: Told {
            kind,
            text: error.to_string(),
            path: error.path().map(Into::into),
            option: error.option_name(),
            line: error.line(),
            id: error.id(),
            fault: error.fault().map(|fault| fault.kind.name()),
        },
    }
}
