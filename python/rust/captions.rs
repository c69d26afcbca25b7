//! Texts from Python, of which the library makes captions.

use featherload::columns::ColumnValues;
use pyo3::prelude::*;

/// The texts of one row.
#[derive(FromPyObject)]
pub enum RowTexts {
    One(Option<String>),
    Several(Vec<Option<String>>),
}

/// The texts of all rows as a column.
pub fn column(rows: Vec<RowTexts>) -> ColumnValues {
    let texts = rows.into_iter().map(|row| match row {
        RowTexts::One(text) => text.into_iter().map(Some).collect(),
        RowTexts::Several(texts) => texts,
    });
    ColumnValues::TextLists(texts.collect())
}
