//! Reads a range of a file forward, by positioned reads.

use std::fs::File;
use std::io;
use std::path::Path;

use twox_hash::xxhash3_64::Hasher;

use crate::cache::verify::findings::FindingLog;
use crate::data::shard::read_at;
use crate::sys::whole_file::too_long;

/// Bytes per read.
const READ: usize = 1 << 20;

/// A window that moves forward over a range of a file.
pub(super) struct FileWindow<'a> {
    file: &'a File,
    found: &'a FindingLog<'a>,
    /// The end of the range: no later byte is read.
    end: u64,
    buffer: Vec<u8>,
    at: u64,
    held: usize,
}

impl<'a> FileWindow<'a> {
    pub(super) fn new(file: &'a File, end: u64, found: &'a FindingLog<'a>) -> Self {
        Self {
            file,
            found,
            end,
            buffer: Vec::new(),
            at: 0,
            held: 0,
        }
    }

    /// The bytes from `at` on: at least one and at most `most`. Empty at the end.
    fn from(&mut self, at: u64, most: u64) -> io::Result<&[u8]> {
        let within = at.checked_sub(self.at).filter(|n| *n < self.held as u64);
        let skip = match within {
            Some(skip) => skip as usize,
            None => {
                let left = self.end.saturating_sub(at).min(READ as u64) as usize;
                // Allocated at the first read.
                self.buffer.resize(left.max(self.buffer.len()), 0);
                (self.at, self.held) = (at, 0);
                self.held = read_at(self.file, &mut self.buffer[..left], at)?;
                self.found.read(self.held as u64);
                0
            }
        };
        let there = &self.buffer[skip..self.held];
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(&there[..there.len().min(most)])
    }

    /// Calls `with` with each piece of a range, until it returns a value.
    ///
    /// # Errors
    /// When the file cannot be read, or ends before the range does.
    fn each<T>(
        &mut self,
        (mut at, end): (u64, u64),
        mut with: impl FnMut(u64, &[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        while at < end {
            let piece = self.from(at, end - at)?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(answer) = with(at, piece) {
                return Ok(Some(answer));
            }
            at += piece.len() as u64;
        }
        Ok(None)
    }

    /// The first offset, from `at` on, where the file differs from `expected`.
    pub(super) fn differ_from(&mut self, at: u64, expected: &[u8]) -> io::Result<Option<u64>> {
        let end = at.saturating_add(expected.len() as u64);
        self.each((at, end), |from, piece| {
            let expected = &expected[(from - at) as usize..];
            first_difference(piece, &expected[..piece.len()]).map(|n| from + n as u64)
        })
    }

    /// The first offset in the range with a byte other than 0.
    pub(super) fn not_zero(&mut self, at: u64, end: u64) -> io::Result<Option<u64>> {
        self.each((at, end), |from, piece| {
            let n = piece.iter().position(|&b| b != 0)?;
            Some(from + n as u64)
        })
    }

    /// XXH3-64 of a range, and its first bytes, at most `most`.
    pub(super) fn hash(&mut self, at: u64, end: u64, most: usize) -> io::Result<(u64, Vec<u8>)> {
        let (mut hasher, mut first) = (Hasher::new(), Vec::new());
        self.each((at, end), |_, piece| {
            std::hash::Hasher::write(&mut hasher, piece);
            let wanted = (most - first.len()).min(piece.len());
            first.extend_from_slice(&piece[..wanted]);
            None::<()>
        })?;
        Ok((std::hash::Hasher::finish(&hasher), first))
    }
}

/// The first index where two texts differ. If one begins with the other, the length of the shorter
/// one.
pub(super) fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    (same < a.len().max(b.len())).then_some(same)
}

/// Reads a whole regular file of at most `most` bytes.
///
/// # Errors
/// The reason why it cannot be read, without its name.
pub(super) fn read_whole(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let (file, len) = crate::data::shard::open(path).map_err(|e| e.to_string())?;
    if len > most {
        return Err(too_long(len, most));
    }
    let len = usize::try_from(len).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|e| e.to_string())?;
    bytes.resize(len, 0);
    let read = read_at(&file, &mut bytes, 0).map_err(|e| format!("cannot be read: {e}"))?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_whole(&path, 5).unwrap(), b"12345");
        let e = read_whole(&path, 4).unwrap_err();
        assert!(
            e.contains("(5 bytes)") && e.contains("(4 bytes): check"),
            "{e}"
        );
    }
}
