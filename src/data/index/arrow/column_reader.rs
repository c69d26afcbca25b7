//! Columns of Arrow files, read where they lie.
//!
//! In the consumer. Memory: the places of a column's buffers in each record batch. A compressed
//! buffer is unpacked for its first value, and those used last are kept, for all columns together.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::data::arrow::{
    ArrowBuffers, ArrowBytes, ArrowColumn, ArrowField, ArrowFile, ArrowType, DICTIONARY,
};
use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::kept_buffers::UnpackingMemory;
use crate::data::columns::stamped_file::StampedFile;
use crate::data::columns::values::{ColumnBuilder, ColumnKind};
use crate::data::index::Index;
use crate::data::index::arrow::file_paths::ArrowFiles;
use crate::data::index::arrow::files::{absolute, read_order};
use crate::data::index::column_names::{listed, quoted};
use crate::error::{Error, Result};

/// A column in one file.
#[derive(Debug)]
struct ColumnFile {
    path: PathBuf,
    stamp: StampedFile,
    file: Arc<File>,
    len: u64,
    column: ArrowColumn,
}

/// A column over all files.
#[derive(Debug)]
struct ArrowReader {
    /// As the run names it: a column, or a path to a field inside of one.
    name: String,
    kind: ColumnKind,
    files: Vec<ColumnFile>,
    /// The first row of each file.
    firsts: Vec<u64>,
    /// The row of each sample, if rows are not samples in their order.
    order: Option<Arc<[u64]>>,
    /// Of all columns of the run.
    kept: Arc<ArrowBuffers>,
    memory: UnpackingMemory,
}

impl ColumnReader for ArrowReader {
    fn kind(&self) -> ColumnKind {
        self.kind
    }

    fn unpacking(&self) -> UnpackingMemory {
        self.memory
    }

    fn read(&self, _: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        let row = match &self.order {
            None => id,
            Some(order) => order.get(id as usize).copied().unwrap_or(u64::MAX),
        };
        let file = self.firsts.partition_point(|first| *first <= row);
        // The first file begins at row 0.
        let number = file.saturating_sub(1);
        let row = row - self.firsts[number];
        let ColumnFile {
            path,
            stamp,
            file,
            len,
            column,
        } = &self.files[number];
        let _turn = (self.memory != UnpackingMemory::default()).then(|| self.kept.turn());
        let mut bytes = ArrowBytes::at_random(file, *len).with_kept(&self.kept, number);
        let read = column.read_from(&mut bytes, row, into);
        stamp.check(file)?;
        read.map_err(|what| {
            let name = quoted(&self.name);
            Error::dataset(path, format!("row {row}, column {name}: {what}"))
        })
    }
}

/// The columns `names` of Arrow files. `stamps`: those of the files with data, then of those with
/// indices.
///
/// # Errors
/// A file without such a column, a type that no batch has, types that differ between files, a file
/// that changed since it was stamped.
pub(crate) fn open_columns(
    files: &ArrowFiles,
    stamps: &[StampedFile],
    names: &[String],
) -> Result<NamedReaders> {
    let paths = absolute(&files.data)?;
    let mut opened = Vec::new();
    for path in &paths {
        opened.push((path, ArrowFile::read(path)?));
    }
    let mut firsts = Vec::new();
    let mut rows = 0;
    for (_, file) in &opened {
        firsts.push(rows);
        rows = file.rows.saturating_add(rows);
    }
    let order = match files.indices.is_empty() {
        true => None,
        false => Some(read_order(&files.indices, rows)?.into()),
    };
    for stamp in &stamps[files.data.len()..] {
        stamp.check_closed()?;
    }
    let kept = Arc::<ArrowBuffers>::default();
    let reader = |name: &String| -> Result<Box<dyn ColumnReader>> {
        let mut kind = None;
        let mut memory = UnpackingMemory::default();
        let mut columns = Vec::new();
        for ((path, file), stamp) in opened.iter().zip(stamps) {
            let found = resolve(file.fields(), name).and_then(|at| {
                let column = ArrowColumn::find(file, &at)?;
                let of_field = kind_of(&column.field, name)?;
                match *kind.get_or_insert(of_field) == of_field {
                    true => Ok(column),
                    false => Err(format!(
                        "column {} has another type than in the first file",
                        quoted(name)
                    )),
                }
            });
            let column = found.map_err(|what| Error::dataset(path, what))?;
            stamp.check(&file.file)?;
            memory = memory.and(column.unpacking());
            columns.push(ColumnFile {
                path: path.to_path_buf(),
                stamp: stamp.clone(),
                file: file.file.clone(),
                len: file.len,
                column,
            });
        }
        let none = || Error::config("no Arrow files: give a path or a pattern");
        Ok(Box::new(ArrowReader {
            name: name.clone(),
            kind: kind.ok_or_else(none)?,
            files: columns,
            firsts: firsts.clone(),
            order: order.clone(),
            kept: kept.clone(),
            memory,
        }))
    };
    names
        .iter()
        .map(|name| Ok((name.clone(), reader(name)?)))
        .collect()
}

/// The number of a column, and of fields inside of it: a name, or a path such as `/objects/bbox`.
fn resolve(fields: &[ArrowField], name: &str) -> Result<Vec<usize>, String> {
    let missing = |fields: &[ArrowField], begin: &str| {
        let names: Vec<String> = fields
            .iter()
            .map(|field| format!("{begin}{}", field.name))
            .collect();
        format!(
            "has no column {} (its columns: {}): name another with `columns`",
            quoted(name),
            listed(&names)
        )
    };
    if let Some(number) = fields.iter().position(|field| field.name == name) {
        return Ok(vec![number]);
    }
    let Some(path) = name.strip_prefix('/') else {
        return Err(missing(fields, ""));
    };
    let (mut at, mut here, mut begin) = (Vec::new(), fields, String::from("/"));
    for part in path.split('/') {
        let part = part.replace("~1", "/").replace("~0", "~");
        let found = here
            .iter()
            .enumerate()
            .find(|(_, field)| field.name == part);
        let (number, field) = found.ok_or_else(|| missing(here, &begin))?;
        at.push(number);
        begin = format!("{begin}{part}/");
        here = match field.kind {
            ArrowType::Struct => &field.children,
            _ => &[],
        };
    }
    Ok(at)
}

/// Whether a list has lists inside.
fn is_nested(field: &ArrowField) -> bool {
    let inner = field.children.first();
    inner.is_some_and(|inner| matches!(inner.kind, ArrowType::List(_) | ArrowType::FixedList(_)))
}

fn kind_of(field: &ArrowField, name: &str) -> Result<ColumnKind, String> {
    field.column_kind().ok_or_else(|| {
        let inside: Vec<String> = field
            .children
            .iter()
            .map(|child| format!("/{}/{}", name.trim_start_matches('/'), child.name))
            .collect();
        let fix = match field.kind {
            ArrowType::Struct => format!("name a field of it, one of {}", listed(&inside)),
            ArrowType::List(_) | ArrowType::FixedList(_) if is_nested(field) => {
                "write inner lists of one length as lists of fixed size, or all numbers of a row \
                 as one list, with the lengths of its parts in a second column"
                    .to_owned()
            }
            ArrowType::Other(DICTIONARY, _) => {
                "write the values in place of their numbers (pyarrow: column.dictionary_decode())"
                    .to_owned()
            }
            _ => "write it as numbers, text, bytes, or lists of them".to_owned(),
        };
        format!(
            "column {} has the type {}, which no batch has: {fix}",
            quoted(name),
            field.type_name()
        )
    })
}
