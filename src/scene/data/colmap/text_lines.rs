//! Reads a text model line by line, and the fields of a line.
//!
//! Runs in the consumer. Keeps one line, of limited length.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::scene::data::bounds::quoted;
use crate::scene::data::transforms_keys::open_error;
use crate::sys::regular_file;

/// Longest line that is kept. A needed line that is longer is not from a text model. Tracks of
/// points may be longer: the excess is dropped.
const MOST_LINE: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a text file, without its byte order mark.
pub(super) struct ColmapLines<'a> {
    path: &'a Path,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    /// Whether `line` is returned again.
    repeats: bool,
}

impl<'a> ColmapLines<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let (file, _) = regular_file::open(path).map_err(|e| open_error(path, &e))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(1 << 16, file),
            line: Vec::new(),
            number: 0,
            repeats: false,
        })
    }

    /// Reads a line and keeps at most [`MOST_LINE`] bytes of it. Returns false at the end.
    fn read(&mut self) -> Result<bool> {
        if std::mem::take(&mut self.repeats) {
            return Ok(true);
        }
        self.line.clear();
        let mut any = false;
        loop {
            let bytes = self
                .file
                .fill_buf()
                .map_err(|e| Error::io_at("read", self.path, e))?;
            if bytes.is_empty() {
                self.number += u64::from(any);
                break;
            }
            any = true;
            let end = bytes.iter().position(|&b| b == b'\n');
            let line = &bytes[..end.unwrap_or(bytes.len())];
            let room = MOST_LINE - self.line.len();
            self.line.extend_from_slice(&line[..line.len().min(room)]);
            let used = line.len() + usize::from(end.is_some());
            self.file.consume(used);
            if end.is_some() {
                self.number += 1;
                break;
            }
        }
        if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(any)
    }

    /// The next line of any kind, trimmed, and its number.
    pub(super) fn any(&mut self) -> Result<Option<(&str, u64)>> {
        if !self.read()? {
            return Ok(None);
        }
        let is_cut = self.line.len() == MOST_LINE;
        let text = match std::str::from_utf8(&self.line) {
            Ok(text) => text,
            Err(e) if is_cut && e.error_len().is_none() => {
                std::str::from_utf8(&self.line[..e.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => {
                let what = match self.line.starts_with(b"\xff\xfe") {
                    true => "UTF-16: save it as UTF-8",
                    false => "not UTF-8: is this a text model?",
                };
                return Err(Error::dataset_line(self.path, self.number, what));
            }
        };
        Ok(Some((text.trim_ascii(), self.number)))
    }

    /// The next line that is neither a comment nor empty, and its number.
    pub(super) fn next(&mut self) -> Result<Option<(&str, u64)>> {
        while let Some((line, _)) = self.any()? {
            if !line.is_empty() && !line.starts_with('#') {
                // Borrows the line again, because the compiler does not see that the loop ends
                // here.
                self.repeats = true;
                return self.any();
            }
        }
        Ok(None)
    }

    /// Makes the next call return the last line again.
    pub(super) fn put_back(&mut self) {
        self.repeats = true;
    }
}

/// The fields of a line.
pub(super) struct LineFields<'a> {
    pub(super) path: &'a Path,
    pub(super) number: u64,
    pub(super) rest: &'a str,
}

impl<'a> LineFields<'a> {
    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        Error::dataset_line(self.path, self.number, what)
    }

    pub(super) fn word(&mut self, name: &str) -> Result<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        match word.is_empty() {
            false => Ok(word),
            true => Err(self.error(format!("{name}: missing; the line is cut off"))),
        }
    }

    pub(super) fn number<T: FromStr>(&mut self, name: &str) -> Result<T> {
        let word = self.word(name)?;
        word.parse()
            .map_err(|_| self.error(format!("{name}: {} is not a valid number", quoted(word))))
    }

    pub(super) fn numbers<const N: usize>(&mut self, names: [&str; N]) -> Result<[f64; N]> {
        let mut numbers = [0.0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            *number = self.number(name)?;
        }
        Ok(numbers)
    }
}
