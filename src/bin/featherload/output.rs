//! Printing: one JSON object on stdout, or text for people; progress on a terminal.

use std::io::{IsTerminal, Write};

use featherload::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Prints `value` as one JSON object.
pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|e| Error::io("write JSON", std::io::Error::other(e)))?;
    line(&text)
}

/// Prints a line on stdout; a closed pipe is an error, not a panic.
pub fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").map_err(|e| Error::io("write to stdout", e))
}

/// Prints a line on stderr. With nobody there to read it, the exit code says
/// the rest; `eprintln` would panic.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A progress bar on a terminal, none when piped.
pub fn progress(total: u64, shown: bool) -> ProgressBar {
    if !shown || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} images, {per_sec}, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// `bytes` in MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
