//! Records of CSV (RFC 4180) as bytes: fields, in quotes or not, and the line that a
//! record begins in.
//!
//! In the consumer. Holds one record of limited length. Knows nothing of what fields
//! mean. Empty lines are passed over, as every reader of CSV does.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::data::index::lines::{self, BOM, MAX_LINE};
use crate::error::{self, Error, Result};

/// More columns are no table of pictures: as many as a spreadsheet has.
const MOST_COLUMNS: usize = 16_384;

pub(super) struct Records<'a> {
    path: &'a Path,
    input: BufReader<File>,
    parser: Reader,
    /// The fields of a record, one behind the other.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    fields: usize,
    /// The line of the byte that comes next.
    line: u64,
}

impl<'a> Records<'a> {
    pub(super) fn open(path: &'a Path, separator: u8) -> Result<Self> {
        let file = lines::open(path)?;
        let mut records = Self {
            path,
            input: BufReader::with_capacity(1 << 16, file),
            parser: Reader::new(),
            bytes: vec![0; 1 << 10],
            ends: vec![0; 64],
            fields: 0,
            line: 1,
        };
        records.begin(separator)?;
        Ok(records)
    }

    /// Begins again, with another separator.
    pub(super) fn restart(&mut self, separator: u8) -> Result<()> {
        let start = self.input.seek(SeekFrom::Start(0));
        start.map_err(|e| Error::io_at("read again", self.path, e))?;
        self.line = 1;
        self.begin(separator)
    }

    fn begin(&mut self, separator: u8) -> Result<()> {
        self.parser = ReaderBuilder::new().delimiter(separator).build();
        if self.buffer()?.starts_with(BOM) {
            self.input.consume(BOM.len());
        }
        Ok(())
    }

    fn buffer(&mut self) -> Result<&[u8]> {
        let read = self.input.fill_buf();
        read.map_err(|e| Error::io_at("read", self.path, e))
    }

    /// The line that the next record begins in; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<u64>> {
        self.fields = 0;
        self.pass_empty_lines()?;
        if self.buffer()?.is_empty() {
            return Ok(None);
        }
        let begins = self.line;
        let path = self.path;
        let failed = |what: String| Err(Error::dataset_line(path, begins, what));
        let (mut taken, mut written) = (0, 0);
        loop {
            let read = self.input.fill_buf();
            let found = read.map_err(|e| Error::io_at("read", path, e))?;
            let is_end = found.is_empty();
            // A line's end ends a record that the file's end does, unless a quote is open.
            let piece = match is_end {
                true => b"\n",
                false => &found[..found.len().min(MAX_LINE + 1 - taken)],
            };
            let (result, read, wrote, ends) = self.parser.read_record(
                piece,
                &mut self.bytes[written..],
                &mut self.ends[self.fields..],
            );
            self.line += piece[..read].iter().filter(|b| **b == b'\n').count() as u64;
            written += wrote;
            self.fields += ends;
            if !is_end {
                self.input.consume(read);
                taken += read;
            }
            if taken > MAX_LINE {
                return failed(format!(
                    "a record is longer than {}: is a double quote not closed?",
                    error::size(MAX_LINE as u64)
                ));
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(begins)),
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::InputEmpty if is_end => {
                    return failed("a double quote is not closed up to the end of the file".into());
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MOST_COLUMNS => {
                    return failed(format!(
                        "a record has more than {MOST_COLUMNS} columns: is this a table?"
                    ));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
            }
        }
    }

    fn pass_empty_lines(&mut self) -> Result<()> {
        loop {
            let found = self.buffer()?;
            let is_empty = |b: &&u8| matches!(b, b'\n' | b'\r');
            let empty = found.iter().take_while(is_empty).count();
            let ends = found[..empty].iter().filter(|b| **b == b'\n').count();
            if empty == 0 {
                return Ok(());
            }
            self.line += ends as u64;
            self.input.consume(empty);
        }
    }

    /// How many fields the record has.
    pub(super) fn len(&self) -> usize {
        self.fields
    }

    /// A field of the record; empty where it has none of this number.
    pub(super) fn field(&self, at: usize) -> &[u8] {
        let ends = &self.ends[..self.fields];
        let start = at
            .checked_sub(1)
            .map_or(Some(&0), |before| ends.get(before));
        let places = start.zip(ends.get(at));
        places
            .and_then(|(start, end)| self.bytes.get(*start..*end))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Record = (u64, Vec<String>);

    fn records(text: &[u8]) -> Result<Vec<Record>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let mut records = Records::open(&path, b',')?;
        let mut all = Vec::new();
        while let Some(line) = records.next()? {
            let field = |at| String::from_utf8_lossy(records.field(at)).into_owned();
            all.push((line, (0..records.len()).map(field).collect()));
        }
        Ok(all)
    }

    fn error(text: &[u8]) -> String {
        let e = records(text).err().unwrap();
        assert!(e.is_usage() && e.is_dataset(), "{e}");
        e.to_string()
    }

    #[test]
    fn quotes_ends_and_marks_are_those_of_the_rfc() {
        for end in ["\n", "\r\n"] {
            let text = [
                "\u{feff}a,b",
                "",
                "\"x \"\"y\"\"\n,z\", 1 ",
                "",
                "",
                "c,",
                "d,e",
            ];
            let found = records(text.join(end).as_bytes()).unwrap();
            let fields = |line, a: &str, b: &str| (line, vec![a.to_owned(), b.to_owned()]);
            assert_eq!(
                found,
                [
                    fields(1, "a", "b"),
                    fields(3, "x \"y\"\n,z", " 1 "),
                    fields(7, "c", ""),
                    fields(8, "d", "e"),
                ],
                "{end:?}"
            );
        }
        assert!(records(b"").unwrap().is_empty());
        assert!(records(b"\xef\xbb\xbf\n\r\n\n").unwrap().is_empty());
        assert_eq!(records(b"a\n\"\"\n").unwrap()[1], (2, vec![String::new()]));
    }

    #[test]
    fn a_record_is_as_long_as_its_limit_and_no_longer() {
        // The limit is one of bytes as they are read: quotes and the end of the line too.
        let long = |bytes: usize| [&b"\""[..], &vec![b'x'; bytes - 3], b"\"\n"].concat();
        let found = records(&long(MAX_LINE)).unwrap();
        assert_eq!(found[0].1[0].len(), MAX_LINE - 3);
        let e = error(&[b"a\n", &long(MAX_LINE + 1)[..]].concat());
        assert!(e.contains(":2: a record is longer than 1 MiB"), "{e}");
        let open = [b"a,b\n\"x\n\n", &b"y,z\n".repeat(1 << 20)[..]].concat();
        let e = error(&open);
        assert!(
            e.contains(":2: a record is longer than 1 MiB: is a double"),
            "{e}"
        );
    }

    #[test]
    fn a_quote_that_nothing_closes_is_named() {
        for text in ["a,b\n\"x,1\ny,2\n", "a,b\n\"x,1\ny,2", "a,b\n1,\""] {
            let e = error(text.as_bytes());
            assert!(e.contains(":2: a double quote is not closed"), "{e}");
        }
    }

    #[test]
    fn columns_are_counted_before_there_is_memory_for_them() {
        let wide = |columns: usize| ",".repeat(columns - 1);
        let found = records(wide(MOST_COLUMNS).as_bytes()).unwrap();
        assert_eq!(found[0].1.len(), MOST_COLUMNS);
        let e = error(wide(MOST_COLUMNS + 1).as_bytes());
        assert!(
            e.contains(":1: a record has more than 16384 columns"),
            "{e}"
        );
    }
}
