//! The public error of this crate, with one variant per cause.
//!
//! Used in every process; holds no resources and prints nothing. Texts are lower-case fragments
//! that name the object, the number and the option to change. So callers can add a prefix. Sizes
//! are written by [`size`], and by [`size_rounded_up`] and [`size_rounded_down`] where two are
//! compared.
//!
//! - `printable`: makes untrusted text safe for a terminal;
//! - `lost_picture`: the reason in place of an image that could not be downloaded;
//! - `limits`: the limit of this process (`ulimit`) that explains a system error.

pub(crate) mod limits;
pub(crate) mod lost_picture;
mod printable;

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

pub(crate) use self::printable::pieces;
pub use self::printable::{is_harmless, printable, printable_within};

/// Default stack size of a thread in bytes (`std::thread`).
const THREAD_STACK: usize = 2 << 20;

/// Result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of this crate, with one variant per cause.
///
/// `{}` and `{:?}` print the same line for people, so that a `main` that returns [`Result`] prints
/// it. It is one line, and [`printable()`]: names of files or answers of a store cannot control the
/// terminal. Programs match on the variants, or use methods:
///
/// ```
/// # use featherload::{Loader, Source};
/// let error = Source::detect("photos/nowhere").unwrap_err();
/// assert!(error.is_dataset() && error.is_usage());
/// assert_eq!(error.path(), Some("photos/nowhere".as_ref()));
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[non_exhaustive]
pub enum Error {
    /// An option, or a combination of options, that cannot work.
    #[non_exhaustive]
    Config {
        /// The option of the builder to change, if it is a single one.
        option: Option<&'static str>,
        what: String,
    },
    /// The data set as a whole: a missing folder, a bad line in a list file.
    #[non_exhaustive]
    Dataset {
        path: PathBuf,
        /// Line of a text file, counted from 1.
        line: Option<u64>,
        what: String,
    },
    /// A single sample. This is not a failure of the loader: the on-error policy decides.
    #[non_exhaustive]
    Sample {
        id: u64,
        path: PathBuf,
        fault: SampleFault,
    },
    /// A worker or the coordinator ended, or could not be started.
    #[non_exhaustive]
    Worker { what: String },
    /// Every slot of the ring is held by a live batch. Temporary: drop a batch.
    #[non_exhaustive]
    SlotsHeld { what: String },
    /// The accelerator or its driver.
    #[non_exhaustive]
    Device { what: String },
    /// Two processes with different protocols, or damaged shared memory.
    #[non_exhaustive]
    Protocol { what: String },
    /// A failed operation of the operating system.
    #[non_exhaustive]
    Io {
        operation: String,
        path: Option<PathBuf>,
        source: io::Error,
    },
}

/// Constructors.
impl Error {
    pub fn config(what: impl Into<String>) -> Self {
        Self::Config {
            option: None,
            what: what.into(),
        }
    }

    /// An option of the builder that cannot work.
    pub fn option(option: &'static str, what: impl Into<String>) -> Self {
        Self::Config {
            option: Some(option),
            what: what.into(),
        }
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

    /// The same error, for a second caller. Of an error of the system it keeps number or words.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::Config { option, what } => Self::Config {
                option: *option,
                what: what.clone(),
            },
            Self::Dataset { path, line, what } => Self::Dataset {
                path: path.clone(),
                line: *line,
                what: what.clone(),
            },
            Self::Sample { id, path, fault } => Self::Sample {
                id: *id,
                path: path.clone(),
                fault: fault.clone(),
            },
            Self::Worker { what } => Self::Worker { what: what.clone() },
            Self::SlotsHeld { what } => Self::SlotsHeld { what: what.clone() },
            Self::Device { what } => Self::Device { what: what.clone() },
            Self::Protocol { what } => Self::Protocol { what: what.clone() },
            Self::Io {
                operation,
                path,
                source,
            } => Self::Io {
                operation: operation.clone(),
                path: path.clone(),
                source: match source.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => io::Error::new(source.kind(), source.to_string()),
                },
            },
        }
    }

    pub fn worker(what: impl Into<String>) -> Self {
        Self::Worker { what: what.into() }
    }

    pub fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into() }
    }

    pub(crate) fn device(what: impl Into<String>) -> Self {
        Self::Device { what: what.into() }
    }

    /// An operation without a path, such as `fork`.
    pub fn io(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            operation: operation.into(),
            path: None,
            source: source.into(),
        }
    }

    /// An operation on a file. A path with a NUL byte is a usage error instead.
    pub fn io_at(
        operation: impl Into<String>,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        let path = path.as_ref();
        if path.as_os_str().as_bytes().contains(&0) {
            return Self::config(format!(
                "the path {path:?} has a NUL byte, which is not allowed in a file name: correct \
                 the path"
            ));
        }
        Self::Io {
            operation: operation.into(),
            path: Some(path.to_owned()),
            source: source.into(),
        }
    }

    /// The text of a JSON parser, with single quotes instead of backticks, which mark options.
    pub(crate) fn words_of_json(e: &impl fmt::Display) -> String {
        cut(e.to_string().replace('`', "'"))
    }

    /// A process or a thread that could not be started. The text names the limit that was reached.
    pub fn not_started(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        // One error number for two reasons.
        match source.raw_os_error() == Some(libc::EAGAIN) {
            true if has_no_room(THREAD_STACK) => Self::io(
                format!(
                    "{what}: no memory for a stack of {}",
                    size(THREAD_STACK as u64)
                ),
                io::Error::from_raw_os_error(libc::ENOMEM),
            ),
            true => Self::io(format!("{what} ({})", limits::processes()), source),
            false => Self::io(what, source),
        }
    }

    /// Adds advice to the reason of a bad sample. Leaves other errors as they are.
    #[must_use]
    pub fn advise_on_sample(self, advice: &str) -> Self {
        match self {
            Self::Sample { id, path, fault } => Self::Sample {
                id,
                path,
                fault: fault.advised(advice),
            },
            other => other,
        }
    }
}

/// Queries.
impl Error {
    /// Whether other options or other input fix it. The command line exits with 2 for these, and
    /// with 3 for the rest.
    pub fn is_usage(&self) -> bool {
        self.is_config() || self.is_dataset()
    }

    /// Whether it is temporary, and ends after the caller drops batches.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::SlotsHeld { .. })
    }

    /// Whether options cannot work.
    pub fn is_config(&self) -> bool {
        matches!(self, Self::Config { .. })
    }

    /// Whether a data set cannot be used as a whole.
    pub fn is_dataset(&self) -> bool {
        matches!(self, Self::Dataset { .. })
    }

    /// Whether it is about one bad image.
    pub fn is_sample(&self) -> bool {
        matches!(self, Self::Sample { .. })
    }

    /// Whether workers or the coordinator ended, or could not be started.
    pub fn is_worker(&self) -> bool {
        matches!(self, Self::Worker { .. })
    }

    /// Whether it comes from the accelerator or its driver.
    pub fn is_device(&self) -> bool {
        matches!(self, Self::Device { .. })
    }

    /// Whether two processes have different protocols.
    pub fn is_protocol(&self) -> bool {
        matches!(self, Self::Protocol { .. })
    }

    /// Whether an operation of the operating system failed; `source` has its error.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    /// Whether a limit of open files or of memory was reached. The file itself may be fine.
    pub fn is_limit(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        source.raw_os_error().is_some_and(limits::is_reached)
    }

    /// The file or folder that failed.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Dataset { path, .. } | Self::Sample { path, .. } => Some(path),
            Self::Io { path, .. } => path.as_deref(),
            _ => None,
        }
    }

    /// The line of the text file at [`Error::path`], counted from 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Dataset { line, .. } => *line,
            _ => None,
        }
    }

    /// The number of the failed sample in the index.
    pub fn id(&self) -> Option<u64> {
        match self {
            Self::Sample { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Why the sample failed.
    pub fn fault(&self) -> Option<&SampleFault> {
        match self {
            Self::Sample { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// The option of the builder to change, if it is a single one.
    pub fn option_name(&self) -> Option<&'static str> {
        match self {
            Self::Config { option, .. } => *option,
            _ => None,
        }
    }
}

/// The same line as [`Display`](fmt::Display), because `main` prints it for an error that it
/// returns.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.text()))
    }
}

impl Error {
    /// Its text as bytes, including untrusted parts.
    fn text(&self) -> Vec<u8> {
        let at = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let about = |head: Vec<u8>, rest: String| [head, rest.into_bytes()].concat();
        match self {
            Self::Config { what, .. }
            | Self::Worker { what }
            | Self::SlotsHeld { what }
            | Self::Device { what } => what.clone().into_bytes(),
            Self::Protocol { what } => format!("protocol: {what}").into_bytes(),
            Self::Dataset {
                path,
                line: Some(line),
                what,
            } => about(at(path), format!(":{line}: {what}")),
            Self::Dataset { path, what, .. } => about(at(path), format!(": {what}")),
            Self::Sample { id, path, fault } => {
                let head = format!("sample {id} (").into_bytes();
                about([head, at(path)].concat(), format!("): {}", fault.reason))
            }
            Self::Io {
                operation,
                path: Some(path),
                source,
            } => about(
                [format!("{operation} ").into_bytes(), at(path)].concat(),
                format!(": {source}{}", Limit(source)),
            ),
            Self::Io {
                operation, source, ..
            } => format!("{operation}: {source}{}", Limit(source)).into_bytes(),
        }
    }
}

/// The limit of this process that explains a system error, after its text.
struct Limit<'a>(&'a io::Error);

impl fmt::Display for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.raw_os_error().and_then(limits::explain) {
            Some(limit) => write!(f, "; {limit}"),
            None => Ok(()),
        }
    }
}

fn has_no_room(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_err()
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why one sample failed: a kind for programs, and a sentence for people.
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

    /// The same fault, with advice after its reason.
    pub(crate) fn advised(mut self, advice: &str) -> Self {
        // Some decoders end their texts with a dot.
        let length = self.reason.trim_end_matches('.').len();
        self.reason.truncate(length);
        self.reason.push_str("; ");
        self.reason.push_str(advice);
        self
    }
}

/// The reason, [`printable()`].
impl fmt::Display for SampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.reason))
    }
}

/// The kinds of sample faults. Their numbers are part of the layout of shared memory.
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
    /// The decoder rejected the data.
    Corrupt = 4,
    /// A format, or a variant of it, that is not supported.
    Unsupported = 5,
    /// Over `max_pixels` or `max_scratch`, or too large for an operation of the recipe.
    TooLarge = 6,
    /// The file shrank or became unreadable while it was mapped.
    Shrunk = 7,
    /// Decoding it killed its worker repeatedly.
    Quarantined = 8,
    /// Decoding it exceeded the time limit.
    TimedOut = 9,
    /// The image has changed since the headers of the data set were read.
    Changed = 10,
    /// Smaller than a crop of the recipe, or its box lies outside of it.
    TooSmall = 11,
    /// The system had no memory for it. This tells nothing about the file.
    NoMemory = 12,
    /// The object at its address could not be downloaded. The reason is in its place.
    NotDownloaded = 13,
    /// An unknown number: of another version, or in damaged shared memory.
    Unknown = 255,
}

impl FaultKind {
    /// A fault of this kind.
    pub(crate) fn fault(self, reason: impl Into<String>) -> SampleFault {
        SampleFault::new(self, reason)
    }

    /// The kind for a number from shared memory.
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
            13 => Self::NotDownloaded,
            _ => Self::Unknown,
        }
    }

    /// A short name for reports.
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
            Self::NotDownloaded => "not downloaded",
            Self::Unknown => "unknown",
        }
    }
}

/// A size as text: `512 MiB`, `23.1 GiB`, with three digits. A whole number of a unit is exact, so
/// that a limit reads as the user wrote it.
pub fn size(bytes: u64) -> String {
    in_words(bytes, f64::round)
}

/// Like [`size`], rounded up, for a needed size.
pub fn size_rounded_up(bytes: u64) -> String {
    in_words(bytes, f64::ceil)
}

/// Like [`size`], rounded down, for an available size. So a need that exceeds it by one byte still
/// reads larger.
pub fn size_rounded_down(bytes: u64) -> String {
    in_words(bytes, f64::floor)
}

fn in_words(bytes: u64, round: fn(f64) -> f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    match bytes {
        1 => return "1 byte".to_owned(),
        0..=1023 => return format!("{bytes} bytes"),
        _ => {}
    }
    let mut unit = bytes.ilog2() as usize / 10 - 1;
    let value = |unit: usize| {
        let value = bytes as f64 / 2f64.powi(10 * (unit as i32 + 1));
        let digits = match value {
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        let step = 10f64.powi(digits);
        round(value * step) / step
    };
    // 1,023.9 of a unit reads as one of the next unit.
    if value(unit) >= 1024.0 && unit + 1 < UNITS.len() {
        unit += 1;
    }
    format!("{} {}", value(unit), UNITS[unit])
}

/// Shortens a text to its beginning and its end, because a quoted value may have any length.
fn cut(text: String) -> String {
    const FIRST: usize = 200;
    const LAST: usize = 120;
    let mut ends = text.char_indices().map(|(at, _)| at);
    let (first, last) = (ends.nth(FIRST), ends.nth_back(LAST));
    match (first, last) {
        (Some(first), Some(last)) => format!("{}...{}", &text[..first], &text[last..]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn sizes_are_words_of_three_digits() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (512 << 20, "512 MiB"),
            (2 << 30, "2 GiB"),
            (24_776_802_304, "23.1 GiB"),
            ((1 << 30) - 1, "1 GiB"),
            (1 << 40, "1 TiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(bytes), words, "{bytes}");
        }
    }

    #[test]
    fn a_need_reads_larger_than_the_room_that_it_exceeds() {
        for limit in [1u64 << 20, 100_000_000, 16 << 30, 2_621_440_000, 1023 << 20] {
            assert_ne!(
                size_rounded_up(limit + 1),
                size_rounded_down(limit),
                "{limit}"
            );
        }
        assert_eq!(
            (size_rounded_up(100 << 20), size_rounded_down(100 << 20)),
            ("100 MiB".into(), "100 MiB".into())
        );
        assert_eq!(
            (
                size_rounded_up((100 << 20) + 1),
                size_rounded_down((101 << 20) - 1)
            ),
            ("101 MiB".into(), "100 MiB".into())
        );
    }

    #[test]
    fn texts_name_the_object_and_the_line() {
        let e = Error::dataset_line("train.txt", 7, "label 'x' is not a number");
        assert_eq!(e.to_string(), "train.txt:7: label 'x' is not a number");
        assert!(e.is_usage());
        let e = Error::io_at("open", "a.jpg", io::Error::from_raw_os_error(libc::ENOENT));
        assert!(e.to_string().starts_with("open a.jpg: No such file"));
        assert!(!e.is_usage() && e.is_io());
        assert_eq!(e.path(), Some(Path::new("a.jpg")));
        // An invalid name of a file is the caller's mistake.
        let why = std::fs::File::open("a\0b").unwrap_err();
        let e = Error::io_at("open", "a\0b", why);
        assert!(e.is_config(), "{e}");
        assert_eq!(
            e.to_string(),
            "the path \"a\\0b\" has a NUL byte, which is not allowed in a file name: correct the path"
        );
    }

    #[test]
    fn no_error_prints_what_a_terminal_obeys() {
        let foreign = "a\u{1b}[2J\n\u{9b}\u{202e}";
        let shown = "a\\u{1b}[2J\\n\\u{9b}\\u{202e}";
        let fault = SampleFault::new(FaultKind::Corrupt, foreign);
        assert_eq!(fault.to_string(), shown);
        let path = || PathBuf::from(foreign);
        let refused = || io::Error::other(foreign);
        for (e, text) in [
            (Error::config(foreign), shown.to_owned()),
            (Error::option("depth", foreign), shown.to_owned()),
            (Error::worker(foreign), shown.to_owned()),
            (Error::protocol(foreign), format!("protocol: {shown}")),
            (Error::dataset(path(), foreign), format!("{shown}: {shown}")),
            (
                Error::dataset_line(path(), 7, foreign),
                format!("{shown}:7: {shown}"),
            ),
            (
                Error::Sample {
                    id: 3,
                    path: path(),
                    fault,
                },
                format!("sample 3 ({shown}): {shown}"),
            ),
            (Error::io("fork", refused()), format!("fork: {shown}")),
            (
                Error::io_at("open", path(), refused()),
                format!("open {shown}: {shown}"),
            ),
        ] {
            assert_eq!(e.to_string(), text);
            assert_eq!(format!("{e:?}"), text);
        }
        let no_text = OsStr::from_bytes(b"\xff.jpg");
        assert_eq!(Error::dataset(no_text, "x").to_string(), "\\xff.jpg: x");
    }

    #[test]
    fn main_prints_the_line_for_people() {
        let fault = SampleFault::new(FaultKind::Truncated, "the file ends early");
        let e = Error::Sample {
            id: 12,
            path: "a/b.jpg".into(),
            fault,
        };
        assert_eq!(
            format!("Error: {e:?}"),
            "Error: sample 12 (a/b.jpg): the file ends early"
        );
        assert_eq!((e.id(), e.option_name()), (Some(12), None));
        assert_eq!(
            e.advise_on_sample("remove it").to_string(),
            "sample 12 (a/b.jpg): the file ends early; remove it"
        );
        let e = Error::option("depth", "`depth` is 0: use at least 1");
        assert_eq!((e.id(), e.option_name()), (None, Some("depth")));
    }

    #[test]
    fn fault_codes_round_trip() {
        for code in 1..=12u8 {
            assert_eq!(FaultKind::from_code(code) as u8, code);
        }
        assert_eq!(FaultKind::from_code(200), FaultKind::Unknown);
    }
}
