//! The columns of a run: their readers, by name.
//!
//! In the consumer, in any thread.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

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
}

/// Columns by name, in the order in which a run names them.
pub(crate) type NamedReaders = Vec<(String, Box<dyn ColumnReader>)>;

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
    index: Arc<Index>,
    /// Files of an object store stay only until their batch is returned.
    are_temporary: bool,
}

impl OpenColumns {
    /// `None` if the run names no columns.
    pub(crate) fn new(readers: NamedReaders, index: Arc<Index>) -> Option<Arc<Self>> {
        (!readers.is_empty()).then(|| {
            Arc::new(Self {
                are_temporary: index.is_remote(),
                readers,
                index,
            })
        })
    }

    /// Names and types, in the order in which the run names them.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, ColumnKind)> {
        let readers = self.readers.iter();
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
        let found = self.readers.iter().find(|(known, _)| known == name);
        let Some((_, reader)) = found else {
            return Err(no_column(name, self.names().map(|(name, _)| name)));
        };
        let mut values = ColumnBuilder::new(reader.kind());
        for row in rows {
            match row {
                Some(id) => reader.read(&self.index, id, &mut values)?,
                None => values.push_blank(),
            }
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
    /// Values that were read with the batch, by the number of their column.
    read: Arc<[ColumnValues]>,
}

impl BatchColumns {
    pub(crate) fn new(open: Option<Arc<OpenColumns>>, rows: Vec<Option<u64>>) -> Self {
        Self {
            open,
            rows,
            read: Arc::default(),
        }
    }

    /// Reads all values now, if the files do not stay.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn read_temporary(&mut self) -> Result<()> {
        let Some(open) = self.open.as_ref().filter(|open| open.are_temporary) else {
            return Ok(());
        };
        let values = open
            .names()
            .map(|(name, _)| open.read(name, self.rows.iter().copied()));
        self.read = values.collect::<Result<_>>()?;
        Ok(())
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
        let number = self.names().position(|(known, _)| known == name);
        if let Some(values) = number.and_then(|number| self.read.get(number)) {
            return Ok(values.clone());
        }
        match &self.open {
            Some(open) => open.read(name, self.rows.iter().copied()),
            None => Err(no_column(name, std::iter::empty())),
        }
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
