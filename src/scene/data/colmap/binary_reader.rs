//! Reads a binary file of little-endian fields in sequence.
//!
//! Runs in the consumer. Never reads beyond the length that the file had when it was opened. Knows
//! the number of remaining bytes, so that counts are checked before use.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::scene::data::transforms_keys::open_error;
use crate::sys::regular_file;

/// Small, because most of an `images.bin` is skipped.
const BUFFER: usize = 4096;

/// The longest name of an image.
const MOST_NAME: u64 = 4096;

pub(super) struct BinaryReader<'a> {
    path: &'a Path,
    file: BufReader<File>,
    at: u64,
    len: u64,
}

impl<'a> BinaryReader<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let (file, len) = regular_file::open(path).map_err(|e| open_error(path, &e))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(BUFFER, file),
            at: 0,
            len,
        })
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    fn left(&self) -> u64 {
        self.len - self.at
    }

    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        Error::dataset(self.path, what)
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.need(N as u64, what)?;
        self.file
            .read_exact(&mut bytes)
            .map_err(|e| Error::io_at("read", self.path, e))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn need(&self, bytes: u64, what: &str) -> Result<()> {
        match bytes <= self.left() {
            true => Ok(()),
            false => Err(self.error(format!(
                "cut off: {what} at byte {} needs {bytes} bytes, and {} are left",
                self.at,
                self.left()
            ))),
        }
    }

    pub(super) fn u8s<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        self.bytes(what)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        self.bytes(what).map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self, what: &str) -> Result<i32> {
        self.bytes(what).map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        self.bytes(what).map(u64::from_le_bytes)
    }

    pub(super) fn f64s<const N: usize>(&mut self, what: &str) -> Result<[f64; N]> {
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = self.bytes(what).map(f64::from_le_bytes)?;
        }
        Ok(numbers)
    }

    /// Reads a count of entries of at least `least` bytes each, and checks it against the remaining
    /// bytes.
    pub(super) fn count(&mut self, what: &str, least: u64) -> Result<u64> {
        let count = self.u64(what)?;
        self.check_count(count, what, least)?;
        Ok(count)
    }

    fn check_count(&self, count: u64, what: &str, least: u64) -> Result<()> {
        let most = self.left() / least;
        match count <= most {
            true => Ok(()),
            false => Err(self.error(format!(
                "{count} {what}, but the {} bytes left hold at most {most}: the file is cut off, \
                 or not a COLMAP model",
                self.left()
            ))),
        }
    }

    /// Reads text up to a zero byte.
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        let mut name = Vec::new();
        let most = self.left().min(MOST_NAME + 1);
        let read = (&mut self.file)
            .take(most)
            .read_until(0, &mut name)
            .map_err(|e| Error::io_at("read", self.path, e))?;
        self.at += read as u64;
        if name.pop() != Some(0) {
            return Err(self.error(match most > MOST_NAME {
                true => format!("{what} of over {MOST_NAME} bytes at byte {}", self.at),
                false => format!("cut off: in {what} at byte {}", self.at),
            }));
        }
        String::from_utf8(name)
            .map_err(|_| self.error(format!("{what} before byte {} is not UTF-8", self.at)))
    }

    /// Skips `count` entries of `each` bytes.
    pub(super) fn skip(&mut self, count: u64, each: u64, what: &str) -> Result<()> {
        self.check_count(count, what, each)?;
        let bytes = count * each;
        self.file
            .seek_relative(bytes as i64)
            .map_err(|e| Error::io_at("read", self.path, e))?;
        self.at += bytes;
        Ok(())
    }
}
