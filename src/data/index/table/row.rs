//! One record of a table as a row, and the trait for readers of rows.
//!
//! Used in the consumer.

use crate::data::index::column_names::quoted;
use crate::data::index::label_value::LabelValue;
use crate::data::index::names::shown;
use crate::data::index::report::TableColumns;
use crate::error::Result;

/// The record of one sample.
#[derive(Debug, Default)]
pub(super) struct TableRow {
    /// The line where it begins, from 1.
    pub(super) line: u64,
    pub(super) path: Vec<u8>,
    /// `None` if the table has no labels.
    pub(super) label: Option<LabelValue>,
}

/// Reads the records of a table in order.
pub(super) trait TableReader {
    /// Reads the next record into `row`. Returns false at the end of the table.
    fn next(&mut self, row: &mut TableRow) -> Result<bool>;

    /// The columns that are read. Complete after the first record.
    fn columns(&self) -> TableColumns;
}

/// One number of a label that spans several columns.
///
/// # Errors
/// The value is not a number.
pub(super) fn part(number: Option<f64>, text: &[u8], column: &str) -> Result<f32, String> {
    let number = number.map(|n| n as f32).filter(|n| n.is_finite());
    number.ok_or_else(|| {
        format!(
            "'{}' in column {} is not a number: labels of several columns are numbers",
            shown(text),
            quoted(column)
        )
    })
}

pub(super) fn without_label(column: &str) -> String {
    format!(
        "no label in column {}: add it, or use `labels: none`",
        quoted(column)
    )
}
