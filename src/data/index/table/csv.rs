//! Reads the records of a CSV as rows. The header line names the columns.
//!
//! Runs in the consumer.

use std::borrow::Cow;
use std::path::Path;

use crate::data::columns::AvailableColumn;
use crate::data::index::column_names::quoted;
use crate::data::index::label_value::{self, LabelValue};
use crate::data::index::numbers;
use crate::data::index::report::TableColumns;
use crate::data::index::table::columns;
use crate::data::index::table::options::TableOptions;
use crate::data::index::table::records::CsvRecords;
use crate::data::index::table::row::{TableReader, TableRow, part, without_label};
use crate::data::index::table::table_format::TableFormat;
use crate::error::Error;

pub(super) struct CsvRows<'a> {
    file: &'a Path,
    records: CsvRecords<'a>,
    names: Vec<String>,
    path: usize,
    labels: Vec<usize>,
    /// Whether labels are class names, even if they look like numbers.
    are_names: bool,
}

impl<'a> CsvRows<'a> {
    /// Reads the header line.
    pub(super) fn open(
        file: &'a Path,
        form: TableFormat,
        options: &TableOptions,
    ) -> Result<Self, Error> {
        let (records, header) = header(file, form)?;
        let chosen = choose(&header.names, options).map_err(|what| match header.is_utf8 {
            true => what,
            false => "the header line is not UTF-8: save the file as UTF-8".into(),
        });
        let (path, labels) = chosen.map_err(|what| Error::dataset_line(file, header.line, what))?;
        Ok(Self {
            file,
            records,
            names: header.names,
            path,
            labels,
            are_names: options.classes.is_some(),
        })
    }

    /// The text of a field of the current record.
    fn text(&self, column: usize) -> Result<&str, String> {
        std::str::from_utf8(self.records.field(column)).map_err(|_| {
            format!(
                "column {} is not UTF-8: save the file as UTF-8",
                quoted(&self.names[column])
            )
        })
    }

    fn fill(&self, row: &mut TableRow) -> Result<(), String> {
        let (has, wants) = (self.records.len(), self.names.len());
        // Spreadsheets may write separators at the ends of lines.
        let is_padded = || (wants..has).all(|extra| self.records.field(extra).is_empty());
        if has < wants || !is_padded() {
            return Err(format!(
                "{has} columns, but the header line has {wants}: put a value with a separator in \
                 double quotes"
            ));
        }
        row.path.clear();
        row.path.extend_from_slice(self.text(self.path)?.as_bytes());
        row.label = match self.labels.as_slice() {
            [] => None,
            [column] => Some(self.label(*column)?),
            several => {
                let parts = several.iter().map(|column| {
                    let text = self.text(*column)?.trim_ascii();
                    part(text.parse().ok(), text.as_bytes(), &self.names[*column])
                });
                Some(LabelValue::Vector(parts.collect::<Result<_, _>>()?))
            }
        };
        Ok(())
    }

    fn label(&self, column: usize) -> Result<LabelValue, String> {
        let text = self.text(column)?.trim_ascii();
        let name = &self.names[column];
        match text {
            "" => Err(without_label(name)),
            _ if self.are_names => Ok(LabelValue::Name(text.as_bytes().to_vec())),
            _ => {
                let value = self
                    .refuse_comma(text)
                    .and_then(|()| label_value::of_text(text.as_bytes()));
                value.map_err(|what| format!("column {} {what}", quoted(name)))
            }
        }
    }

    /// Rejects decimal commas. Spreadsheets that write them use semicolons as separators.
    fn refuse_comma(&self, text: &str) -> Result<(), String> {
        match self.records.separator() {
            b';' if numbers::is_comma_pair(text) => Err(numbers::ambiguity_text(text)),
            _ => Ok(()),
        }
    }
}

impl TableReader for CsvRows<'_> {
    fn next(&mut self, row: &mut TableRow) -> Result<bool, Error> {
        let Some(line) = self.records.next()? else {
            return Ok(false);
        };
        row.line = line;
        let filled = self.fill(row);
        filled.map_err(|what| Error::dataset_line(self.file, line, what))?;
        Ok(true)
    }

    fn columns(&self) -> TableColumns {
        let name = |column: &usize| self.names[*column].clone();
        TableColumns {
            path: name(&self.path),
            labels: self.labels.iter().map(name).collect(),
            available: self
                .names
                .iter()
                .map(|name| AvailableColumn::new(name, ""))
                .collect(),
            ..TableColumns::default()
        }
    }
}

/// The positions of the path and of the labels.
fn choose(names: &[String], options: &TableOptions) -> Result<(usize, Vec<usize>), String> {
    let path = columns::path(names, options.path_column.as_deref())?.ok_or_else(|| {
        columns::no_path(names) + "; a file without a header line is a list: give its `delimiter`"
    })?;
    let labels = columns::labels(names, &options.labels, &path)?;
    let labels = labels.iter().map(|name| columns::position(names, name));
    Ok((
        columns::position(names, &path)?,
        labels.collect::<Result<_, _>>()?,
    ))
}

/// The header line.
pub(super) struct CsvHeader {
    pub(super) line: u64,
    /// Bytes that are not UTF-8 are replaced.
    pub(super) names: Vec<String>,
    is_utf8: bool,
}

/// The names of the columns of a CSV or TSV, and the reader of the records after them.
///
/// # Errors
/// A file that cannot be read, is empty, or whose header line is not UTF-8.
pub(crate) fn open_records(file: &Path) -> Result<(Vec<String>, CsvRecords<'_>), Error> {
    let form = TableFormat::of(file).unwrap_or(TableFormat::Csv);
    let (records, header) = header(file, form)?;
    match header.is_utf8 {
        true => Ok((header.names, records)),
        false => {
            let what = "the header line is not UTF-8: save the file as UTF-8";
            Err(Error::dataset_line(file, header.line, what))
        }
    }
}

/// Reads the header line. Returns it with the reader of the records after it.
pub(super) fn header<'a>(
    file: impl Into<Cow<'a, Path>>,
    form: TableFormat,
) -> Result<(CsvRecords<'a>, CsvHeader), Error> {
    let file = file.into();
    let separator = if form == TableFormat::Tsv {
        b'\t'
    } else {
        b','
    };
    let mut records = CsvRecords::open(file.clone(), separator)?;
    let empty = || {
        Error::dataset(
            &*file,
            "is empty: write a header line, such as file_name,label",
        )
    };
    let mut line = records.next()?.ok_or_else(empty)?;
    // Spreadsheets of many countries write semicolons.
    let other = [b';', b'\t']
        .into_iter()
        .find(|other| records.field(0).contains(other));
    if form == TableFormat::Csv
        && records.len() == 1
        && let Some(other) = other
    {
        records.restart(other)?;
        line = records.next()?.ok_or_else(empty)?;
    }
    let fields = (0..records.len()).map(|column| records.field(column));
    let header = CsvHeader {
        line,
        is_utf8: fields.clone().all(|field| str::from_utf8(field).is_ok()),
        names: fields
            .map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned())
            .collect(),
    };
    Ok((records, header))
}
