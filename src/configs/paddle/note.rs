//! Notes for the user: settings with another meaning here, and skipped operations. `featherload
//! plan` prints one line for each.

use std::fmt;

use crate::recipe::file::{MapKey, TextPosition};

/// A note on a config for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigNote {
    /// Line of the config, from 1. None: the note is not about a line.
    pub line: Option<u64>,
    pub text: String,
}

impl fmt::Display for ConfigNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The notes collected so far.
#[derive(Debug, Default)]
pub(crate) struct NoteList(pub(crate) Vec<ConfigNote>);

impl NoteList {
    pub(crate) fn at(&mut self, at: TextPosition, text: impl Into<String>) {
        self.0.push(ConfigNote {
            line: Some(at.line as u64),
            text: text.into(),
        });
    }

    pub(crate) fn general(&mut self, text: impl Into<String>) {
        self.0.push(ConfigNote {
            line: None,
            text: text.into(),
        });
    }
}

/// An operation that `--skip-unknown-ops` left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOperation {
    pub name: String,
    /// Line of the config, from 1.
    pub line: u64,
}

impl SkippedOperation {
    pub(crate) fn of(key: &MapKey) -> Self {
        Self {
            name: key.name.clone(),
            line: key.at.line as u64,
        }
    }
}
