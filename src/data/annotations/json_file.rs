//! Walks through a JSON file of any length within bounded memory.
//!
//! The file is read in pieces and not mapped: a file that shrinks meanwhile would kill the process.
//! An element of a list is in memory as a whole. Everything else passes by.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::json_frame::{FrameFault, ValueFrame};
use super::json_value::{self, is_blank, is_word};
use crate::data::shard::read_at;
use crate::error::{Error, Result};
use crate::sys::regular_file::{self, FileStamp};

/// Bytes per read.
const PIECE: usize = 256 << 10;
/// Bytes of the longest element. An outline of a million points has 16 MiB.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// Bytes of the longest key of the file's own object.
const MOST_KEY: usize = 4096;

pub(super) struct JsonFile {
    path: PathBuf,
    file: File,
    stamp: FileStamp,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    /// The next byte in the buffer.
    at: usize,
    /// Bytes of the buffer from here on stay when more are read.
    kept: Option<usize>,
}

impl JsonFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |e| Error::io_at("open", path, e);
        let (file, _) = regular_file::open(path).map_err(failed)?;
        let stamp = FileStamp::of_metadata(&file.metadata().map_err(failed)?);
        Ok(Self {
            path: path.to_owned(),
            file,
            stamp,
            buffer: Vec::new(),
            base: 0,
            at: 0,
            kept: None,
        })
    }

    /// Another walk through the same open file.
    pub(super) fn walk_again(&self) -> Result<Self> {
        let file = self.file.try_clone();
        let file = file.map_err(|e| Error::io_at("duplicate the descriptor of", &self.path, e))?;
        Ok(Self {
            path: self.path.clone(),
            file,
            stamp: self.stamp,
            buffer: Vec::new(),
            base: 0,
            at: 0,
            kept: None,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// The offset of the next byte.
    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// An error at the next byte.
    pub(super) fn fault(&self, what: impl std::fmt::Display) -> Error {
        self.fault_at(self.offset(), what)
    }

    pub(super) fn fault_at(&self, offset: u64, what: impl std::fmt::Display) -> Error {
        let what = format!(
            "not JSON: {what}, at byte {offset} of {}: download or export it again",
            self.stamp.bytes
        );
        Error::dataset(&self.path, what)
    }

    /// Checks that the file is still the one that was opened.
    ///
    /// # Errors
    /// It was written meanwhile.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let found = self.file.metadata();
        let found = found.map_err(|e| Error::io_at("look at", &self.path, e))?;
        let now = FileStamp::of_metadata(&found);
        match self.stamp.difference(&now, || true) {
            None => Ok(()),
            Some(how) => Err(Error::dataset(
                &self.path,
                format!("changed while it was read ({how}): start again when it is written"),
            )),
        }
    }

    pub(super) fn seek(&mut self, offset: u64) {
        self.buffer.clear();
        (self.base, self.at, self.kept) = (offset, 0, None);
    }

    /// Reads more. False at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        let from = self.kept.unwrap_or(self.at).min(self.at);
        self.buffer.drain(..from);
        self.base += from as u64;
        self.at -= from;
        self.kept = self.kept.map(|kept| kept - from);
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE, 0);
        let end = self.base + before as u64;
        let read = read_at(&self.file, &mut self.buffer[before..], end);
        let read = read.map_err(|e| Error::io_at("read", &self.path, e))?;
        self.buffer.truncate(before + read);
        // A hole of a sparse file takes no disk space, and would be read for hours.
        let piece = &self.buffer[before..];
        if piece.contains(&0) {
            let zero = piece.iter().take_while(|b| **b != 0).count();
            let what = "it has a zero byte. Was it cut, or is it UTF-16?";
            return Err(self.fault_at(end + zero as u64, what));
        }
        Ok(read > 0)
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            while let Some(byte) = self.buffer.get(self.at) {
                if !is_blank(*byte) {
                    return Ok(Some(*byte));
                }
                self.at += 1;
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Passes `wanted` if it is next.
    fn take(&mut self, wanted: u8) -> Result<bool> {
        let found = self.peek()? == Some(wanted);
        self.at += usize::from(found);
        Ok(found)
    }

    /// Passes the next value. With `most`, keeps its bytes and returns their place in the buffer.
    fn pass_value(&mut self, most: Option<usize>) -> Result<std::ops::Range<usize>> {
        let first = self.peek()?;
        let start = self.offset();
        self.kept = most.map(|_| self.at);
        let mut frame = ValueFrame::default();
        loop {
            let rest = &self.buffer[self.at..];
            let end = match first {
                Some(b'{' | b'[' | b'"') => frame.pass(rest),
                _ => Ok(rest.iter().position(|b| !is_word(*b))),
            };
            let end = end.map_err(|e| match e {
                FrameFault::WrongBracket | FrameFault::TooDeep => {
                    self.fault_at(start, format!("a value with {}", e.text()))
                }
            })?;
            self.at += end.unwrap_or(rest.len());
            let len = self.offset() - start;
            if most.is_some_and(|most| len > most as u64) {
                let most = most.unwrap_or_default();
                let what = format!("has a value of more than {most} bytes, at byte {start}");
                return Err(Error::dataset(&self.path, what));
            }
            if end.is_some() {
                if len == 0 {
                    return Err(self.fault("no value"));
                }
                let kept = self.kept.take().unwrap_or(self.at);
                return Ok(kept..self.at);
            }
            if !self.fill()? {
                if len > 0 && !matches!(first, Some(b'{' | b'[' | b'"')) {
                    let kept = self.kept.take().unwrap_or(self.at);
                    return Ok(kept..self.at);
                }
                return Err(self.fault("it ends inside a value"));
            }
        }
    }

    /// After a value: whether another one follows, and not `close`.
    fn goes_on(&mut self, close: u8) -> Result<bool> {
        match self.peek()? {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            None => Err(self.fault("it ends too early: it was cut")),
            Some(_) => Err(self.fault("no comma after a value")),
        }
    }

    /// Calls `each` with the keys of the file's object. It must pass the value: by
    /// [`JsonFile::elements`] or [`JsonFile::skip`].
    ///
    /// # Errors
    /// The file is no object, or a damaged one.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.seek(0);
        self.fill()?;
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        if !self.take(b'{')? {
            let what = match self.peek()? {
                None => "it is empty",
                Some(b'[') => "it is a list, not an object with images and annotations",
                Some(_) => "it does not begin with {",
            };
            return Err(self.fault(what));
        }
        if !self.take(b'}')? {
            loop {
                if self.peek()? != Some(b'"') {
                    return Err(self.fault("no key in double quotes"));
                }
                let range = self.pass_value(Some(MOST_KEY))?;
                let key = json_value::key(&self.buffer[range]).into_owned();
                if !self.take(b':')? {
                    return Err(self.fault("no colon after a key"));
                }
                each(self, &key)?;
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.fault("more text follows its object")),
        }
    }

    /// Passes a value, whatever it is. Returns its offset.
    pub(super) fn skip(&mut self) -> Result<u64> {
        self.peek()?;
        let start = self.offset();
        self.pass_value(None)?;
        Ok(start)
    }

    /// Calls `each` with the offset and the bytes of each element of the list that is next.
    ///
    /// # Errors
    /// It is no list; a damaged one; an element is too long.
    pub(super) fn elements(
        &mut self,
        name: &str,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if !self.take(b'[')? {
            return Err(Error::dataset(&self.path, format!("'{name}' is no list")));
        }
        if self.take(b']')? {
            return Ok(());
        }
        loop {
            let range = self.pass_value(Some(MOST_BYTES))?;
            let offset = self.base + range.start as u64;
            each(offset, &self.buffer[range])?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    /// The bytes at `offset`, which an earlier walk has passed.
    ///
    /// # Errors
    /// The file has fewer now.
    pub(super) fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        let end = offset + len as u64;
        let is_there = offset >= self.base && end <= self.base + self.buffer.len() as u64;
        if !is_there {
            // Annotations of a picture often follow each other: then more is read at once.
            let last = self.base + self.buffer.len() as u64;
            let follows = offset >= self.base && offset <= last + PIECE as u64 / 4;
            let wanted = if follows { len.max(PIECE) } else { len };
            self.seek(offset);
            self.buffer.resize(wanted, 0);
            let read = read_at(&self.file, &mut self.buffer, offset);
            let read = read.map_err(|e| Error::io_at("read", &self.path, e))?;
            self.buffer.truncate(read);
        }
        let start = (offset - self.base) as usize;
        match self.buffer.get(start..start + len) {
            Some(bytes) => Ok(bytes),
            None => Err(Error::dataset(
                &self.path,
                "became shorter while it was read: start again when it is written",
            )),
        }
    }
}
