//! Where the objects of a data set are.
//!
//! In the consumer.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::annotations::{
    AnnotatedSet, AnnotationOptions, AnnotationReport, BESIDE, CATEGORY_FIELDS, CoordinateForm,
    CrowdPolicy, ObjectFiles, object_fields, read_rows,
};
use crate::data::index::{CachedObjects, Index, PathPattern, WantedFields, open_cache_objects};
use crate::data::objects::{BoxForm, ObjectList, ObjectTable};
use crate::error::{Error, Result};
use crate::jobs::object_rule::{LabelNumbers, ObjectRule};
use crate::jobs::rule_fields::fields_of;
use crate::loader::column_source::{ColumnSource, open_members};
use crate::loader::files_option::{FilesOption, merged_rule, parse_option};
use crate::loader::remote_targets::FetchedAnnotations;
use crate::loader::source::Source;
use crate::remote::fetch::StoreAddress;

/// The objects of a data set: where they are, and how they move with their pictures.
///
/// ```
/// use featherload::{ObjectOptions, ObjectRule};
///
/// let objects = ObjectOptions::new("annotations/instances_train.json").rule(ObjectRule {
///     max_objects: Some(100),
///     ..ObjectRule::default()
/// });
/// # let _ = objects;
/// ```
#[derive(Debug, Clone, Default)]
pub struct ObjectOptions {
    rule: ObjectRule,
    /// The fields of the rule that were given. They replace those of a cache.
    given: Map<String, Value>,
    files: FilesOption<ListedObjects>,
    reading: AnnotationReading,
}

/// Objects that a program lists.
#[derive(Debug, Clone)]
pub(super) struct ListedObjects {
    pub(super) table: Arc<ObjectTable>,
    /// None for objects that are checked one by one.
    pub(super) report: Option<AnnotationReport>,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AnnotationReading {
    strict: bool,
    crowds: CrowdPolicy,
    /// Names of categories, for files without them.
    names: Option<Vec<String>>,
    /// Four corners in YOLO's rows are a rotated box.
    obb: bool,
    /// The images of a `data.yaml`: `train`, `val` or `test`.
    split: Option<String>,
    /// A column of Parquet, Arrow or JSON lines in place of files. Of JSON in tars: a key.
    column: Option<String>,
    /// The extension of JSON beside images in tars.
    member: Option<String>,
    /// The numbers of boxes in a column or member. Default: left, top, width, height.
    box_format: Option<BoxForm>,
    /// Whether those boxes are shares of the image's sides.
    normalized: bool,
    /// Whether the recipe needs outlines and run lengths, also without masks in batches.
    #[serde(skip)]
    shapes: bool,
}

/// The fields of [`AnnotationReading`].
const OF_READING: [&str; 9] = [
    "strict",
    "crowds",
    "names",
    "obb",
    "split",
    "column",
    "member",
    "box_format",
    "normalized",
];

/// The objects of a run.
#[derive(Debug)]
pub(crate) struct OpenedObjects {
    pub(crate) table: Arc<ObjectTable>,
    pub(crate) rule: ObjectRule,
    /// None for objects that a program lists, and for those of a cache.
    pub(crate) report: Option<AnnotationReport>,
}

impl ObjectOptions {
    /// Objects in files that `files` names: a COCO file (`.json`), or a pattern of paths of YOLO's
    /// (`../labels/{stem}.txt`) or Pascal VOC's files (`../Annotations/{stem}.xml`), or a
    /// `data.yaml` of YOLO. `cache`: the objects of a cache, with the rule that it was built with.
    pub fn new(files: impl Into<String>) -> Self {
        Self {
            files: FilesOption::Named(files.into()),
            ..Self::default()
        }
    }

    /// The same rule, with objects that a program lists: those of each image, in their order.
    ///
    /// # Errors
    /// No memory for their table.
    pub fn listed(self, list: ObjectList) -> Result<Self> {
        Ok(self.with_listed(ListedObjects {
            table: Arc::new(list.finish()?),
            report: None,
        }))
    }

    /// The same rule with these objects.
    pub(super) fn with_listed(self, listed: ListedObjects) -> Self {
        Self {
            files: FilesOption::Listed(listed),
            reading: AnnotationReading::default(),
            ..self
        }
    }

    /// The column of objects that a program hands over.
    ///
    /// # Errors
    /// There is none, or another place.
    pub(super) fn listed_column(&self) -> Result<&str> {
        self.check()?;
        self.check_place()?;
        match (&self.reading.column, &self.reading.member) {
            (Some(column), None) => Ok(column),
            _ => Err(Error::option(
                "objects",
                "objects: this data set has columns: name one of them with `column`",
            )),
        }
    }

    pub(super) fn names(&self) -> Option<&[String]> {
        self.reading.names.as_deref()
    }

    /// How objects move, and which are dropped.
    #[must_use]
    pub fn rule(self, rule: ObjectRule) -> Self {
        let given = fields_of(&rule);
        Self {
            rule,
            given,
            ..self
        }
    }

    /// The rule as it was given.
    pub(crate) fn given_rule(&self) -> &ObjectRule {
        &self.rule
    }

    /// Whether the first wrong annotation of a file is an error. Default: wrong annotations are
    /// dropped, counted, and named by a warning.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.reading.strict = strict;
        self
    }

    /// What to do with crowds of a file. Default: they are kept, and marked.
    #[must_use]
    pub fn crowds(mut self, crowds: CrowdPolicy) -> Self {
        self.reading.crowds = crowds;
        self
    }

    /// The same objects with the rule of `other`, or the rule of these if there is no other.
    ///
    /// # Errors
    /// `other` says how files are read, and these objects are a list.
    pub fn with_rule_of(self, other: Option<Self>) -> Result<Self> {
        let Some(other) = other else {
            return Ok(self);
        };
        if other.reading != AnnotationReading::default() {
            return Err(Error::option(
                "objects",
                format!(
                    "objects: {} say how files are read, and these objects are a list: remove them",
                    OF_READING.join(", ")
                ),
            ));
        }
        Ok(self.rule(other.rule))
    }

    /// The same objects, with a file in an object store downloaded. The file stays until the second
    /// value is dropped. `helper`: the helper executable, if the user named one.
    ///
    /// # Errors
    /// A file that cannot be downloaded.
    pub(crate) fn downloaded(
        &self,
        helper: Option<&Path>,
    ) -> Result<(Self, Option<FetchedAnnotations>)> {
        let address = match &self.files {
            FilesOption::Named(files) if StoreAddress::is_address(files) => files,
            _ => return Ok((self.clone(), None)),
        };
        if PathPattern::is_pattern(address) {
            return Err(Error::option(
                "objects",
                "objects: a pattern names a file for each image, and files in an object store are \
                 not read one by one: give one file for all images, such as a .json of COCO",
            ));
        }
        let fetched = FetchedAnnotations::download(address, helper)?;
        let files = FilesOption::Named(fetched.path()?);
        Ok((
            Self {
                files,
                ..self.clone()
            },
            Some(fetched),
        ))
    }

    /// The extension of the members beside images in tars that have the objects.
    #[must_use]
    pub fn member_extension(&self) -> Option<&str> {
        self.reading.member.as_deref()
    }

    /// Whether the objects are members beside images in tars.
    pub(crate) fn are_members(&self) -> bool {
        self.reading.member.is_some()
    }

    /// Checks that a cache can be built with these objects.
    ///
    /// # Errors
    /// A list; the objects of another cache.
    pub(crate) fn check_for_cache(&self) -> Result<()> {
        self.check()?;
        match self.files {
            FilesOption::Listed(_) => Err(Error::option(
                "objects",
                "objects: a cache is built with objects of files, a column or members: write the \
                 list to a COCO file",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn has_masks(&self) -> bool {
        self.rule.masks.is_some()
    }

    /// The same with outlines and run lengths, if a recipe needs them.
    pub(super) fn with_shapes(&self, needed: bool) -> Self {
        let mut options = self.clone();
        options.reading.shapes = needed;
        options
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rule.check()
    }

    pub(super) fn reading(&self) -> AnnotationOptions {
        AnnotationOptions {
            strict: self.reading.strict,
            crowds: self.reading.crowds,
            shapes: self.rule.masks.is_some() || self.reading.shapes,
            rotated: self.reading.obb,
            ..AnnotationOptions::default()
        }
    }

    /// The data set that a COCO file describes, with its images below a folder, or a split of a
    /// `data.yaml`. None unless such a file is named and the source is a folder.
    ///
    /// # Errors
    /// A file that cannot be read; a rule that does not fit.
    pub(crate) fn open_with_images(
        &self,
        source: &Source,
    ) -> Result<Option<(Index, OpenedObjects)>> {
        let (FilesOption::Named(files), Source::Folder(folder, _)) = (&self.files, source) else {
            return Ok(None);
        };
        self.check_place()?;
        if self.files.is_of_cache() {
            return Ok(None);
        }
        let files = ObjectFiles::parse(files)?;
        self.check_reading(&files)?;
        let split = self.reading.split.as_deref();
        let names = self.reading.names.as_deref();
        let described = files.read_with_images(folder, split, names, &self.reading())?;
        let Some(described) = described else {
            return Ok(None);
        };
        let AnnotatedSet {
            index,
            table,
            report,
        } = described;
        let objects = self.opened(Arc::new(table), Some(report), self.rule.usual_labels())?;
        Ok(Some((index, objects)))
    }

    /// Rejects several places of objects, and options that belong to another one.
    fn check_place(&self) -> Result<()> {
        let refused = |what: &str| Err(Error::option("objects", format!("objects: {what}")));
        let reading = &self.reading;
        let has_rows = reading.column.is_some() || reading.member.is_some();
        if has_rows && !matches!(self.files, FilesOption::Unset) {
            return refused("`files` and `column` or `member` are two places: remove one of them");
        }
        if has_rows && (reading.obb || reading.split.is_some()) {
            return refused("`obb` and `split` are for YOLO's files: remove them");
        }
        if self.files.is_of_cache() && *reading != AnnotationReading::default() {
            return refused("the cache says how its objects are read: remove all but their rule");
        }
        if !has_rows && (reading.box_format.is_some() || reading.normalized) {
            return refused(
                "`box_format` and `normalized` are for a `column`, a `member` or a list: files \
                 say it themselves: remove them",
            );
        }
        Ok(())
    }

    /// The files that have the objects of a column, with stamps of before `source` is read. None
    /// unless a column is named.
    ///
    /// # Errors
    /// A source without columns; options that do not fit each other.
    pub(crate) fn column_source(&self, source: &Source) -> Result<Option<ColumnSource>> {
        self.check_place()?;
        match (&self.reading.column, &self.reading.member) {
            (Some(_), None) => ColumnSource::of_objects(source).map(Some),
            _ => Ok(None),
        }
    }

    /// The objects of rows: of the column of `source`, or of members of tars.
    fn read_rows(
        &self,
        images: &Index,
        source: Option<ColumnSource>,
    ) -> Result<Option<(ObjectTable, AnnotationReport)>> {
        let (column, options) = (self.reading.column.as_deref(), self.reading());
        let mut reader = match (source, &self.reading.member) {
            (Some(source), _) => source.open_rows(&WantedFields {
                column: column.unwrap_or_default(),
                fields: object_fields(options.shapes),
                beside: BESIDE,
                classes: CATEGORY_FIELDS,
            })?,
            (None, Some(member)) => open_members(images, member)?,
            (None, None) => return Ok(None),
        };
        let names = self.reading.names.as_deref();
        read_rows(
            images,
            &mut *reader,
            column,
            self.value_form(),
            names,
            &options,
        )
        .map(Some)
    }

    pub(super) fn value_form(&self) -> CoordinateForm {
        CoordinateForm {
            boxes: self.reading.box_format.unwrap_or(BoxForm::Xywh),
            shares: self.reading.normalized,
        }
    }

    /// Rejects options that files of this form do not have.
    fn check_reading(&self, files: &ObjectFiles) -> Result<()> {
        let refused = |what: &str| Err(Error::option("objects", format!("objects: {what}")));
        let is_yolo = matches!(files, ObjectFiles::Yolo(_) | ObjectFiles::DataYaml(_));
        let has_names = matches!(files, ObjectFiles::Coco(_) | ObjectFiles::DataYaml(_));
        if self.reading.obb && !is_yolo {
            return refused("`obb` is for YOLO's files: remove it");
        }
        if self.reading.split.is_some() && !matches!(files, ObjectFiles::DataYaml(_)) {
            return refused("`split` is for a `data.yaml` of YOLO: remove it");
        }
        if self.reading.names.is_some() && has_names {
            return refused("the file has names of categories: remove `names`");
        }
        Ok(())
    }

    fn opened(
        &self,
        table: Arc<ObjectTable>,
        report: Option<AnnotationReport>,
        labels: LabelNumbers,
    ) -> Result<OpenedObjects> {
        let mut rule = self.rule.clone();
        rule.labels.get_or_insert(labels);
        rule.check_form(table.form())?;
        if let Some(report) = &report {
            if report.images_without_entry > 0 {
                tracing::warn!(
                    "objects: {} of {} images have no annotation: they have no objects",
                    report.images_without_entry,
                    report.images
                );
            }
            for wrong in &report.wrong {
                tracing::warn!("objects: {wrong}");
            }
        }
        Ok(OpenedObjects {
            table,
            rule,
            report,
        })
    }

    /// The objects of a cache. Fields of its rule that are not given are its own.
    fn open_cached(&self, images: &Index) -> Result<OpenedObjects> {
        let CachedObjects { table, rule } = open_cache_objects(images)?;
        let rule: ObjectRule = merged_rule(rule, &self.given, "objects")?;
        if rule.masks.is_some() && !table.form().shapes {
            return Err(Error::dataset(
                images.root(),
                "this cache has objects without outlines, so there are no instance masks: build it \
                 again with `masks` in `objects`",
            ));
        }
        let options = Self {
            rule,
            ..self.clone()
        };
        options.check()?;
        let labels = options.rule.usual_labels();
        options.opened(Arc::new(table), None, labels)
    }

    /// Objects of the images of a data set that lists its images itself. `source`: that of
    /// [`ObjectOptions::column_source`].
    ///
    /// # Errors
    /// Files that cannot be read; objects of another number of images; a rule that does not fit.
    pub(crate) fn open(
        &self,
        images: &Index,
        source: Option<ColumnSource>,
    ) -> Result<OpenedObjects> {
        self.check_place()?;
        if let Some((table, report)) = self.read_rows(images, source)? {
            return self.opened(Arc::new(table), Some(report), self.rule.usual_labels());
        }
        if self.files.is_of_cache() {
            return self.open_cached(images);
        }
        let listed = match &self.files {
            FilesOption::Listed(listed) => listed.clone(),
            FilesOption::Named(files) => {
                let names = self.reading.names.as_deref();
                let files = ObjectFiles::parse(files)?;
                self.check_reading(&files)?;
                let (table, report) = files.read_for(images, names, &self.reading())?;
                return self.opened(Arc::new(table), Some(report), self.rule.usual_labels());
            }
            FilesOption::Unset => {
                return Err(Error::option(
                    "objects",
                    "objects need `files`: a COCO file, or a pattern such as \
                     ../labels/{stem}.txt; or `column` or `member`",
                ));
            }
        };
        let ListedObjects { table, report } = listed;
        if table.samples() != images.len() {
            return Err(Error::option(
                "objects",
                format!(
                    "objects: the list has those of {} images, and there are {} images: give one \
                     entry for each image",
                    table.samples(),
                    images.len()
                ),
            ));
        }
        let labels = match report {
            None => LabelNumbers::Ids,
            Some(_) => self.rule.usual_labels(),
        };
        self.opened(table, report, labels)
    }
}

impl FromStr for ObjectOptions {
    type Err = Error;

    /// A file, a pattern, or a JSON object of `files` and the fields of an [`ObjectRule`].
    fn from_str(text: &str) -> Result<Self> {
        parse_option(text, "objects", |files| Self::new(files))
    }
}

/// A file or a pattern alone, or an object with the fields of a rule and `files`.
impl<'de> Deserialize<'de> for ObjectOptions {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let (files, mut fields) = FilesOption::deserialize(from, "objects")?;
        let reading = OF_READING
            .into_iter()
            .filter_map(|name| fields.remove_entry(name));
        let reading = serde_json::Value::Object(reading.collect());
        let reading = serde_json::from_value(reading).map_err(D::Error::custom)?;
        let given = fields.clone();
        let rule = serde_json::from_value(serde_json::Value::Object(fields));
        let rule = rule.map_err(D::Error::custom)?;
        Ok(Self {
            rule,
            given,
            files,
            reading,
        })
    }
}

#[cfg(test)]
mod tests;
