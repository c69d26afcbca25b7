//! What a record of a table says of a sample, and who gives one after the other.
//!
//! In the consumer.

use crate::data::index::column_names::quoted;
use crate::data::index::label_value::LabelValue;
use crate::data::index::names::shown;
use crate::data::index::report::TableColumns;
use crate::error::Result;

/// One sample's record.
#[derive(Debug, Default)]
pub(super) struct TableRow {
    /// Where it begins, from 1.
    pub(super) line: u64,
    pub(super) path: Vec<u8>,
    /// None where the table has no labels.
    pub(super) label: Option<LabelValue>,
}

/// The records of a table, in their order.
pub(super) trait TableReader {
    /// Reads the next record into `row`; false at the end of the table.
    fn next(&mut self, row: &mut TableRow) -> Result<bool>;

    /// What was read, once a record was.
    fn columns(&self) -> TableColumns;
}

/// A number of several that are a label.
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
