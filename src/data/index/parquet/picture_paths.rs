//! Reads a column of paths or addresses in place of images.
//!
//! Runs in the consumer, on untrusted bytes. Holds one page.

use parquet::schema::types::ColumnDescPtr;

use crate::data::index::names::shown;
use crate::data::index::parquet::labels::each_value;
use crate::data::index::parquet::pages::PageReader;
use crate::data::index::parquet::values::{ColumnValue, ValueForm};
use crate::error;

/// Longest path or address.
const MOST_PATH: usize = 64 << 10;

/// The paths of one file, one per row.
#[derive(Debug)]
pub(super) struct PicturePaths {
    /// All paths, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Most bytes.
    room: u64,
}

impl PicturePaths {
    /// `available`: memory of this machine that is free, if that is known. The index holds the paths
    /// again.
    pub(super) fn new(available: Option<u64>) -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            room: available.map_or(u64::MAX, |bytes| bytes / 4),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let path = &self.bytes[begin..*end];
            begin = *end;
            path
        })
    }

    /// Adds the paths of one row group, which has `rows` rows.
    ///
    /// # Errors
    /// A row without a path, or with one that is too long; more bytes than there is memory for; a
    /// damaged page, or an unsupported encoding.
    pub(super) fn add(
        &mut self,
        column: &ColumnDescPtr,
        pages: PageReader,
        rows: u64,
    ) -> Result<(), String> {
        let name = shown(column.name().as_bytes());
        let of = (column, ValueForm::Text, "paths");
        each_value(of, pages, rows, |value| match value {
            Some(ColumnValue::Text(path)) => self.push(path, &name),
            _ => self.push(b"", &name),
        })
    }

    fn push(&mut self, path: &[u8], column: &str) -> Result<(), String> {
        let row = self.len();
        if path.is_empty() {
            return Err(format!(
                "row {row}: column '{column}' has no path: remove the row"
            ));
        }
        if path.len() > MOST_PATH {
            return Err(format!(
                "row {row}: column '{column}' has a text of {}, and a path has at most {}: name the \
                 column of paths with `path_column`",
                error::size(path.len() as u64),
                error::size(MOST_PATH as u64)
            ));
        }
        // A few bytes of a file may be many equal paths.
        if (self.bytes.len() + path.len()) as u64 > self.room {
            return Err(format!(
                "row {row}: the paths of column '{column}' take more than {}, a quarter of the \
                 available memory: use files of fewer rows, or more memory",
                error::size_rounded_down(self.room)
            ));
        }
        self.bytes.extend(path);
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_by_bytes() {
        let mut paths = PicturePaths::new(Some(400));
        paths.push(&[b'a'; 60], "url").unwrap();
        paths.push(b"b.jpg", "url").unwrap();
        let e = paths.push(&[b'c'; 60], "url").unwrap_err();
        assert!(
            e.contains("row 2") && e.contains("a quarter of the available"),
            "{e}"
        );
        assert_eq!(paths.len(), 2);
        assert_eq!(paths.iter().nth(1), Some(&b"b.jpg"[..]));
        let mut paths = PicturePaths::new(None);
        let e = paths.push(&[b'a'; MOST_PATH + 1], "text").unwrap_err();
        assert!(e.contains("'text'") && e.contains("64 KiB"), "{e}");
        assert!(paths.push(b"", "text").unwrap_err().contains("has no path"));
    }
}
