//! Reads CSV records (RFC 4180) as bytes: the fields, quoted or not, and the line where a record
//! begins.
//!
//! Runs in the consumer. Holds one record, whose length is limited. Not in this file: the meaning
//! of fields.
//!
//! - A line ends with `\n`, `\r\n` or `\r`. Blank lines are skipped.
//! - Blanks around a field are not part of it. Blanks in double quotes are.
//! - In a field that does not begin with a quote, a quote is text.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use crate::data::index::lines::{self, BOM, MAX_LINE};
use crate::data::index::table::fields::CsvFields;
use crate::error::{self, Error, Result};

/// Maximum number of columns. Spreadsheets have the same limit.
const MOST_COLUMNS: usize = 16_384;

pub(crate) struct CsvRecords<'a> {
    path: Cow<'a, Path>,
    input: BufReader<File>,
    record: CsvFields,
    /// The line number of the next byte.
    line: u64,
    /// Whether the previous byte is `\r`.
    is_after_return: bool,
    /// The offset of the next byte.
    position: u64,
}

impl<'a> CsvRecords<'a> {
    pub(super) fn open(path: impl Into<Cow<'a, Path>>, separator: u8) -> Result<Self> {
        let path = path.into();
        let file = lines::open(&path)?;
        let mut records = Self {
            path,
            input: BufReader::with_capacity(1 << 16, file),
            record: CsvFields::new(separator),
            line: 1,
            is_after_return: false,
            position: 0,
        };
        records.pass_mark()?;
        Ok(records)
    }

    /// Starts again at the beginning of the file, with another separator.
    pub(super) fn restart(&mut self, separator: u8) -> Result<()> {
        let start = self.input.seek(SeekFrom::Start(0));
        start.map_err(|e| Error::io_at("read again", &*self.path, e))?;
        self.position = 0;
        self.line = 1;
        self.is_after_return = false;
        self.record = CsvFields::new(separator);
        self.pass_mark()
    }

    fn pass_mark(&mut self) -> Result<()> {
        if self.buffer()?.starts_with(BOM) {
            self.input.consume(BOM.len());
            self.position += BOM.len() as u64;
        }
        Ok(())
    }

    fn buffer(&mut self) -> Result<&[u8]> {
        let read = self.input.fill_buf();
        read.map_err(|e| Error::io_at("read", &*self.path, e))
    }

    /// Reads the next record. Returns the line where it begins, or `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<u64>> {
        loop {
            self.record.begin();
            let Some(begins) = self.read_line()? else {
                return Ok(None);
            };
            if !self.record.is_blank() {
                return Ok(Some(begins));
            }
        }
    }

    /// Reads to the end of a record, or of a blank line.
    fn read_line(&mut self) -> Result<Option<u64>> {
        let mut begins = self.line;
        let mut taken = 0;
        loop {
            let path = &*self.path;
            let failed = |begins, what| Err(Error::dataset_line(path, begins, what));
            let read = self.input.fill_buf();
            let found = read.map_err(|e| Error::io_at("read", path, e))?;
            if found.is_empty() {
                return match (taken, self.record.is_open()) {
                    (0, _) => Ok(None),
                    (_, true) => {
                        let what = "a double quote is not closed up to the end of the file";
                        failed(begins, what.into())
                    }
                    (_, false) => {
                        self.record.push(b'\n');
                        Ok(Some(begins))
                    }
                };
            }
            let mut is_whole = false;
            let mut used = 0;
            for byte in &found[..found.len().min(MAX_LINE + 1 - taken)] {
                used += 1;
                let ends_pair = *byte == b'\n' && self.is_after_return;
                self.is_after_return = *byte == b'\r';
                self.line += u64::from(matches!(byte, b'\n' | b'\r') && !ends_pair);
                // This `\n` belongs to the line end of the previous record.
                if ends_pair && taken + used == 1 {
                    begins = self.line;
                    continue;
                }
                is_whole = self.record.push(*byte);
                if is_whole || self.record.len() >= MOST_COLUMNS {
                    break;
                }
            }
            self.input.consume(used);
            self.position += used as u64;
            taken += used;
            if taken > MAX_LINE {
                return failed(
                    begins,
                    format!(
                        "a record is longer than {}: is a double quote not closed?",
                        error::size(MAX_LINE as u64)
                    ),
                );
            }
            if is_whole {
                return Ok(Some(begins));
            }
            if self.record.len() >= MOST_COLUMNS {
                let what =
                    format!("a record has more than {MOST_COLUMNS} columns: is this a table?");
                return failed(begins, what);
            }
        }
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        self.input.get_ref()
    }

    /// The offset of the first byte that no record has taken.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Goes to an offset that [`CsvRecords::position`] returned. Lines are counted from there.
    pub(super) fn go_to(&mut self, position: u64) -> Result<()> {
        let gone = self.input.seek(SeekFrom::Start(position));
        gone.map_err(|e| Error::io_at("read again", &*self.path, e))?;
        self.position = position;
        self.is_after_return = false;
        Ok(())
    }

    pub(super) fn separator(&self) -> u8 {
        self.record.separator
    }

    /// The number of fields in the record.
    pub(crate) fn len(&self) -> usize {
        self.record.len()
    }

    /// A field of the record. Empty if there is no field of this number.
    pub(crate) fn field(&self, at: usize) -> &[u8] {
        self.record.get(at)
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
        let mut records = CsvRecords::open(&path, b',')?;
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
        for end in ["\n", "\r\n", "\r"] {
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
                    fields(3, "x \"y\"\n,z", "1"),
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

    /// Spreadsheets and people write this. pandas needs `skipinitialspace` for it.
    #[test]
    fn blanks_around_fields_and_their_quotes_do_not_count() {
        let row = |text: &str| records(text.as_bytes()).unwrap().remove(0).1;
        for (text, want) in [
            ("\"1.png\", \"cat\"", &["1.png", "cat"][..]),
            ("\"a\" ,\t\"b\"\t\n", &["a", "b"]),
            (" a b , c ", &["a b", "c"]),
            ("\" a \",\" \"", &[" a ", " "]),
            ("\"a, \"\"b\"\"\" , c", &["a, \"b\"", "c"]),
            ("5\" disk, 6 \"x\"", &["5\" disk", "6 \"x\""]),
            ("\"a\"b,\"c\" d", &["ab", "c d"]),
            (" , \"\"", &["", ""]),
            ("\"a\" \"b\",c", &["a \"b\"", "c"]),
        ] {
            assert_eq!(row(text), want, "{text}");
        }
        assert_eq!(
            records(b"a\n  \n\t\nb\n").unwrap()[1],
            (4, vec!["b".to_owned()])
        );
    }

    #[test]
    fn a_record_is_as_long_as_its_limit_and_no_longer() {
        // The limit counts bytes as they are read, including quotes and the line end.
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
