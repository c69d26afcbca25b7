//! Reads a column of paths or addresses in place of images.
//!
//! Runs in the consumer, on untrusted bytes. Holds one page.

use parquet::schema::types::ColumnDescPtr;

use crate::data::index::names::shown;
use crate::data::index::parquet::labels::each_value;
use crate::data::index::parquet::pages::PageReader;
use crate::data::index::parquet::values::{ColumnValue, ValueForm};

/// The paths of one file, one per row.
#[derive(Debug, Default)]
pub(super) struct PicturePaths(pub(super) Vec<Vec<u8>>);

impl PicturePaths {
    /// Adds the paths of one row group, which has `rows` rows.
    ///
    /// # Errors
    /// A row without a path, a damaged page, or an unsupported encoding.
    pub(super) fn add(
        &mut self,
        column: &ColumnDescPtr,
        pages: PageReader,
        rows: u64,
    ) -> Result<(), String> {
        let of = (column, ValueForm::Text, "paths");
        each_value(of, pages, rows, |value| match value {
            Some(ColumnValue::Text(path)) if !path.is_empty() => {
                self.0.push(path.to_vec());
                Ok(())
            }
            _ => Err(format!(
                "row {}: column '{}' has no path: remove the row",
                self.0.len(),
                shown(column.name().as_bytes())
            )),
        })
    }
}
