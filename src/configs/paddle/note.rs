//! What was read otherwise than it was written, and what was left out: one line
//! each, for people. `featherload plan` prints them.

use std::fmt;

use crate::recipe::file::{MapKey, TextPosition};

/// Something about a config that its reader should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigNote {
    /// Line of the config, from 1; none where the note is about none of them.
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

/// Notes as they come up.
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
