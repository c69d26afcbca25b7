//! Printing: one JSON object on stdout, or text for people; progress on a terminal; output files.
//!
//! Nothing else of the command line writes to stdout or stderr (`tests/layers` checks it). Each
//! line passes `printable`, so that a foreign name cannot control the terminal.
//!
//! - `fields`: the printed report, one fact a line, within 80 columns.

pub mod fields;

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use featherload::error::{is_harmless, printable_within};
use featherload::index::OWN_PREFIX;
use featherload::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, Serializer};
use tempfile::{NamedTempFile, TempPath};

/// Most bytes of a line: foreign names may have any length.
const LONGEST_LINE: usize = 16 << 10;

/// Prints `value` as one JSON object.
pub fn json(value: &impl Serialize) -> Result<()> {
    write(&harmless_json(&json_text(value)?))
}

/// Prints a report, as JSON or as text.
pub fn report<T: Serialize>(
    report: &T,
    as_json: bool,
    print: impl FnOnce(&T) -> Result<()>,
) -> Result<()> {
    match as_json {
        true => json(report),
        false => print(report),
    }
}

/// Like [`report`], for a plan. The text of a rejected run has the plan, then the reason.
///
/// # Errors
/// The run is rejected.
pub fn plan<T: Serialize>(
    plan: &T,
    refusal: Option<Error>,
    as_json: bool,
    print: impl FnOnce(&T) -> Result<()>,
) -> Result<()> {
    if refusal.is_none() || !as_json {
        report(plan, as_json, print)?;
    }
    refusal.map_or(Ok(()), Err)
}

/// A value for another process or a file.
pub fn json_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::io("write JSON", io::Error::other(e)))
}

/// Escapes terminal control characters in JSON: JSON itself escapes only C0.
fn harmless_json(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        if c < '\u{7f}' || is_harmless(c) {
            harmless.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            harmless.push_str(&format!("\\u{unit:04x}"));
        }
    }
    harmless
}

/// A path in JSON. Bytes that are not UTF-8 are replaced.
pub fn lossy<S: Serializer>(path: &Path, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// Prints one line on stdout, [`printable`](featherload::error::printable).
pub fn line(text: &str) -> Result<()> {
    write(&printable_within(text, LONGEST_LINE))
}

/// Prints lines on stdout, each like [`line`]. Foreign text with line breaks must be escaped
/// before.
pub fn lines(text: &str) -> Result<()> {
    text.split('\n').try_for_each(line)
}

/// Prints a script that this program generates, unchanged.
pub fn script(text: &str) -> Result<()> {
    write(text)
}

/// Writes to stdout. If the reader has closed the pipe (`| head -1`), the command continues to its
/// end and its usual exit code.
fn write(text: &str) -> Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("write to stdout", e)),
        _ => Ok(()),
    }
}

/// Prints one line on stderr, printable. Ignores a closed stderr, for which `eprintln` would panic.
pub fn print_to_stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_within(text, LONGEST_LINE));
}

/// Like [`print_to_stderr`], for one JSON object.
pub fn print_json_to_stderr(object: &serde_json::Value) {
    let _ = writeln!(io::stderr(), "{}", harmless_json(&object.to_string()));
}

/// A progress bar on a terminal. Hidden if stderr is not a terminal, or `shown` is false.
pub fn progress(total: u64, template: &str, shown: bool) -> ProgressBar {
    if !shown || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Like [`progress`], with the time left.
pub fn progress_of(total: u64, what: &str, shown: bool) -> ProgressBar {
    let template = format!("{{bar:20}} {{human_pos}}/{{human_len}} {what}, {{eta}} left");
    progress(total, &template, shown)
}

/// Like [`progress_of`], for bytes. The total is set later.
pub fn bytes(shown: bool) -> ProgressBar {
    let template = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    progress(0, template, shown)
}

/// Like [`progress`], for `total` steps, without the time left.
pub fn steps(total: u64, what: &str, shown: bool) -> ProgressBar {
    progress(total, &format!("{{bar:40}} {{pos}}/{{len}} {what}"), shown)
}

/// A bar before a message of the caller.
pub const WITH_MESSAGE: &str = "{bar:10} {msg}";

/// `bytes` in MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// MiB to a tenth, rounded up: a printed upper limit must not be too low.
pub fn mib_at_most(bytes: u64) -> f64 {
    (mib(bytes) * 10.0).ceil() / 10.0
}

/// A count with thousands separators: `1,200`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as text, to the unit that matters.
pub fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds.div_ceil(60)) {
        (_, ..=1) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {} min", minutes - 60 * hours),
    }
}

/// A measured time in milliseconds, or in seconds to a tenth.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{:.0} ms", short * 1e3),
        long if long < 1000.0 => format!("{long:.1} s"),
        long => format!("{} s", grouped(long.round() as u64)),
    }
}

/// Bytes as text: whole MiB, or GiB to a tenth.
pub fn size(bytes: u64) -> String {
    match mib(bytes) {
        mib if mib < 10.0 => format!("{mib:.1} MiB"),
        mib if mib < 10_240.0 => format!("{} MiB", grouped(mib.round() as u64)),
        mib => format!("{:.1} GiB", mib / 1024.0),
    }
}

/// The folder that contains `file`.
fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Like [`check_writable`], for a text file: a file that is not text is rejected.
pub fn check_text_writable(option: &str, file: &Path) -> Result<()> {
    if fs::metadata(file).is_ok_and(|there| there.is_file()) && !is_text(file)? {
        return Err(Error::config(format!(
            "{option} cannot write {}: the file exists and is not text, so this command did not \
             write it: name another file",
            file.display()
        )));
    }
    check_writable(option, file)
}

/// Checks the file of `option` before the run, rather than after hours of it.
pub fn check_writable(option: &str, file: &Path) -> Result<()> {
    let refused =
        |why: String| Error::config(format!("{option} cannot write {}: {why}", file.display()));
    if file.is_dir() {
        return Err(refused("it is a folder: name a file".into()));
    }
    // A device is checked only when it is written.
    if fs::metadata(file).is_ok_and(|there| !there.is_file()) {
        return Ok(());
    }
    let folder = folder_of(file);
    // The file has no name, so nothing remains when the process ends.
    tempfile::tempfile_in(folder).map_err(|e| {
        refused(format!(
            "no file can be made in {}: {e}: name another place",
            folder.display()
        ))
    })?;
    Ok(())
}

/// Whether the start of a file is text.
fn is_text(file: &Path) -> Result<bool> {
    let mut beginning = Vec::new();
    let read = File::open(file).and_then(|file| file.take(512).read_to_end(&mut beginning));
    read.map_err(|e| Error::io_at("read", file, e))?;
    Ok(!beginning.contains(&0))
}

/// Writes a file completely or not at all, even if the machine stops.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut whole = WholeFile::begin(file)?;
    whole.add(bytes)?;
    whole.end()
}

/// A file that is written piece by piece, and appears completely or not at all. A device or a pipe
/// is written directly, and not replaced.
pub struct WholeFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// The temporary name of the unfinished file.
    temporary: Option<TempPath>,
}

impl WholeFile {
    pub fn begin(path: &Path) -> Result<Self> {
        let is_device = fs::metadata(path).is_ok_and(|there| !there.is_file());
        let begun = match is_device {
            true => File::options()
                .write(true)
                .open(path)
                .map(|file| (file, None)),
            false => tempfile::Builder::new()
                .prefix(OWN_PREFIX)
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder_of(path))
                .map(NamedTempFile::into_parts)
                .map(|(file, temporary)| (file, Some(temporary))),
        };
        let (file, temporary) = begun.map_err(|e| Error::io_at("write", path, e))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            temporary,
        })
    }

    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|e| Error::io_at("write", &self.path, e))
    }

    pub fn end(self) -> Result<()> {
        let Self {
            path,
            file,
            temporary,
        } = self;
        let end = || {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            let Some(temporary) = temporary else {
                return Ok(());
            };
            file.sync_all()?;
            temporary.persist(&path)?;
            File::open(folder_of(&path))?.sync_all()
        };
        end().map_err(|e| Error::io_at("write", &path, e))
    }
}

/// Lines of coordinator and workers that stderr did not accept.
pub fn dropped_lines(lines: u64) -> Result<()> {
    if lines == 0 {
        return Ok(());
    }
    line(&format!(
        "{lines:>10} lines of coordinator and workers were dropped: stderr was not read"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_and_a_terminal_obeys_nothing_of_it() {
        let foreign = "\u{1b}[2J\u{7f}\u{9b}1m\u{202e}\u{e0041} ä\u{1f600}\n";
        let text = harmless_json(&serde_json::json!({ foreign: foreign }).to_string());
        assert!(text.chars().all(is_harmless), "{text}");
        assert!(text.contains("\\u007f\\u009b1m\\u202e\\udb40\\udc41 ä\u{1f600}"));
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back[foreign], foreign);
    }

    #[test]
    fn times_are_in_the_unit_that_matters() {
        for (seconds, words) in [
            (0.2, "1 s"),
            (59.5, "60 s"),
            (61.0, "2 min"),
            (3599.0, "60 min"),
            (3601.0, "1 h 1 min"),
            (7200.0, "2 h 0 min"),
        ] {
            assert_eq!(time(seconds), words);
        }
    }

    #[test]
    fn sizes_and_measured_times_are_in_the_unit_that_matters() {
        let mib = |n: u64| n << 20;
        for (bytes, words) in [
            (0, "0.0 MiB"),
            (mib(9) + mib(1) / 2, "9.5 MiB"),
            (mib(1234), "1,234 MiB"),
            (mib(15_000), "14.6 GiB"),
        ] {
            assert_eq!(size(bytes), words);
        }
        for (s, words) in [(0.0851, "85 ms"), (3.12, "3.1 s"), (1234.5, "1,235 s")] {
            assert_eq!(seconds(s), words);
        }
    }
}
