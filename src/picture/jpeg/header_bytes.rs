//! The source of a header's bytes: a file in memory, or a file that is read as far as its header
//! needs.
//!
//! Only [`InFile`] does I/O.

use std::io::ErrorKind;

use crate::error::SampleFault;
use crate::picture::reader::PictureFile;
use crate::picture::reader::unreadable;

/// The bytes of a file, from start to end.
pub(crate) trait HeaderBytes {
    /// Length of the whole file.
    fn len(&self) -> u64;

    /// Offset of the next byte.
    fn position(&self) -> u64;

    /// The next byte; `None` at the end.
    fn next(&mut self) -> Result<Option<u8>, SampleFault>;

    /// The next `len` bytes; `None` if there are fewer.
    fn read(&mut self, len: usize) -> Result<Option<&[u8]>, SampleFault>;

    /// Skips `len` bytes; false if there are fewer.
    fn skip(&mut self, len: usize) -> Result<bool, SampleFault>;
}

#[derive(Debug)]
pub(crate) struct InMemory<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> InMemory<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl HeaderBytes for InMemory<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn position(&self) -> u64 {
        self.at as u64
    }

    fn next(&mut self) -> Result<Option<u8>, SampleFault> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    fn read(&mut self, len: usize) -> Result<Option<&[u8]>, SampleFault> {
        let found = self.bytes[self.at..].get(..len);
        self.at += found.map_or(0, <[u8]>::len);
        Ok(found)
    }

    fn skip(&mut self, len: usize) -> Result<bool, SampleFault> {
        Ok(self.read(len)?.is_some())
    }
}

/// Holds one segment at a time, at most 64 KiB.
pub(crate) struct InFile<'a> {
    file: &'a mut dyn PictureFile,
    len: u64,
    at: u64,
    segment: Vec<u8>,
}

impl<'a> InFile<'a> {
    /// For a file of `len` bytes, positioned at its start.
    pub(crate) fn new(file: &'a mut dyn PictureFile, len: u64) -> Self {
        Self {
            file,
            len,
            at: 0,
            segment: Vec::new(),
        }
    }

    fn has(&self, len: usize) -> bool {
        len as u64 <= self.len.saturating_sub(self.at)
    }

    /// Fills `to`; false if the file has become shorter.
    fn fill(file: &mut dyn PictureFile, to: &mut [u8]) -> Result<bool, SampleFault> {
        match file.read_exact(to) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => Err(unreadable(e)),
        }
    }
}

impl HeaderBytes for InFile<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn position(&self) -> u64 {
        self.at
    }

    fn next(&mut self) -> Result<Option<u8>, SampleFault> {
        let mut byte = [0];
        if !self.has(1) || !Self::fill(self.file, &mut byte)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(byte[0]))
    }

    fn read(&mut self, len: usize) -> Result<Option<&[u8]>, SampleFault> {
        if !self.has(len) {
            return Ok(None);
        }
        self.segment.resize(len, 0);
        if !Self::fill(self.file, &mut self.segment)? {
            return Ok(None);
        }
        self.at += len as u64;
        Ok(Some(&self.segment))
    }

    fn skip(&mut self, len: usize) -> Result<bool, SampleFault> {
        if !self.has(len) {
            return Ok(false);
        }
        self.file.seek_relative(len as i64).map_err(unreadable)?;
        self.at += len as u64;
        Ok(true)
    }
}
