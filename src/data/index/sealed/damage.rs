//! Why bytes are no index.

use std::fmt;

use super::head::VERSION;

/// Why bytes are no index, or no longer one.
#[derive(Debug, PartialEq)]
pub(crate) enum Damage {
    NotAnIndex,
    Version { found: u32 },
    Length { said: u64, found: u64 },
    Checksum { of: &'static str },
    Counts { of: &'static str },
    Sample { id: u64, what: &'static str },
    Class { number: u64, what: &'static str },
    Shard { number: u64, what: &'static str },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnIndex => f.write_str("not an index file"),
            Self::Version { found } => {
                write!(
                    f,
                    "an index of form {found}, where form {VERSION} is understood"
                )
            }
            Self::Length { said, found } => {
                write!(f, "damaged: {found} bytes, where its head says {said}")
            }
            Self::Checksum { of } => write!(f, "damaged: the checksum of its {of} is wrong"),
            Self::Counts { of } => write!(f, "damaged: its number of {of} cannot be"),
            Self::Sample { id, what } => write!(f, "damaged: the {what} of sample {id}"),
            Self::Class { number, what } => write!(f, "damaged: the {what} of class {number}"),
            Self::Shard { number, what } => write!(f, "damaged: the {what} of shard {number}"),
        }
    }
}

impl std::error::Error for Damage {}
