//! The columns of a run: their readers, by name.
//!
//! In the consumer, in any thread.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::data::columns::kept_buffers::UnpackingMemory;
use crate::data::columns::values::{ColumnBuilder, ColumnKind, ColumnValues};
use crate::data::index::Index;
use crate::error::{Error, Result};

/// Reads the values of one column.
pub(crate) trait ColumnReader: fmt::Debug + Send + Sync {
    fn kind(&self) -> ColumnKind;

    /// Adds the value of sample `id`.
    ///
    /// # Errors
    /// A file that changed, is damaged or cannot be read; a missing value that the column cannot
    /// express. The error names the file and the row.
    fn read(&self, index: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()>;

    /// The memory for what it unpacks. All readers of a run share one
    /// [`KeptBuffers`](super::kept_buffers::KeptBuffers).
    fn unpacking(&self) -> UnpackingMemory {
        UnpackingMemory::default()
    }

    /// The number of the file that has the value of sample `id`, if a batch must read the values of
    /// a file together. Otherwise `None`.
    fn file(&self, _index: &Index, _id: u64) -> Option<u64> {
        None
    }

    /// The file that has the value of sample `id` and nothing else. It may be absent. `None` if
    /// values of several samples are in one file.
    fn own_file(&self, _index: &Index, _id: u64) -> Option<PathBuf> {
        None
    }

    /// The rows of a batch were read.
    fn end_of_rows(&self) {}
}

/// The file that has the value of a sample, for errors.
pub(crate) enum ValueFile {
    /// A file of its own, which may be absent.
    Own(PathBuf),
    /// It belongs to this image.
    Image(PathBuf),
}

/// Columns by name, in the order in which a run names them.
pub(crate) type NamedReaders = Vec<(String, Box<dyn ColumnReader>)>;

/// Most bytes of unpacked values that columns take together: those that are kept, and one buffer
/// that is unpacked.
pub(crate) fn unpacked_bytes(readers: &NamedReaders) -> u64 {
    let memory = readers.iter().map(|(_, reader)| reader.unpacking());
    memory
        .fold(UnpackingMemory::default(), UnpackingMemory::and)
        .most_bytes()
}

/// A column that a data set has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AvailableColumn {
    pub name: String,
    /// The type of its values in words, such as `text`, `int64` or `lists of float32`. Empty if the
    /// values decide it, as in a CSV.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

impl AvailableColumn {
    pub(crate) fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
        }
    }
}

impl fmt::Display for AvailableColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::data::index::shown(self.name.as_bytes()))?;
        match self.kind.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", self.kind),
        }
    }
}

/// The columns that a run has opened.
#[derive(Debug)]
pub(crate) struct OpenColumns {
    readers: NamedReaders,
    /// The first readers of this number are columns of the batch. The others are only for captions.
    named: usize,
    index: Arc<Index>,
    /// Files of an object store stay only until their batch is returned.
    are_temporary: bool,
}

impl OpenColumns {
    /// `None` if the run has no columns. `named`: how many readers, from the first on, are columns of
    /// the batch.
    pub(crate) fn new(readers: NamedReaders, named: usize, index: Arc<Index>) -> Option<Arc<Self>> {
        (!readers.is_empty()).then(|| {
            Arc::new(Self {
                are_temporary: index.is_remote(),
                readers,
                named,
                index,
            })
        })
    }

    /// Names and types, in the order in which the run names them.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, ColumnKind)> {
        let readers = self.readers.iter().take(self.named);
        readers.map(|(name, reader)| (name.as_str(), reader.kind()))
    }

    /// The values of samples. `None` for a row without a sample.
    ///
    /// # Errors
    /// There is no such column; a value that cannot be read.
    pub(crate) fn read(
        &self,
        name: &str,
        rows: impl Iterator<Item = Option<u64>>,
    ) -> Result<ColumnValues> {
        let rows: Vec<Option<u64>> = rows.collect();
        self.read_number(self.number(name)?, &rows)
    }

    /// The number of a column of batches.
    fn number(&self, name: &str) -> Result<usize> {
        let number = self.names().position(|(known, _)| known == name);
        number.ok_or_else(|| no_column(name, self.names().map(|(name, _)| name)))
    }

    /// Like [`OpenColumns::read`], by the number of a column.
    fn read_number(&self, number: usize, rows: &[Option<u64>]) -> Result<ColumnValues> {
        let (_, reader) = &self.readers[number];
        let read = self.read_rows(reader.as_ref(), rows);
        reader.end_of_rows();
        read
    }

    /// Reads the rows of one file one after the other, whatever their order.
    fn read_rows(&self, reader: &dyn ColumnReader, rows: &[Option<u64>]) -> Result<ColumnValues> {
        let kind = reader.kind();
        let read = |row: Option<u64>, into: &mut ColumnBuilder| match row {
            Some(id) => reader.read(&self.index, id, into),
            None => {
                into.push_blank();
                Ok(())
            }
        };
        let mut values = ColumnBuilder::new(kind);
        let files = rows.iter().map(|row| reader.file(&self.index, (*row)?));
        let files: Vec<Option<u64>> = files.collect();
        if files.is_sorted() {
            for row in rows {
                read(*row, &mut values)?;
            }
            return Ok(values.finish());
        }
        let mut by_file: Vec<usize> = (0..rows.len()).collect();
        by_file.sort_by_key(|at| files[*at]);
        let mut of_rows: Vec<Option<ColumnBuilder>> = rows.iter().map(|_| None).collect();
        for at in by_file {
            read(rows[at], of_rows[at].insert(ColumnBuilder::new(kind)))?;
        }
        for row in of_rows.into_iter().flatten() {
            values.append(row);
        }
        Ok(values.finish())
    }
}

/// The columns of a batch, read when they are asked for. It outlives the batch, and keeps no pixels.
#[derive(Debug, Clone, Default)]
pub struct BatchColumns {
    open: Option<Arc<OpenColumns>>,
    /// The sample of each row. `None` for padding.
    rows: Vec<Option<u64>>,
    /// Values that were read with the batch, or their fault, by the number of their column.
    read: Arc<[Result<ColumnValues>]>,
}

impl BatchColumns {
    pub(crate) fn new(open: Option<Arc<OpenColumns>>, rows: Vec<Option<u64>>) -> Self {
        Self {
            open,
            rows,
            read: Arc::default(),
        }
    }

    /// Reads all values now, if the files do not stay. A fault is returned by
    /// [`BatchColumns::read`] of its column: the pixels of the batch are good without it.
    pub(crate) fn read_temporary(&mut self) {
        let Some(open) = self.open.as_ref().filter(|open| open.are_temporary) else {
            return;
        };
        let numbers = 0..open.readers.len();
        self.read = numbers
            .map(|number| open.read_number(number, &self.rows))
            .collect();
    }

    /// Names and types of the columns, in the order in which the run names them.
    pub fn names(&self) -> impl Iterator<Item = (&str, ColumnKind)> {
        self.open.iter().flat_map(|open| open.names())
    }

    /// The values of column `name`, one for each row. Reads them from the files of the data set. Those
    /// of a cache in an object store were read with the batch.
    ///
    /// # Errors
    /// There is no such column, and the error lists those of the run; a file that changed or cannot
    /// be read; a whole number that is missing.
    pub fn read(&self, name: &str) -> Result<ColumnValues> {
        match &self.open {
            Some(open) if self.read.is_empty() => open.read(name, self.rows.iter().copied()),
            Some(open) => self.read_number(open, open.number(name)?, &self.rows),
            None => Err(no_column(name, std::iter::empty())),
        }
    }

    /// The values of a column of the run for these samples, which are rows of the batch. Values that
    /// were read with the batch are those of all its rows.
    ///
    /// # Errors
    /// As [`BatchColumns::read`].
    pub(crate) fn read_for_captions(
        &self,
        number: usize,
        rows: &[Option<u64>],
    ) -> Result<ColumnValues> {
        match &self.open {
            Some(open) => self.read_number(open, number, rows),
            None => Err(Error::config("captions: the run has no columns open")),
        }
    }

    fn read_number(
        &self,
        open: &OpenColumns,
        number: usize,
        rows: &[Option<u64>],
    ) -> Result<ColumnValues> {
        match self.read.get(number) {
            Some(Ok(values)) => Ok(values.clone()),
            Some(Err(fault)) => Err(fault.copy()),
            None => open.read_number(number, rows),
        }
    }

    /// Where sample `id` has its value in a column of the run.
    pub(crate) fn file_of_value(&self, number: usize, id: u64) -> Option<ValueFile> {
        let open = self.open.as_ref()?;
        let (_, reader) = open.readers.get(number)?;
        let own = reader.own_file(&open.index, id).map(ValueFile::Own);
        Some(own.unwrap_or_else(|| ValueFile::Image(open.index.path(id))))
    }
}

/// The error for a column that a batch does not have.
fn no_column<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let name = crate::data::index::shown(name.as_bytes());
    let names: Vec<String> = names
        .map(|name| format!("'{}'", crate::data::index::shown(name.as_bytes())))
        .collect();
    Error::option(
        "columns",
        match names.is_empty() {
            true => format!(
                "no column '{name}': this run has no columns; name those to read with `columns`"
            ),
            false => format!(
                "no column '{name}': the columns of this run are {}; name others with `columns`",
                names.join(", ")
            ),
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;
    use crate::data::columns::values::NumberKind;

    /// Three samples a file; sample 77 cannot be read. Notes each file that it opens.
    #[derive(Debug, Default)]
    struct FilesOfThree {
        open: Mutex<Option<u64>>,
        opened: Arc<Mutex<Vec<u64>>>,
    }

    impl ColumnReader for FilesOfThree {
        fn kind(&self) -> ColumnKind {
            ColumnKind::Ragged(NumberKind::I64, None)
        }

        fn read(&self, _: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
            if id == 77 {
                return Err(Error::dataset("file", "sample 77 is damaged"));
            }
            let mut open = self.open.lock().unwrap();
            if *open != Some(id / 3) {
                *open = Some(id / 3);
                self.opened.lock().unwrap().push(id / 3);
            }
            let numbers: Vec<u8> = (0..id % 4).flat_map(|_| id.to_le_bytes()).collect();
            into.push_numbers(&numbers).map_err(Error::config)
        }

        fn file(&self, _: &Index, id: u64) -> Option<u64> {
            Some(id / 3)
        }

        fn end_of_rows(&self) {
            *self.open.lock().unwrap() = None;
        }
    }

    fn open(are_temporary: bool) -> (Arc<OpenColumns>, Arc<Mutex<Vec<u64>>>) {
        let reader = FilesOfThree::default();
        let opened = reader.opened.clone();
        let index = Index::of_files(&["a.jpg".into()]).unwrap();
        let columns = OpenColumns {
            readers: vec![("n".to_owned(), Box::new(reader))],
            named: 1,
            index: Arc::new(index),
            are_temporary,
        };
        (Arc::new(columns), opened)
    }

    #[test]
    fn a_batch_reads_each_file_once_and_keeps_its_order() {
        let (columns, opened) = open(false);
        let rows: Vec<Option<u64>> = (0..122)
            .map(|n| (n % 50 != 7).then_some(n * 47 % 120).filter(|id| *id != 77))
            .collect();
        let read = columns.read("n", rows.iter().copied()).unwrap();
        let ColumnValues::Ragged {
            values, offsets, ..
        } = read
        else {
            panic!("no lists");
        };
        let values = values.to_i64().unwrap();
        for (row, id) in rows.iter().enumerate() {
            let got = &values[offsets[row] as usize..offsets[row + 1] as usize];
            let want = vec![id.unwrap_or(0) as i64; id.map_or(0, |id| id as usize % 4)];
            assert_eq!(got, want, "row {row}");
        }
        let mut opened = opened.lock().unwrap();
        assert_eq!(opened.len(), 40);
        assert_eq!(opened.drain(..).collect::<BTreeSet<_>>().len(), 40);
    }

    #[test]
    fn a_fault_of_a_column_belongs_to_the_column() {
        let (columns, opened) = open(true);
        let mut batch = BatchColumns::new(Some(columns), vec![Some(1), Some(77), None]);
        batch.read_temporary();
        for _ in 0..2 {
            let e = batch.read("n").unwrap_err().to_string();
            assert!(e.contains("sample 77 is damaged"), "{e}");
        }
        // It was read once, with the batch.
        assert_eq!(opened.lock().unwrap().len(), 1);
        let e = batch.read("other").unwrap_err().to_string();
        assert!(e.contains("no column 'other'"), "{e}");
    }
}
