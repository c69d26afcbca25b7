//! Lines of a JSON table, one after the other.
//!
//! In the consumer, before a run.

use std::path::PathBuf;

use crate::data::columns::row_value::{RecordContent, RowReader};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::Index;
use crate::data::index::lines::TextLines;
use crate::data::index::table::table_format::TableFormat;
use crate::error::{Error, Result};

struct JsonTableRows {
    file: StampedFile,
    lines: TextLines<'static>,
    line: u64,
}

/// The lines of a table of JSON objects.
///
/// # Errors
/// A table of another format; a file that changed since it was stamped.
pub(crate) fn open_rows(file: &StampedFile) -> Result<Box<dyn RowReader>> {
    let path = file.path();
    if TableFormat::of(path) != Some(TableFormat::JsonLines) {
        return Err(Error::dataset(
            path,
            "has no column with lists inside of it: write lines of JSON (.jsonl), or give a file \
             of boxes, such as boxes.csv",
        ));
    }
    let lines = TextLines::open(path.to_owned())?;
    file.check(lines.file())?;
    Ok(Box::new(JsonTableRows {
        file: file.clone(),
        lines,
        line: 0,
    }))
}

impl RowReader for JsonTableRows {
    fn next(&mut self, _: &Index, id: u64) -> Result<RecordContent> {
        let path = self.file.path();
        loop {
            let found = self.lines.next_line()?;
            let Some((number, line)) = found else {
                let what = format!("has no record {id} any more: do not change it during a run");
                return Err(Error::dataset(path, what));
            };
            self.line = number;
            if !line.trim_ascii().is_empty() {
                let line = line.to_vec();
                self.file.check(self.lines.file())?;
                return Ok(RecordContent::Json(line));
            }
        }
    }

    fn place(&self, _: &Index, _: u64) -> (PathBuf, String) {
        (self.file.path().to_owned(), format!("line {}", self.line))
    }

    fn classes(&self) -> Option<&[String]> {
        None
    }
}
