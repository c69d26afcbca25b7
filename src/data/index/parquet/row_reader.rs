//! Rows of Parquet files with all that is inside of a column, one after the other.
//!
//! In the consumer, before a run, on untrusted bytes. A list of structs and a struct of lists are
//! stored alike: both become fields that are lists.

use std::path::PathBuf;

use crate::data::columns::row_value::{RecordContent, RowReader, RowValue};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::Index;
use crate::data::index::column_names::quoted;
use crate::data::index::features::{WantedFields, class_names_inside, no_column};
use crate::data::index::parquet::column_reader::leaf_name;
use crate::data::index::parquet::footer::ParquetFooter;
use crate::data::index::parquet::nested_leaf::NestedLeaf;
use crate::error::{Error, Result};
use crate::sys::panics::catch_panic;

struct RowFile {
    stamp: StampedFile,
    footer: ParquetFooter,
    leaves: Vec<RowLeaf>,
    rows: u64,
}

/// A leaf column, and where its value belongs.
struct RowLeaf {
    /// The name of a field inside of the column. None: a column of its own.
    field: Option<String>,
    name: String,
    leaf: NestedLeaf,
}

struct ParquetRows {
    column: String,
    files: Vec<RowFile>,
    /// The file that is read, and its next row.
    file: usize,
    row: u64,
    classes: Option<Vec<String>>,
}

/// The columns of Parquet files that `wanted` names.
///
/// # Errors
/// A file without the column, or without a field of it; a damaged file, or one that changed since
/// it was stamped.
pub(super) fn open_rows(
    files: &[StampedFile],
    wanted: &WantedFields<'_>,
) -> Result<Box<dyn RowReader>> {
    let mut opened = Vec::new();
    let mut classes: Option<Option<Vec<String>>> = None;
    for stamp in files {
        let path = stamp.path();
        // The crate that decodes footers may panic on damaged bytes.
        let read = catch_panic(|| {
            let footer = ParquetFooter::read(path)?;
            let leaves = leaves(&footer, wanted).map_err(|what| Error::dataset(path, what))?;
            Ok((footer, leaves))
        });
        let damaged = || Err(Error::dataset(path, "is damaged: it cannot be read"));
        let (footer, leaves) = read.unwrap_or_else(damaged)?;
        let features = footer.features();
        let features = features.map_err(|what| Error::dataset(path, what))?;
        let feature = features.get(wanted.column);
        let of_file = feature.and_then(|of| class_names_inside(of, wanted.classes));
        if *classes.get_or_insert_with(|| of_file.clone()) != of_file {
            return Err(Error::dataset(
                path,
                "names other classes than the first file: give files of one data set",
            ));
        }
        stamp.check(&footer.file)?;
        let groups = footer.data.row_groups().iter();
        let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        opened.push(RowFile {
            stamp: stamp.clone(),
            rows: rows.fold(0, u64::saturating_add),
            leaves,
            footer,
        });
    }
    Ok(Box::new(ParquetRows {
        column: wanted.column.to_owned(),
        files: opened,
        file: 0,
        row: 0,
        classes: classes.flatten(),
    }))
}

fn leaves(footer: &ParquetFooter, wanted: &WantedFields<'_>) -> Result<Vec<RowLeaf>, String> {
    let schema = footer.data.file_metadata().schema_descr();
    let mut leaves = Vec::new();
    for (number, leaf) in schema.columns().iter().enumerate() {
        let name = leaf_name(leaf);
        let field = match name.strip_prefix('/').and_then(|name| name.split_once('/')) {
            Some((top, field)) if top == wanted.column => Some(field),
            Some(_) => continue,
            None if wanted.beside.contains(&name.as_str()) => None,
            None => continue,
        };
        if field.is_some_and(|field| !wanted.fields.contains(&field)) {
            continue;
        }
        let opened = NestedLeaf::new(schema, number);
        if field.is_none() && opened.is_err() {
            // A column of this name that is no number.
            continue;
        }
        leaves.push(RowLeaf {
            field: field.map(str::to_owned),
            leaf: opened.map_err(|what| format!("column {} {what}", quoted(&name)))?,
            name,
        });
    }
    if leaves.iter().all(|leaf| leaf.field.is_none()) {
        let names: Vec<String> = schema.columns().iter().map(leaf_name).collect();
        let names = names.iter().map(String::as_str).collect();
        return Err(no_column(wanted, names));
    }
    Ok(leaves)
}

impl RowReader for ParquetRows {
    fn next(&mut self, _: &Index, _: u64) -> Result<RecordContent> {
        while self
            .files
            .get(self.file)
            .is_some_and(|file| self.row == file.rows)
        {
            (self.file, self.row) = (self.file + 1, 0);
        }
        let row = self.row;
        let Some(file) = self.files.get_mut(self.file) else {
            return Err(Error::config(
                "the Parquet files have fewer rows than samples",
            ));
        };
        self.row += 1;
        let path = file.stamp.path();
        let (mut inside, mut fields, mut fault) = (Vec::new(), Vec::new(), None);
        for RowLeaf { field, name, leaf } in &mut file.leaves {
            match leaf.next_row(&file.footer) {
                Ok(value) => match field {
                    Some(field) => inside.push((field.clone(), value)),
                    None => fields.push((name.clone(), value)),
                },
                Err(what) => {
                    let what = format!("row {row}, column {}: {what}", quoted(name));
                    fault.get_or_insert(Error::dataset(path, what));
                }
            }
        }
        file.stamp.check(&file.footer.file)?;
        fields.push((self.column.clone(), RowValue::Fields(inside)));
        fault.map_or(Ok(RecordContent::Fields(RowValue::Fields(fields))), Err)
    }

    fn place(&self, _: &Index, id: u64) -> (PathBuf, String) {
        let (mut file, mut row) = (0, id);
        while let Some(of) = self.files.get(file).filter(|of| row >= of.rows) {
            (file, row) = (file + 1, row - of.rows);
        }
        let path = self.files.get(file).map(|of| of.stamp.path().to_owned());
        (path.unwrap_or_default(), format!("row {row}"))
    }

    fn classes(&self) -> Option<&[String]> {
        self.classes.as_deref()
    }
}
