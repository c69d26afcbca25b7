//! Reads a byte range of a file as if it were a file.
//!
//! Runs in the consumer. Uses positioned reads, so one open file can serve several ranges. Nothing
//! is mapped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes `range` of a file.
pub(crate) struct FileRange {
    file: Arc<File>,
    range: Range<u64>,
    /// The position of the next read. It may be past the end, as in a file.
    at: u64,
}

impl FileRange {
    pub(crate) fn new(file: Arc<File>, range: Range<u64>) -> Self {
        Self { file, range, at: 0 }
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Read for FileRange {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.len().saturating_sub(self.at);
        let wanted = to.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let n = self
            .file
            .read_at(&mut to[..wanted], self.range.start + self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for FileRange {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a seek before the start of the range",
            )
        })?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_part_is_read_like_a_file_of_its_own() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let file = Arc::new(file);
        let mut part = FileRange::new(file.clone(), 3..7);
        let mut all = String::new();
        part.read_to_string(&mut all).unwrap();
        assert_eq!(all, "3456");
        assert_eq!(part.seek(SeekFrom::End(-1)).unwrap(), 3);
        assert_eq!(part.read(&mut [0; 4]).unwrap(), 1);
        assert_eq!(part.seek(SeekFrom::Current(-2)).unwrap(), 2);
        let mut two = [0; 2];
        part.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"56");
        assert_eq!(part.seek(SeekFrom::Start(90)).unwrap(), 90);
        assert_eq!(part.read(&mut two).unwrap(), 0);
        assert!(part.seek(SeekFrom::End(-5)).is_err());
        // The file ends inside the range.
        let mut cut = FileRange::new(file, 8..20);
        assert_eq!(cut.seek(SeekFrom::End(0)).unwrap(), 12);
        cut.rewind().unwrap();
        let mut all = String::new();
        cut.read_to_string(&mut all).unwrap();
        assert_eq!(all, "89");
    }
}
