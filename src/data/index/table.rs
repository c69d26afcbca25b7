//! Reads a table: a list with named columns, as CSV or as lines of JSON.
//!
//! Runs in the consumer. It streams the file, one record at a time. It asks the file system about
//! the table and the root only, never about a sample. Samples have the order of the file. Each bad
//! record is an error that names the line where it begins. None is skipped.
//!
//! - The name of a table ends in `.csv`, `.tsv`, `.jsonl` or `.ndjson`.
//! - Its text is UTF-8, and so are its paths. A list file can have other paths.
//! - One column has the path, and one or several have the label. Other columns are ignored.
//!
//! - `options`: reading options; `table_format`: CSV or JSON lines; `columns`: the columns of path
//!   and label;
//! - `row`: the values of a record; `csv`, `json`: records as rows; `records`, `fields`: records
//!   and fields of CSV as bytes;
//! - `labels`: labels of all records; `column_reader`: further columns, read by batches;
//!   `row_reader`: lines of JSON, read before a run.

mod column_reader;
mod columns;
mod csv;
mod fields;
mod json;
pub(super) mod labels;
mod options;
mod records;
mod row;
mod row_reader;
mod table_format;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::data::index::binary_form::IndexContent;
use crate::data::index::foreign_data;
use crate::data::index::list::relabel;
use crate::data::index::list_root::{ListRoot, PathFault};
use crate::data::index::report::ScanReport;
use crate::error::{Error, Result};

pub(crate) use column_reader::open_columns;
use csv::CsvRows;
pub(crate) use csv::open_records;
use json::JsonRows;
use labels::{LINE, TableLabelCollector};
pub use options::{TableLabels, TableOptions};
pub(crate) use records::CsvRecords;
use row::{TableReader, TableRow};
pub(crate) use row_reader::open_rows;
use table_format::TableFormat;

/// Whether a path has the extension of a table.
pub(crate) fn has_table_extension(path: &Path) -> bool {
    TableFormat::of(path).is_some()
}

pub(crate) fn read(
    file: &Path,
    options: &TableOptions,
) -> Result<(PathBuf, IndexContent, ScanReport)> {
    check(options)?;
    let mut rows = open(file, options)?;
    let roots = ListRoot::new(file, options.root.as_deref(), options.allow_outside)?;
    let mut content = IndexContent::default();
    let mut labels = TableLabelCollector::new(LINE, options.classes.as_ref().map(Cow::Borrowed));
    let mut row = TableRow::default();
    while rows.next(&mut row)? {
        let failed = |what: String| Error::dataset_line(file, row.line, what);
        if row.path.is_empty() {
            return Err(failed(PathFault::Empty.text()));
        }
        if row.path.contains(&0) {
            return Err(failed(
                "a NUL byte in the path: is this a text file?".into(),
            ));
        }
        row.path.extend_from_slice(options.path_suffix.as_bytes());
        let relative = roots.relative(&row.path);
        content.push_path(relative.map_err(|bad| failed(bad.text()))?);
        labels.add(row.line, row.label.take()).map_err(failed)?;
    }
    if content.samples() == 0 {
        return Err(Error::dataset(
            file,
            "no samples in this table: write a record for each, in a CSV after the header line",
        ));
    }
    let columns = rows.columns();
    (content.labels, content.classes) =
        labels.finish().map_err(|what| Error::dataset(file, what))?;
    if options.relabel {
        relabel(&mut content.labels, file)?;
    }
    let report = ScanReport {
        samples: content.samples() as u64,
        columns: Some(columns),
        ..ScanReport::default()
    };
    Ok((roots.into_root(), content, report))
}

fn open<'a>(file: &'a Path, options: &'a TableOptions) -> Result<Box<dyn TableReader + 'a>> {
    let form = TableFormat::of(file).ok_or_else(|| {
        let known = TableFormat::EXTENSIONS.join(", ");
        Error::dataset(
            file,
            format!("is not a table by its extension: use one of {known}"),
        )
    })?;
    let rows: Box<dyn TableReader> = match form {
        TableFormat::Csv | TableFormat::Tsv => {
            if let Some(what) = foreign_data::of_file(file) {
                return Err(Error::dataset(file, what));
            }
            Box::new(CsvRows::open(file, form, options)?)
        }
        TableFormat::JsonLines => {
            let rows = JsonRows::open(file, options)?;
            if let Some(what) = foreign_data::of_file_of_json_lines(file) {
                return Err(Error::dataset(file, what));
            }
            Box::new(rows)
        }
    };
    Ok(rows)
}

fn check(options: &TableOptions) -> Result<()> {
    match &options.labels {
        TableLabels::None if options.classes.is_some() => Err(Error::config(
            "a class table has no effect without labels: remove `classes` or `labels: none`",
        )),
        TableLabels::Columns(names) if names.is_empty() || names.iter().any(String::is_empty) => {
            Err(Error::config(
                "`label_column` has an empty name: name columns, with a comma between two",
            ))
        }
        TableLabels::Columns(names) if names.len() > 1 && options.classes.is_some() => {
            Err(Error::config(
                "`classes` numbers class names, and several columns of labels are numbers: \
                 remove it, or name one column with `label_column`",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
