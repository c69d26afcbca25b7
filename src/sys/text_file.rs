//! Reads untrusted text files up to a limit.
//!
//! Runs in the consumer. A hole of a sparse file takes no disk space and reads as zeros. So reading
//! stops at the first zero byte, which text does not contain.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::error::Error;

/// Bytes per read.
const PIECE: usize = 64 << 10;

/// Why a file was not read to its end.
#[derive(Debug)]
pub(crate) enum TextReadError {
    Read(io::Error),
    /// It is longer than this limit in bytes.
    TooLong(u64),
    /// It has a zero byte at this offset.
    Zero(u64),
}

impl fmt::Display for TextReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(e) => write!(f, "cannot be read: {e}"),
            Self::TooLong(most) => write!(f, "is longer than the limit of {most} bytes"),
            Self::Zero(at) => write!(f, "is not text: it has a zero byte at offset {at}"),
        }
    }
}

/// Reads a file of the kernel; `None` if it cannot be read. Warns if a limit of this process is the
/// reason, because the file may exist.
pub(crate) fn of_kernel(path: &Path) -> Option<String> {
    let read = fs::read_to_string(path).map_err(|e| Error::io_at("read", path, e));
    read.inspect_err(|e| {
        if e.is_limit() {
            tracing::warn!("cannot read a limit of this machine: {e}");
        }
    })
    .ok()
}

/// The number after `key` at the start of a line.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == key).then(|| words.next()?.parse().ok())?
    })
}

/// Reads all bytes, at most `most`.
pub(crate) fn read(mut file: impl Read, most: u64) -> Result<Vec<u8>, TextReadError> {
    let mut text = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let found = match file.read(&mut piece) {
            Ok(0) => return Ok(text),
            Ok(n) => &piece[..n],
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(TextReadError::Read(e)),
        };
        let at = text.len() as u64;
        if let Some(zero) = found.iter().position(|&b| b == 0) {
            return Err(TextReadError::Zero(at + zero as u64));
        }
        if at + found.len() as u64 > most {
            return Err(TextReadError::TooLong(most));
        }
        text.try_reserve(found.len())
            .map_err(|_| TextReadError::Read(ErrorKind::OutOfMemory.into()))?;
        text.extend_from_slice(found);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        assert_eq!(read(&b"12345"[..], 5).unwrap(), b"12345");
        let e = read(&b"12345"[..], 4).unwrap_err();
        assert!(matches!(e, TextReadError::TooLong(4)), "{e}");
        assert_eq!(read(&b""[..], 0).unwrap(), b"");
    }

    #[test]
    fn a_hole_is_not_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"{\n").unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        let e = read(file.reopen().unwrap(), u64::MAX).unwrap_err();
        assert!(matches!(e, TextReadError::Zero(2)), "{e}");
        assert!(e.to_string().contains("zero byte at offset 2"), "{e}");
    }
}
