//! The one public error, split by whose fault it is.
//!
//! Used in every process; holds no resources and prints nothing. Texts are
//! lower-case fragments that name the object, the number and the option to
//! change, so that callers can put them behind a prefix of their own. Sizes in them
//! are words: [`size`], and [`needed`] beside [`room`] where two are compared.
//!
//! - `printable`: text of strangers, which a terminal shows and does not obey;
//! - `limits`: the limit of this process (`ulimit`) that explains what the system refused.

pub(crate) mod limits;
mod printable;

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

pub(crate) use self::printable::pieces;
pub use self::printable::{is_harmless, printable, printable_within};

/// Bytes of the stack of a thread, where none are requested (`std::thread`).
const THREAD_STACK: usize = 2 << 20;

/// What every fallible function of the crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by whose fault it is.
///
/// `{}` and `{:?}` print the same line for people, so that a `main` that returns
/// [`Result`] ends with it. It is one line, and [`printable`]: what a file's name or a store's
/// answer has in it moves no cursor. Programs match on the variants, or ask:
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
        /// The option of the builder, where one is at fault.
        option: Option<&'static str>,
        what: String,
    },
    /// The data set as a whole: a missing folder, a list file's bad line.
    #[non_exhaustive]
    Dataset {
        path: PathBuf,
        /// Line of a text file, counted from 1.
        line: Option<u64>,
        what: String,
    },
    /// One sample. Data, not a failure of the loader: the on-error policy decides.
    #[non_exhaustive]
    Sample {
        id: u64,
        path: PathBuf,
        fault: SampleFault,
    },
    /// A worker, or the coordinator, ended or could not be started.
    #[non_exhaustive]
    Worker { what: String },
    /// Every slot of the ring is held by live batches. Passes when one is dropped.
    #[non_exhaustive]
    SlotsHeld { what: String },
    /// The accelerator or its driver.
    #[non_exhaustive]
    Device { what: String },
    /// Two processes that do not speak alike, or shared memory that does not
    /// hold what the protocol promises.
    #[non_exhaustive]
    Protocol { what: String },
    /// The operating system refused an operation.
    #[non_exhaustive]
    Io {
        operation: String,
        path: Option<PathBuf>,
        source: io::Error,
    },
}

/// Making one.
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

    /// An operation on a file. A path with a NUL byte is a mistake of its writer's, not the
    /// system's.
    pub fn io_at(
        operation: impl Into<String>,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        let path = path.as_ref();
        if path.as_os_str().as_bytes().contains(&0) {
            return Self::config(format!(
                "the path {path:?} has a NUL byte, which no name of a file has: correct it where \
                 it is written"
            ));
        }
        Self::Io {
            operation: operation.into(),
            path: Some(path.to_owned()),
            source: source.into(),
        }
    }

    /// What a reader of JSON says of a file, with its words in single quotes: words in backticks
    /// are options.
    pub(crate) fn words_of_json(e: &impl fmt::Display) -> String {
        cut(e.to_string().replace('`', "'"))
    }

    /// A process or a thread that the system did not start: names the limit that was reached.
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

    /// The same error with advice behind a bad sample's reason; others stay as they are.
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

/// Asking what it is.
impl Error {
    /// True for what the caller can mend by other options or other input:
    /// the command line exits with 2 for these and with 3 for the rest.
    pub fn is_usage(&self) -> bool {
        self.is_config() || self.is_dataset()
    }

    /// True for what passes by itself once the caller drops batches.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::SlotsHeld { .. })
    }

    /// True for options that cannot work.
    pub fn is_config(&self) -> bool {
        matches!(self, Self::Config { .. })
    }

    /// True for a data set that cannot be used as a whole.
    pub fn is_dataset(&self) -> bool {
        matches!(self, Self::Dataset { .. })
    }

    /// True for one bad image.
    pub fn is_sample(&self) -> bool {
        matches!(self, Self::Sample { .. })
    }

    /// True when workers or the coordinator ended, or could not be started.
    pub fn is_worker(&self) -> bool {
        matches!(self, Self::Worker { .. })
    }

    /// True for the accelerator and its driver.
    pub fn is_device(&self) -> bool {
        matches!(self, Self::Device { .. })
    }

    /// True when two processes do not speak alike.
    pub fn is_protocol(&self) -> bool {
        matches!(self, Self::Protocol { .. })
    }

    /// True when the operating system refused something; `source` says why.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    /// True when a limit of open files or of memory was reached. It says nothing of what was to
    /// be opened.
    pub fn is_limit(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        source.raw_os_error().is_some_and(limits::is_reached)
    }

    /// The file or folder that it is about.
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

    /// The sample that gave no pixels, as a number of the index.
    pub fn id(&self) -> Option<u64> {
        match self {
            Self::Sample { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Why the sample gave no pixels.
    pub fn fault(&self) -> Option<&SampleFault> {
        match self {
            Self::Sample { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// The option of the builder to change, where one alone is at fault.
    pub fn option_name(&self) -> Option<&'static str> {
        match self {
            Self::Config { option, .. } => *option,
            _ => None,
        }
    }
}

/// The line that [`Display`](fmt::Display) prints: what `main` shows of an error
/// that it returns.
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
    /// Its text as bytes, with all that strangers have put into it.
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

/// What stands behind an error of the system where a limit of this process explains it.
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

    /// The same with advice behind its reason.
    pub(crate) fn advised(mut self, advice: &str) -> Self {
        // Some decoders end their sentences.
        let length = self.reason.trim_end_matches('.').len();
        self.reason.truncate(length);
        self.reason.push_str("; ");
        self.reason.push_str(advice);
        self
    }
}

/// The reason, [`printable`].
impl fmt::Display for SampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.reason))
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
    /// Smaller than a crop of the recipe, or its box lies outside of it.
    TooSmall = 11,
    /// The system gave no memory for it: nothing that its bytes say.
    NoMemory = 12,
    /// A fault number that this version does not know, or no fault of the sample's:
    /// shared memory that was destroyed.
    Unknown = 255,
}

impl FaultKind {
    /// A fault of this kind.
    pub(crate) fn fault(self, reason: impl Into<String>) -> SampleFault {
        SampleFault::new(self, reason)
    }

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

/// Bytes as people say them: `512 MiB`, `23.1 GiB`, to three digits. Exact where they are a
/// whole number of a unit, so that a limit reads as it was given.
pub fn size(bytes: u64) -> String {
    in_words(bytes, f64::round)
}

/// The same, rounded up: what a run needs is never less than the text says.
pub fn size_rounded_up(bytes: u64) -> String {
    in_words(bytes, f64::ceil)
}

/// The same, rounded down: what there is room for. A need that exceeds it by one byte still
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
    // 1,023.9 of a unit is one of the next.
    if value(unit) >= 1024.0 && unit + 1 < UNITS.len() {
        unit += 1;
    }
    format!("{} {}", value(unit), UNITS[unit])
}

/// The beginning and the end of a text that quotes a file: a value in it may have any length.
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
        // A name that no file has is the caller's mistake.
        let why = std::fs::File::open("a\0b").unwrap_err();
        let e = Error::io_at("open", "a\0b", why);
        assert!(e.is_config(), "{e}");
        assert_eq!(
            e.to_string(),
            "the path \"a\\0b\" has a NUL byte, which no name of a file has: correct it where it \
             is written"
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
