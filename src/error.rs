//! The one public error, split by whose fault it is.
//!
//! Used in every process; holds no resources and prints nothing. Texts are
//! lower-case fragments that name the object, the number and the option to
//! change, so that callers can put them behind a prefix of their own.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// What every fallible function of the crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by whose fault it is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option, or a combination of options, that cannot work.
    Config { what: String },
    /// The data set as a whole: a missing folder, a list file's bad line.
    Dataset {
        path: PathBuf,
        /// Line of a text file, counted from 1.
        line: Option<u64>,
        what: String,
    },
    /// One sample. Data, not a failure of the loader: the on-error policy decides.
    Sample {
        id: u64,
        path: PathBuf,
        fault: SampleFault,
    },
    /// A worker, or the coordinator, ended or could not be started.
    Worker { what: String },
    /// Every slot of the ring is held by live batches. Passes when one is dropped.
    SlotsHeld { what: String },
    /// The accelerator or its driver.
    Device { what: String },
    /// Two processes that do not speak alike, or shared memory that does not
    /// hold what the protocol promises.
    Protocol { what: String },
    /// The operating system refused an operation.
    Io {
        operation: String,
        path: Option<PathBuf>,
        source: io::Error,
    },
}

impl Error {
    pub fn config(what: impl Into<String>) -> Self {
        Self::Config { what: what.into() }
    }

    pub fn dataset(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Dataset {
            path: path.into(),
            line: None,
            what: what.into(),
        }
    }

    pub fn dataset_line(path: impl Into<PathBuf>, line: u64, what: impl Into<String>) -> Self {
        Self::Dataset {
            path: path.into(),
            line: Some(line),
            what: what.into(),
        }
    }

    pub fn worker(what: impl Into<String>) -> Self {
        Self::Worker { what: what.into() }
    }

    pub fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into() }
    }

    /// An operation without a path, such as `fork`.
    pub fn io(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            operation: operation.into(),
            path: None,
            source: source.into(),
        }
    }

    /// An operation on a file.
    pub fn io_at(
        operation: impl Into<String>,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            operation: operation.into(),
            path: Some(path.as_ref().to_owned()),
            source: source.into(),
        }
    }

    /// True for what the caller can mend by other options or other input:
    /// the command line exits with 2 for these and with 3 for the rest.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Config { .. } | Self::Dataset { .. })
    }

    /// True for what passes by itself once the caller drops batches.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::SlotsHeld { .. })
    }

    /// True for one bad image.
    pub fn is_sample(&self) -> bool {
        matches!(self, Self::Sample { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { what }
            | Self::Worker { what }
            | Self::SlotsHeld { what }
            | Self::Device { what } => f.write_str(what),
            Self::Protocol { what } => write!(f, "protocol: {what}"),
            Self::Dataset {
                path,
                line: Some(line),
                what,
            } => write!(f, "{}:{line}: {what}", path.display()),
            Self::Dataset { path, what, .. } => write!(f, "{}: {what}", path.display()),
            Self::Sample { id, path, fault } => {
                write!(f, "sample {id} ({}): {fault}", path.display())
            }
            Self::Io {
                operation,
                path: Some(path),
                source,
            } => write!(f, "{operation} {}: {source}", path.display()),
            Self::Io {
                operation, source, ..
            } => write!(f, "{operation}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why one sample gave no pixels: a kind that programs can match on, and a
/// sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SampleFault {
    #[serde(serialize_with = "name")]
    pub kind: FaultKind,
    pub reason: String,
}

fn name<S: Serializer>(kind: &FaultKind, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_str(kind.name())
}

impl SampleFault {
    pub fn new(kind: FaultKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for SampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The kinds of sample faults. The numbers travel through shared memory and
/// are part of its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum FaultKind {
    /// The file could not be opened or read.
    Unreadable = 1,
    /// Not a regular file: a folder, a FIFO, a device.
    NotRegular = 2,
    /// The data end before the image does.
    Truncated = 3,
    /// The decoder refused the data.
    Corrupt = 4,
    /// A format, or a form of it, that is not served.
    Unsupported = 5,
    /// Over `max_pixels` or `max_scratch`, or too large for an operation of the recipe.
    TooLarge = 6,
    /// The file shrank or became unreadable while it was mapped.
    Shrunk = 7,
    /// Decoding it killed its worker, more than once.
    Quarantined = 8,
    /// Decoding it took longer than the time limit.
    TimedOut = 9,
    /// Another picture than when the headers of the data set were read.
    Changed = 10,
    /// Smaller than a crop of the recipe.
    TooSmall = 11,
    /// The system gave no memory for it: nothing that its bytes say.
    NoMemory = 12,
    /// A fault number that this version does not know, or no fault of the sample's:
    /// shared memory that was destroyed.
    Unknown = 255,
}

impl FaultKind {
    /// The kind behind a number out of shared memory.
    pub fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Unreadable,
            2 => Self::NotRegular,
            3 => Self::Truncated,
            4 => Self::Corrupt,
            5 => Self::Unsupported,
            6 => Self::TooLarge,
            7 => Self::Shrunk,
            8 => Self::Quarantined,
            9 => Self::TimedOut,
            10 => Self::Changed,
            11 => Self::TooSmall,
            12 => Self::NoMemory,
            _ => Self::Unknown,
        }
    }

    /// A short name, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::NotRegular => "not a regular file",
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::TooLarge => "too large",
            Self::Shrunk => "shrank while mapped",
            Self::Quarantined => "quarantined",
            Self::TimedOut => "timed out",
            Self::Changed => "changed",
            Self::TooSmall => "too small",
            Self::NoMemory => "no memory",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_object_and_the_line() {
        let e = Error::dataset_line("train.txt", 7, "label 'x' is no number");
        assert_eq!(e.to_string(), "train.txt:7: label 'x' is no number");
        assert!(e.is_usage());
        let e = Error::io_at("open", "a.jpg", io::Error::from_raw_os_error(libc::ENOENT));
        assert!(e.to_string().starts_with("open a.jpg: No such file"));
        assert!(!e.is_usage());
    }

    #[test]
    fn fault_codes_round_trip() {
        for code in 1..=12u8 {
            assert_eq!(FaultKind::from_code(code) as u8, code);
        }
        assert_eq!(FaultKind::from_code(200), FaultKind::Unknown);
    }
}
