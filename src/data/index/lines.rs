//! Lines of a text file, numbered from 1, of limited length. Their ends and a byte order mark are
//! removed. Lines end with `\n` or `\r\n`, or with `\r` in a file that has no other line ends.
//!
//! Used in the consumer. The lines need not be UTF-8. Not in this file: the meaning of the lines.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data::index::text_encoding::{self, TextEncoding};
use crate::error::{self, Error, Result};

/// Maximum length of a line. A longer line shows that the file is an image or an archive.
pub(crate) const MAX_LINE: usize = 1 << 20;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

pub(crate) struct TextLines<'a> {
    path: Cow<'a, Path>,
    reader: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    /// Whether `\r` alone ends a line. True if there is no `\n` in the first buffer of the file.
    /// Otherwise `\r` may be part of a path.
    ends_at_returns: bool,
    /// The offset of the next byte.
    position: u64,
}

impl<'a> TextLines<'a> {
    pub(crate) fn open(path: impl Into<Cow<'a, Path>>) -> Result<Self> {
        let path = path.into();
        Ok(Self {
            reader: BufReader::with_capacity(1 << 16, open(&path)?),
            path,
            line: Vec::new(),
            number: 0,
            ends_at_returns: false,
            position: 0,
        })
    }

    /// The number and the bytes of the next line. `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, &[u8])>> {
        if !self.read_line()? {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > MAX_LINE {
            return Err(Error::dataset_line(
                &*self.path,
                self.number,
                format!(
                    "a line is longer than {}: is this a text file?",
                    error::size(MAX_LINE as u64)
                ),
            ));
        }
        Ok(Some((self.number, self.line())))
    }

    /// The bytes of the line that [`TextLines::next_line`] returned last.
    pub(crate) fn line(&self) -> &[u8] {
        let mut line = self.line.as_slice();
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.number == 1 {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        line
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        self.reader.get_ref()
    }

    /// The offset of the first byte after that line.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Goes to an offset that [`TextLines::position`] returned. Lines are counted from there.
    pub(crate) fn go_to(&mut self, position: u64) -> Result<()> {
        let gone = self.reader.seek(SeekFrom::Start(position));
        gone.map_err(|e| Error::io_at("read again", &*self.path, e))?;
        self.position = position;
        // The first line may have a mark; any other is read as it is.
        self.number = u64::from(position > 0);
        Ok(())
    }

    /// Reads the next line with its end, up to one byte over the limit. Returns false at the end of
    /// the file.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        loop {
            let read = self.reader.fill_buf();
            let found = read.map_err(|e| Error::io_at("read", &*self.path, e))?;
            if self.number == 0 && self.line.is_empty() {
                self.ends_at_returns = !found.contains(&b'\n');
            }
            let by_return = self.ends_at_returns;
            let is_end = |byte: &u8| *byte == b'\n' || (by_return && *byte == b'\r');
            let after_return = by_return && self.line.ends_with(b"\r");
            let room = (MAX_LINE + 1).saturating_sub(self.line.len());
            let (bytes, ends) = match found.first() {
                None => (0, true),
                Some(first) if after_return => (usize::from(*first == b'\n'), true),
                Some(_) => {
                    let found = &found[..found.len().min(room)];
                    match found.iter().position(is_end) {
                        Some(at) => (at + 1, found[at] == b'\n'),
                        None => (found.len(), found.len() == room),
                    }
                }
            };
            self.line.extend_from_slice(&found[..bytes]);
            self.reader.consume(bytes);
            self.position += bytes as u64;
            if ends {
                return Ok(!self.line.is_empty());
            }
        }
    }
}

/// Opens a text file.
///
/// # Errors
/// There is no such file, it is a folder, it cannot be opened, or it is UTF-16 or UTF-32 text.
pub(crate) fn open(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::dataset(path, "no such file"),
        ErrorKind::PermissionDenied => Error::dataset(
            path,
            "permission denied: make the file readable (chmod u+r)",
        ),
        _ => Error::io_at("open", path, e),
    })?;
    let kind = file
        .metadata()
        .map_err(|e| Error::io_at("read the type of", path, e))?;
    if kind.is_dir() {
        return Err(Error::dataset(
            path,
            "is a folder, not a text file: give the file",
        ));
    }
    let mut head = [0; text_encoding::HEAD];
    // A read error is reported with the first line.
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    if let Some(encoding) = TextEncoding::of(&head[..read]) {
        return Err(Error::dataset(path, encoding.text(path)));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Result<Vec<Vec<u8>>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, text).unwrap();
        let mut lines = TextLines::open(&path)?;
        let mut all = Vec::new();
        while let Some((number, line)) = lines.next_line()? {
            all.push(line.to_vec());
            assert_eq!(number, all.len() as u64);
        }
        Ok(all)
    }

    #[test]
    fn ends_and_mark_are_taken_off() {
        let all = lines(b"\xef\xbb\xbfa\r\n\nb \xff\n\xef\xbb\xbfc").unwrap();
        assert_eq!(all, [&b"a"[..], b"", b"b \xff", b"\xef\xbb\xbfc"]);
        assert_eq!(lines(b"a\r\rb\rc\r").unwrap(), [&b"a"[..], b"", b"b", b"c"]);
        // In a file with other line ends, it is part of a name.
        assert_eq!(lines(b"a\rb 1\nc\r\n").unwrap(), [&b"a\rb 1"[..], b"c"]);
        assert!(lines(b"").unwrap().is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_refused_and_not_swallowed_whole() {
        let mut text = vec![b'x'; MAX_LINE - 1];
        text.push(b'\n');
        assert_eq!(lines(&text).unwrap().len(), 1);
        text.insert(0, b'x');
        text.push(b'\n');
        let e = lines(&text).unwrap_err().to_string();
        assert!(e.contains(":1: a line is longer than 1 MiB"), "{e}");
    }

    #[test]
    fn wide_text_is_refused_by_its_name() {
        let wide: Vec<u8> = "a.jpg 0\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let e = lines(&wide).unwrap_err();
        let said = e.to_string();
        assert!(
            e.is_dataset()
                && said.contains("is UTF-16LE text: save it as UTF-8 (iconv -f UTF-16LE"),
            "{said}"
        );
    }

    #[test]
    fn a_missing_file_and_a_folder_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let e = TextLines::open(dir.path()).err().unwrap();
        assert!(e.is_usage() && e.to_string().contains("a folder"), "{e}");
        let e = TextLines::open(dir.path().join("no")).err().unwrap();
        assert!(
            e.is_usage() && e.to_string().contains("no such file"),
            "{e}"
        );
    }
}
