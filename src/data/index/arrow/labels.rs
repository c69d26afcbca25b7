//! Reads the labels of one Arrow file.
//!
//! Runs in the consumer, on untrusted bytes. Holds the labels of the file, and each class name
//! once.

use std::collections::HashMap;

use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};
use crate::data::columns::values::{ColumnBuilder, ColumnKind, ColumnValues};
use crate::data::index::column_labels::{ClassNumbering, FileLabels};
use crate::data::index::names::shown;

/// Rows whose values are converted at once.
const PIECE: u64 = 4096;

/// The labels of column `number`, one per row.
///
/// # Errors
/// A row without a label or with an invalid one, a column that cannot be labels, a damaged file.
pub(super) fn read(
    file: &ArrowFile,
    number: usize,
    names: &ClassNumbering,
) -> Result<FileLabels, String> {
    let column = ArrowColumn::find(file, &[number])?;
    let name = shown(column.field.name.as_bytes());
    let kind = column.field.column_kind();
    let (mut labels, kind) = match kind {
        Some(kind @ ColumnKind::Numbers(number, None)) if number.is_float() => {
            (FileLabels::Fractions(Vec::new()), kind)
        }
        Some(kind @ ColumnKind::Numbers(_, None)) => (FileLabels::Numbers(Vec::new()), kind),
        Some(kind @ ColumnKind::Text) => (FileLabels::Names(Vec::new()), kind),
        _ => {
            return Err(format!(
                "has {} in column '{name}', which cannot be a label: name another with \
                 `label_column`, or use `labels: none`",
                column.field.type_name()
            ));
        }
    };
    let mut bytes = ArrowBytes::in_order(file);
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut first = 0;
    while first < file.rows {
        let end = file.rows.min(first + PIECE);
        let mut values = ColumnBuilder::new(kind);
        for row in first..end {
            if !column.has_value(&mut bytes, row)? {
                return Err(format!(
                    "row {row}: no label in column '{name}': add it, or use `labels: none`"
                ));
            }
            column.read_from(&mut bytes, row, &mut values)?;
        }
        match (&mut labels, values.finish()) {
            (FileLabels::Numbers(all), ColumnValues::Numbers { values, .. }) => {
                all.extend(values.to_i64().map_err(|e| e.to_string())?);
            }
            (FileLabels::Fractions(all), ColumnValues::Numbers { values, .. }) => {
                for (row, number) in (first..).zip(values.to_f64()) {
                    let number = number as f32;
                    if !number.is_finite() {
                        return Err(format!("row {row}: the label is not a finite number"));
                    }
                    all.push(number);
                }
            }
            (FileLabels::Names(all), ColumnValues::Text(texts)) => {
                for (row, text) in (first..).zip(texts) {
                    let text = text.unwrap_or_default();
                    let number = match known.get(&text) {
                        Some(number) => *number,
                        None => {
                            let number = names.number(text.as_bytes());
                            let number = number.map_err(|what| format!("row {row}: {what}"))?;
                            known.insert(text, number);
                            number
                        }
                    };
                    all.push(number);
                }
            }
            // A column has values of one kind.
            _ => return Err(format!("has labels of several kinds in column '{name}'")),
        }
        first = end;
    }
    Ok(labels)
}
