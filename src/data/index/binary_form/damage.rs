//! Reasons why bytes are not a valid index.

use std::fmt;

use super::head::VERSION;
use crate::error;

/// Why bytes are not a valid index.
#[derive(Debug, PartialEq)]
pub(crate) enum IndexDamage {
    NotAnIndex,
    /// The bytes of its samples were in memory, which no file has.
    WithoutMemory,
    Version {
        found: u32,
    },
    Length {
        said: u64,
        found: u64,
    },
    /// The index needs more memory than is available.
    TooLarge {
        bytes: u64,
        room: u64,
    },
    Checksum {
        of: &'static str,
    },
    Counts {
        of: &'static str,
    },
    Sample {
        id: u64,
        what: &'static str,
    },
    Class {
        number: u64,
        what: &'static str,
    },
    Shard {
        number: u64,
        what: &'static str,
    },
}

impl fmt::Display for IndexDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnIndex => f.write_str("not an index file"),
            Self::WithoutMemory => f.write_str("of samples in memory, which no file holds"),
            Self::Version { found } => {
                write!(
                    f,
                    "an index of version {found}, and this featherload reads version {VERSION}"
                )
            }
            Self::Length { said, found } => {
                write!(f, "damaged: it has {found} bytes, but its head says {said}")
            }
            Self::TooLarge { bytes, room } => write!(
                f,
                "{}, over half of the available memory ({}): it is damaged, or needs more memory",
                error::size_rounded_up(*bytes),
                error::size_rounded_down(*room)
            ),
            Self::Checksum { of } => write!(f, "damaged: the checksum of its {of} is wrong"),
            Self::Counts { of } => write!(f, "damaged: its number of {of} is impossible"),
            Self::Sample { id, what } => write!(f, "damaged: the {what} of sample {id}"),
            Self::Class { number, what } => write!(f, "damaged: the {what} of class {number}"),
            Self::Shard { number, what } => write!(f, "damaged: the {what} of shard {number}"),
        }
    }
}

impl std::error::Error for IndexDamage {}

/// Rejects an index over half of the available memory, because it is in memory twice while it is
/// read. A sparse file can claim any size without taking disk space, and its zeros may be valid
/// labels.
pub(crate) fn check_room(bytes: u64, available: Option<u64>) -> Result<(), IndexDamage> {
    match available.map(|bytes| bytes / 2) {
        Some(room) if bytes > room => Err(IndexDamage::TooLarge { bytes, room }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_over_half_of_the_memory_is_refused() {
        assert_eq!(check_room(5, None), Ok(()));
        assert_eq!(check_room(5, Some(10)), Ok(()));
        let e = check_room(5, Some(9)).unwrap_err();
        assert_eq!(e, IndexDamage::TooLarge { bytes: 5, room: 4 });
    }
}
