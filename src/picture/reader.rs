//! Where decoders read a picture from: memory, or a file.
//!
//! Decoders are generic over what they read, and each further type would compile all of
//! them once more. So there is this one.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};

/// A file that is read through a buffer.
pub(crate) trait PictureFile: BufRead + Seek {}

impl<F: BufRead + Seek> PictureFile for F {}

pub(super) enum Reader<'a> {
    Memory(Cursor<&'a [u8]>),
    File(&'a mut dyn PictureFile),
}

impl<'a> Reader<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self::Memory(Cursor::new(bytes))
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Memory(bytes) => bytes.read(to),
            Self::File(file) => file.read(to),
        }
    }

    fn read_exact(&mut self, to: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => bytes.read_exact(to),
            Self::File(file) => file.read_exact(to),
        }
    }
}

impl BufRead for Reader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Memory(bytes) => bytes.fill_buf(),
            Self::File(file) => file.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Memory(bytes) => bytes.consume(count),
            Self::File(file) => file.consume(count),
        }
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Memory(bytes) => bytes.seek(to),
            Self::File(file) => file.seek(to),
        }
    }
}
