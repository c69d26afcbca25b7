//! JSON members beside the images of tar shards, one after the other.
//!
//! In the consumer, before a run.

use std::path::PathBuf;

use crate::data::columns::row_value::{RecordContent, RowReader};
use crate::data::index::Index;
use crate::data::index::shards::column_reader::member;
use crate::error::Result;

/// Bytes of the largest member.
const MOST_BYTES: u64 = 16 << 20;

struct MemberRows {
    extension: String,
}

/// The members with this extension, such as `json`.
pub(crate) fn open_rows(extension: &str) -> Box<dyn RowReader> {
    Box::new(MemberRows {
        extension: extension.trim_start_matches('.').to_ascii_lowercase(),
    })
}

impl RowReader for MemberRows {
    fn next(&mut self, index: &Index, id: u64) -> Result<RecordContent> {
        let found = member(index, id, &self.extension, MOST_BYTES)?;
        Ok(found.map_or(RecordContent::Missing, RecordContent::Json))
    }

    fn place(&self, index: &Index, id: u64) -> (PathBuf, String) {
        let name = index.relative_path(id).display();
        (index.file(id), format!("{} of {name}", self.extension))
    }

    fn classes(&self) -> Option<&[String]> {
        None
    }
}
