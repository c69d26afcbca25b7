//! Objects of rows: a column of Parquet, Arrow or JSON tables, or JSON beside images in tars.

use std::path::Path;

use super::category_finder::CategoryFinder;
use super::json_tree;
use super::label_files::{FileObjects, LabelFault, add_file, check_some};
use super::object_values::{self, CoordinateForm, object_fields};
use super::options::AnnotationOptions;
use super::report::{AnnotationFault, AnnotationReport, ReportBuilder};
use crate::data::columns::row_value::{RecordContent, RowReader, RowValue};
use crate::data::index::Index;
use crate::data::objects::{ObjectForm, ObjectTable, ObjectTableWriter, StatedObjects};
use crate::error::{Error, Result};

/// Values beside the objects.
pub(crate) const BESIDE: &[&str] = &["image_id", "height", "width"];
/// Where JSON beside an image has its objects, if no key is named.
const KEYS: [&str; 2] = ["annotations", "objects"];
/// Bytes of the longest JSON text.
const MOST_BYTES: usize = 16 << 20;

/// Collects the objects of rows.
pub(crate) struct RowObjects {
    /// The key of the objects in a row.
    key: Option<String>,
    form: CoordinateForm,
    options: AnnotationOptions,
    categories: CategoryFinder,
    report: ReportBuilder,
    /// Keypoints of each object, by the first row that has any. 0 before it.
    keypoints: usize,
    writer: ObjectTableWriter,
}

/// What a row states.
#[derive(Default)]
struct RowRecord {
    /// Null: nothing of objects.
    objects: RowValue,
    image_id: Option<i64>,
    size: Option<(u32, u32)>,
}

impl RowObjects {
    /// `names`: those of categories, in the order of their numbers. `key`: where a row has its
    /// objects.
    ///
    /// # Errors
    /// No memory for the table.
    pub(crate) fn new(
        key: Option<&str>,
        form: CoordinateForm,
        names: Option<&[String]>,
        options: &AnnotationOptions,
    ) -> Result<Self> {
        let writer = ObjectTableWriter::with_later_categories(ObjectForm {
            boxes: form.boxes,
            shares: form.shares,
            area: !form.shares,
            shapes: options.shapes,
            ..ObjectForm::default()
        })?;
        Ok(Self {
            key: key.map(str::to_owned),
            form,
            categories: CategoryFinder::new(names),
            report: ReportBuilder::new(options.strict),
            options: options.clone(),
            keypoints: 0,
            writer,
        })
    }

    /// Adds the objects of the next row. `place`: its file, and its place there.
    ///
    /// # Errors
    /// Too many objects or bytes; a wrong object, if that is an error.
    pub(crate) fn push(&mut self, content: RecordContent, place: (&Path, &str)) -> Result<()> {
        let (file, row) = place;
        let failed = |what: String| Error::dataset(file, format!("{row}: {what}"));
        let fault = |fault| LabelFault { fault, place: None };
        let record = match content {
            RecordContent::Missing => None,
            RecordContent::Fields(fields) => Some(Ok(self.record(fields))),
            RecordContent::Json(text) if text.len() > MOST_BYTES => {
                return Err(failed(format!("has more than {MOST_BYTES} bytes of JSON")));
            }
            RecordContent::Json(text) => {
                let fields = object_fields(self.options.shapes);
                let key = self.key.as_deref();
                let wanted = |name: &str| {
                    fields.contains(&name)
                        || BESIDE.contains(&name)
                        || KEYS.contains(&name)
                        || key == Some(name)
                };
                Some(json_tree::read(&text, &wanted).map(|value| self.record(value)))
            }
        };
        let read = match record {
            None => None,
            Some(Ok(record)) if record.objects == RowValue::Null => {
                self.report.report.images_without_entry += 1;
                self.report.image(0);
                return self.writer.push(&StatedObjects {
                    size: self.size(&record),
                    image_id: record.image_id.unwrap_or(-1),
                    ..StatedObjects::default()
                });
            }
            Some(Err(_)) => Some(FileObjects {
                faults: vec![fault(AnnotationFault::Damaged)],
                ..FileObjects::default()
            }),
            Some(Ok(record)) => Some(self.objects(&record).map_err(failed)?),
        };
        add_file(file, Some(row), read, &mut self.writer, &mut self.report)
    }

    /// Height and width that the row states, for boxes in pixels.
    fn size(&self, record: &RowRecord) -> Option<(u32, u32)> {
        record.size.filter(|_| !self.form.shares)
    }

    fn objects(&mut self, record: &RowRecord) -> Result<FileObjects, String> {
        let size = self.size(record);
        let (form, options) = (self.form, &self.options);
        let mut read =
            object_values::read(&record.objects, size, form, options, &mut self.categories)?;
        read.sample.image_id = record.image_id.unwrap_or(-1);
        self.fit_keypoints(&mut read);
        Ok(read)
    }

    /// Gives all objects the same number of keypoints. Objects without any have zeros: not labelled.
    fn fit_keypoints(&mut self, read: &mut FileObjects) {
        let objects = &mut read.sample.objects;
        let found = objects.iter().map(|object| object.keypoints.len());
        if self.keypoints == 0
            && let Some(count) = found.max().filter(|count| *count > 0)
        {
            self.keypoints = count;
            self.writer.set_keypoints(count);
        }
        let count = self.keypoints;
        let before = objects.len();
        objects.retain_mut(|object| {
            if object.keypoints.is_empty() {
                object.keypoints.resize(count, [0.0; 3]);
            }
            object.keypoints.len() == count
        });
        let wrong = LabelFault {
            fault: AnnotationFault::WrongKeypoints,
            place: None,
        };
        let dropped = before - objects.len();
        read.faults.extend(std::iter::repeat_n(wrong, dropped));
    }

    fn record(&self, row: RowValue) -> RowRecord {
        let whole = |name| row.field(name).and_then(RowValue::whole);
        let side = |name| {
            let side = whole(name).and_then(|n| u32::try_from(n).ok());
            side.filter(|n| *n > 0)
        };
        let (image_id, size) = (whole("image_id"), side("height").zip(side("width")));
        let objects = match &self.key {
            Some(key) => row.field(key).cloned(),
            None => {
                let mut inside = KEYS.iter().filter_map(|key| row.field(key));
                let found = inside.find(|value| **value != RowValue::Null).cloned();
                let is_row = row.list().is_some() || object_values::has_boxes(&row);
                found.or_else(|| is_row.then_some(row))
            }
        };
        RowRecord {
            objects: objects.unwrap_or_default(),
            image_id,
            size,
        }
    }

    /// The table of all objects. `what`: where they are, for errors.
    ///
    /// # Errors
    /// None of the rows has objects; no usable one.
    pub(crate) fn finish(
        mut self,
        file: &Path,
        what: &str,
    ) -> Result<(ObjectTable, AnnotationReport)> {
        let found = self.categories.finish();
        self.report.relabel(&found.categories, &found.labels);
        let report = &self.report.report;
        if report.images > 0 && report.images_without_entry == report.images {
            let what = format!("none of the {} images has {what}", report.images);
            return Err(Error::dataset(file, what));
        }
        check_some(&self.report, file, "correct the objects, or `box_format`")?;
        let table = self.writer.finish_with(found.categories, &found.labels)?;
        Ok((table, self.report.finish()))
    }
}

/// Reads the objects of the images of `index`, whose rows `reader` reads. `names`: those of
/// categories, if the files have none.
///
/// # Errors
/// Rows that cannot be read; names of both; none of the rows has objects; a wrong object with
/// [`AnnotationOptions::strict`].
pub(crate) fn read_rows(
    index: &Index,
    reader: &mut dyn RowReader,
    key: Option<&str>,
    form: CoordinateForm,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    let classes = reader.classes();
    if classes.is_some() && names.is_some() {
        return Err(Error::option(
            "objects",
            "objects: the file has names of categories: remove `names`",
        ));
    }
    let mut objects = RowObjects::new(key, form, classes.or(names), options)?;
    for id in 0..index.len() {
        let content = reader.next(index, id)?;
        let (file, place) = reader.place(index, id);
        objects.push(content, (&file, &place))?;
    }
    let (file, _) = reader.place(index, 0);
    let what = match key {
        Some(key) => format!("objects at '{key}': name another place"),
        None => "boxes in a list `annotations` or `objects`: name their place".to_owned(),
    };
    objects.finish(&file, &what)
}
