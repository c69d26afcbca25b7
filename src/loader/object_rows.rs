//! Objects of rows that a program hands over as JSON: those of a table in its memory.
//!
//! In the consumer.

use std::path::Path;

use crate::data::annotations::RowObjects;
use crate::data::columns::row_value::RecordContent;
use crate::error::{Error, Result};
use crate::loader::object_source::{ListedObjects, ObjectOptions};

/// Collects the objects of a column, row by row, as [`ObjectOptions`] read them from files.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// use featherload::{ObjectOptions, ObjectRows};
///
/// let options: ObjectOptions = r#"{"column": "objects", "box_format": "xyxy"}"#.parse()?;
/// let mut rows = ObjectRows::new(options, Some(&["cat".to_owned()]))?;
/// rows.push(br#"{"objects": {"bbox": [[1, 2, 30, 40]], "category": [0]}}"#.to_vec())?;
/// let objects = rows.finish()?;
/// # let _ = objects;
/// # Ok(())
/// # }
/// ```
pub struct ObjectRows {
    options: ObjectOptions,
    objects: RowObjects,
    column: String,
    rows: u64,
}

/// What errors and reports name in place of a file.
const PLACE: &str = "the data set";

impl ObjectRows {
    /// `options` name the column, which is a key of each row. `classes`: names of categories, by
    /// their numbers.
    ///
    /// # Errors
    /// Options that name no column, or other places too; names of both.
    pub fn new(options: ObjectOptions, classes: Option<&[String]>) -> Result<Self> {
        let column = options.listed_column()?.to_owned();
        let names = options.names();
        if classes.is_some() && names.is_some() {
            return Err(Error::option(
                "objects",
                "objects: the column has names of categories: remove `names`",
            ));
        }
        let form = options.value_form();
        let reading = options.reading();
        Ok(Self {
            objects: RowObjects::new(Some(&column), form, classes.or(names), &reading)?,
            options,
            column,
            rows: 0,
        })
    }

    /// Adds the next row: a JSON object with the column, and perhaps `image_id`, `width` and
    /// `height`.
    ///
    /// # Errors
    /// Too many objects; a wrong one, with `strict`.
    pub fn push(&mut self, row: Vec<u8>) -> Result<()> {
        let place = format!("row {}", self.rows);
        self.rows += 1;
        self.objects
            .push(RecordContent::Json(row), (Path::new(PLACE), &place))
    }

    /// The options with these objects in place of the column.
    ///
    /// # Errors
    /// None of the rows has objects; no memory for their table.
    pub fn finish(self) -> Result<ObjectOptions> {
        let what = format!("objects at '{}': name another place", self.column);
        let (table, report) = self.objects.finish(Path::new(PLACE), &what)?;
        Ok(self.options.with_listed(ListedObjects {
            table: table.into(),
            report: Some(report),
        }))
    }
}

impl std::fmt::Debug for ObjectRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectRows")
            .field("column", &self.column)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
