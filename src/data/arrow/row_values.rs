//! The value of a row of an Arrow column with all that is inside of it.
//!
//! Runs in the consumer, on untrusted bytes. Memory: one row, of at most [`MOST_VALUES`] values.

use crate::data::arrow::arrays::ArrayPlace;
use crate::data::arrow::bytes::{ArrowBytes, damaged};
use crate::data::arrow::column::{ArrowColumn, is_null, numbers, range_of, text_of};
use crate::data::arrow::schema::{ArrowField, ArrowType};
use crate::data::columns::row_value::{MOST_VALUES, RowValue};
use crate::data::columns::values::NumberKind;

/// Reads the values of one row.
struct NestedReader<'a> {
    bytes: &'a mut ArrowBytes,
    /// Fields of structs that are read.
    wanted: &'a [&'a str],
    /// Values that the row may still have.
    left: usize,
}

impl ArrowColumn {
    /// The value of a row. Of structs, the fields of `wanted` names alone.
    ///
    /// # Errors
    /// The file is damaged or cannot be read; a type that has no value; too many values.
    pub(crate) fn value(
        &self,
        bytes: &mut ArrowBytes,
        row: u64,
        wanted: &[&str],
    ) -> Result<RowValue, String> {
        let (around, array, row) = self.locate(row)?;
        for array in around {
            if is_null(bytes, array, row)? {
                return Ok(RowValue::Null);
            }
        }
        let mut reader = NestedReader {
            bytes,
            wanted,
            left: MOST_VALUES,
        };
        reader.value(&self.field, array, row)
    }
}

impl NestedReader<'_> {
    fn take(&mut self, count: u64) -> Result<(), String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let left = self.left.checked_sub(count);
        self.left = left.ok_or_else(|| format!("has more than {MOST_VALUES} values in a row"))?;
        Ok(())
    }

    fn value(
        &mut self,
        field: &ArrowField,
        array: &ArrayPlace,
        row: u64,
    ) -> Result<RowValue, String> {
        self.take(1)?;
        let outside = || damaged(array.buffers.first().map_or(0, |buffer| buffer.at));
        if row >= array.rows {
            return Err(outside());
        }
        if is_null(self.bytes, array, row)? {
            return Ok(RowValue::Null);
        }
        match field.kind {
            ArrowType::Number(kind) => {
                let number = numbers(self.bytes, kind, array, row, 1)?;
                Ok(RowValue::of_bytes(kind, &number))
            }
            ArrowType::Text(_) | ArrowType::View(true) => {
                let text = text_of(self.bytes, field.kind, array, row)?;
                Ok(text.map_or(RowValue::Null, RowValue::Text))
            }
            ArrowType::Struct => {
                let mut fields = Vec::new();
                for (field, child) in field.children.iter().zip(&array.children) {
                    if self.wanted.contains(&field.name.as_str()) {
                        fields.push((field.name.clone(), self.value(field, child, row)?));
                    }
                }
                Ok(RowValue::Fields(fields))
            }
            ArrowType::List(_) | ArrowType::FixedList(_) => {
                let (first, count) = range_of(self.bytes, field.kind, array, row)?;
                let inner = field.children.first().zip(array.children.first());
                let (field, child) = inner.ok_or_else(outside)?;
                let end = first.checked_add(count).filter(|end| *end <= child.rows);
                self.list(field, child, first..end.ok_or_else(outside)?)
            }
            ArrowType::Null => Ok(RowValue::Null),
            _ => Err(format!(
                "has {} in {}: write the values themselves, as numbers or text",
                field.type_name(),
                crate::data::index::shown(field.name.as_bytes()),
            )),
        }
    }

    fn list(
        &mut self,
        field: &ArrowField,
        array: &ArrayPlace,
        rows: std::ops::Range<u64>,
    ) -> Result<RowValue, String> {
        let count = rows.end - rows.start;
        match field.kind {
            // Without missing values all numbers lie one after the other.
            ArrowType::Number(kind) if !array.has_nulls && kind != NumberKind::Bool => {
                self.take(count)?;
                let all = numbers(self.bytes, kind, array, rows.start, count)?;
                let each = all.chunks_exact(kind.bytes());
                let values = each.map(|bytes| RowValue::of_bytes(kind, bytes));
                Ok(RowValue::List(values.collect()))
            }
            _ => {
                let mut values = Vec::new();
                for row in rows {
                    values.push(self.value(field, array, row)?);
                }
                Ok(RowValue::List(values))
            }
        }
    }
}
