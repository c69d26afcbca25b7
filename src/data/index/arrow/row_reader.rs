//! Rows of Arrow files with all that is inside of them, one after the other.
//!
//! In the consumer, before a run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::data::arrow::{ArrowBuffers, ArrowBytes, ArrowColumn, ArrowFile, ArrowType};
use crate::data::columns::row_value::{RecordContent, RowReader, RowValue};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::Index;
use crate::data::index::arrow::file_paths::ArrowFiles;
use crate::data::index::arrow::files::{absolute, read_order};
use crate::data::index::column_names::quoted;
use crate::data::index::features::{WantedFields, class_names_inside, no_column};
use crate::error::{Error, Result};

struct RowFile {
    path: PathBuf,
    stamp: StampedFile,
    file: ArrowFile,
    columns: Vec<ArrowColumn>,
    bytes: ArrowBytes,
}

struct ArrowRows {
    files: Vec<RowFile>,
    /// The first row of each file.
    firsts: Vec<u64>,
    /// The row of each sample, if rows are not samples in their order.
    order: Option<Vec<u64>>,
    fields: &'static [&'static str],
    classes: Option<Vec<String>>,
}

/// The columns of Arrow files that `wanted` names. `stamps`: as for columns of batches.
///
/// # Errors
/// A file without the column, a damaged file, or one that changed since it was stamped.
pub(crate) fn open_rows(
    files: &ArrowFiles,
    stamps: &[StampedFile],
    wanted: &WantedFields<'_>,
) -> Result<Box<dyn RowReader>> {
    let kept = Arc::<ArrowBuffers>::default();
    let (mut opened, mut firsts, mut rows) = (Vec::new(), Vec::new(), 0u64);
    let mut classes: Option<Option<Vec<String>>> = None;
    for (number, (path, stamp)) in absolute(&files.data)?.into_iter().zip(stamps).enumerate() {
        let file = ArrowFile::read(&path)?;
        let failed = |what| Error::dataset(&path, what);
        let mut columns = Vec::new();
        for (at, field) in file.fields().iter().enumerate() {
            let is_beside = matches!(field.kind, ArrowType::Number(_))
                && wanted.beside.contains(&field.name.as_str());
            if field.name == wanted.column || is_beside {
                columns.push(ArrowColumn::find(&file, &[at]).map_err(failed)?);
            }
        }
        if !columns.iter().any(|of| of.field.name == wanted.column) {
            let names = file.fields().iter().map(|field| field.name.as_str());
            return Err(failed(no_column(wanted, names.collect())));
        }
        let feature = file.features();
        let feature = feature.get(wanted.column);
        let of_file = feature.and_then(|of| class_names_inside(of, wanted.classes));
        if *classes.get_or_insert_with(|| of_file.clone()) != of_file {
            return Err(failed(
                "names other classes than the first file: give files of one data set".into(),
            ));
        }
        stamp.check(&file.file)?;
        firsts.push(rows);
        rows = rows.saturating_add(file.rows);
        opened.push(RowFile {
            bytes: ArrowBytes::of_rows(&file).with_kept(&kept, number),
            stamp: stamp.clone(),
            path,
            file,
            columns,
        });
    }
    let order = match files.indices.is_empty() {
        true => None,
        false => Some(read_order(&files.indices, rows)?),
    };
    for stamp in &stamps[files.data.len()..] {
        stamp.check_closed()?;
    }
    Ok(Box::new(ArrowRows {
        files: opened,
        firsts,
        order,
        fields: wanted.fields,
        classes: classes.flatten(),
    }))
}

impl ArrowRows {
    /// The file of a sample, and its row there.
    fn locate(&self, id: u64) -> (usize, u64) {
        let row = match &self.order {
            None => id,
            Some(order) => order.get(id as usize).copied().unwrap_or(u64::MAX),
        };
        // The first file begins at row 0.
        let number = self.firsts.partition_point(|first| *first <= row);
        let number = number.saturating_sub(1);
        (number, row - self.firsts[number])
    }
}

impl RowReader for ArrowRows {
    fn next(&mut self, _: &Index, id: u64) -> Result<RecordContent> {
        let (number, row) = self.locate(id);
        let fields = self.fields;
        let RowFile {
            path,
            stamp,
            file,
            columns,
            bytes,
        } = &mut self.files[number];
        let mut found = Vec::new();
        let mut fault = None;
        for column in columns {
            let name = &column.field.name;
            match column.value(bytes, row, fields) {
                Ok(value) => found.push((name.clone(), value)),
                Err(what) => {
                    let what = format!("row {row}, column {}: {what}", quoted(name));
                    fault.get_or_insert(Error::dataset(&*path, what));
                }
            }
        }
        stamp.check(&file.file)?;
        fault.map_or(Ok(RecordContent::Fields(RowValue::Fields(found))), Err)
    }

    fn place(&self, _: &Index, id: u64) -> (PathBuf, String) {
        let (number, row) = self.locate(id);
        (self.files[number].path.clone(), format!("row {row}"))
    }

    fn classes(&self) -> Option<&[String]> {
        self.classes.as_deref()
    }
}
