//! Where the objects of a data set are.
//!
//! In the consumer.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use crate::data::annotations::{self, Annotated, AnnotationOptions, AnnotationReport, CrowdPolicy};
use crate::data::index::{Index, PathPattern};
use crate::data::objects::{ObjectList, ObjectTable};
use crate::error::{Error, Result};
use crate::jobs::object_rule::{LabelNumbers, ObjectRule};
use crate::loader::source::Source;

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
    files: ObjectFiles,
    strict: bool,
    crowds: CrowdPolicy,
}

/// The objects of a run.
#[derive(Debug)]
pub(super) struct OpenedObjects {
    pub(super) table: Arc<ObjectTable>,
    pub(super) rule: ObjectRule,
    /// None for objects that a program lists.
    pub(super) report: Option<AnnotationReport>,
}

#[derive(Debug, Clone, Default)]
enum ObjectFiles {
    /// They are listed later.
    #[default]
    Unset,
    Named(String),
    Listed(Arc<ObjectTable>),
}

impl ObjectOptions {
    /// Objects in files that `files` names: a COCO file (`.json`), or a pattern of paths of YOLO's
    /// (`../labels/{stem}.txt`) or Pascal VOC's files (`../Annotations/{stem}.xml`).
    pub fn new(files: impl Into<String>) -> Self {
        Self {
            files: ObjectFiles::Named(files.into()),
            ..Self::default()
        }
    }

    /// The same rule, with objects that a program lists: those of each image, in their order.
    ///
    /// # Errors
    /// No memory for their table.
    pub fn listed(self, list: ObjectList) -> Result<Self> {
        Ok(Self {
            files: ObjectFiles::Listed(Arc::new(list.finish()?)),
            ..self
        })
    }

    /// How objects move, and which are dropped.
    #[must_use]
    pub fn rule(self, rule: ObjectRule) -> Self {
        Self { rule, ..self }
    }

    /// Whether the first wrong annotation of a file is an error. Default: wrong annotations are
    /// dropped, counted, and named by a warning.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// What to do with crowds of a file. Default: they are kept, and marked.
    #[must_use]
    pub fn crowds(self, crowds: CrowdPolicy) -> Self {
        Self { crowds, ..self }
    }

    /// The same files with the rule of `other`, or the rule of these files if there is no other.
    #[must_use]
    pub fn with_rule_of(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => self.rule(other.rule),
            None => self,
        }
    }

    pub(super) fn has_masks(&self) -> bool {
        self.rule.masks.is_some()
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rule.check()
    }

    /// The COCO file, if one is named.
    fn coco_file(&self) -> Option<&Path> {
        match &self.files {
            ObjectFiles::Named(files) if !PathPattern::is_pattern(files) => {
                Some(Path::new(files)).filter(|file| has_extension(file, "json"))
            }
            _ => None,
        }
    }

    fn reading(&self) -> AnnotationOptions {
        AnnotationOptions {
            strict: self.strict,
            crowds: self.crowds,
            shapes: self.rule.masks.is_some(),
            ..AnnotationOptions::default()
        }
    }

    /// The data set that a COCO file describes, with its images below a folder. None unless such a
    /// file is named and the source is a folder.
    ///
    /// # Errors
    /// A file that cannot be read; a rule that does not fit.
    pub(super) fn open_with_images(
        &self,
        source: &Source,
    ) -> Result<Option<(Index, OpenedObjects)>> {
        let (Some(file), Source::Folder(folder, _)) = (self.coco_file(), source) else {
            return Ok(None);
        };
        let Annotated {
            index,
            table,
            report,
        } = annotations::read_coco(file, folder, &self.reading())?;
        let objects = self.opened(Arc::new(table), Some(report), LabelNumbers::Contiguous)?;
        Ok(Some((index, objects)))
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
        for wrong in report.iter().flat_map(|report| &report.wrong) {
            tracing::warn!("objects: {wrong}");
        }
        Ok(OpenedObjects {
            table,
            rule,
            report,
        })
    }

    /// Objects of the images of a data set that lists its images itself.
    ///
    /// # Errors
    /// Files that cannot be read; objects of another number of images; a rule that does not fit.
    pub(super) fn open(&self, images: &Index) -> Result<OpenedObjects> {
        let (table, place) = match &self.files {
            ObjectFiles::Listed(table) => (table.clone(), "the list"),
            ObjectFiles::Named(files) => {
                let Some(file) = self.coco_file() else {
                    return Err(Error::option(
                        "objects",
                        format!(
                            "objects: '{files}' is no COCO file by its extension, and no pattern: \
                             give a file such as instances_train.json"
                        ),
                    ));
                };
                let (table, report) = annotations::read_coco_for(file, images, &self.reading())?;
                let labels = LabelNumbers::Contiguous;
                return self.opened(Arc::new(table), Some(report), labels);
            }
            ObjectFiles::Unset => {
                return Err(Error::option(
                    "objects",
                    "objects need `files`: a COCO file, or a pattern such as ../labels/{stem}.txt",
                ));
            }
        };
        if table.samples() != images.len() {
            return Err(Error::option(
                "objects",
                format!(
                    "objects: {place} has those of {} images, and there are {} images: give one \
                     entry for each image",
                    table.samples(),
                    images.len()
                ),
            ));
        }
        self.opened(table, None, LabelNumbers::Ids)
    }
}

fn has_extension(file: &Path, extension: &str) -> bool {
    let found = file.extension();
    found.is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

impl FromStr for ObjectOptions {
    type Err = Error;

    /// A file, a pattern, or a JSON object of `files` and the fields of an [`ObjectRule`].
    fn from_str(text: &str) -> Result<Self> {
        let after = text.trim_start().strip_prefix('{').map(str::trim_start);
        match after.is_some_and(|after| after.starts_with('"')) {
            true => serde_json::from_str(text)
                .map_err(|e| Error::option("objects", format!("objects are no JSON object: {e}"))),
            false => Ok(Self::new(text)),
        }
    }
}

/// A file or a pattern alone, or an object with the fields of a rule and `files`.
impl<'de> Deserialize<'de> for ObjectOptions {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Files(String),
            Rule(serde_json::Map<String, serde_json::Value>),
        }
        use serde::de::Error as _;
        match Form::deserialize(from)? {
            Form::Files(files) => Ok(Self::new(files)),
            Form::Rule(mut fields) => {
                let files = match fields.remove("files") {
                    None => ObjectFiles::Unset,
                    Some(serde_json::Value::String(files)) => ObjectFiles::Named(files),
                    Some(_) => return Err(D::Error::custom("`files` of objects is no text")),
                };
                let mut flag = |name: &str| fields.remove(name).unwrap_or_default();
                let (strict, crowds) = (flag("strict"), flag("crowds"));
                let crowds = match crowds {
                    serde_json::Value::Null => CrowdPolicy::default(),
                    given => serde_json::from_value(given).map_err(D::Error::custom)?,
                };
                let strict = match strict {
                    serde_json::Value::Null => false,
                    given => serde_json::from_value(given).map_err(D::Error::custom)?,
                };
                let rule = serde_json::from_value(serde_json::Value::Object(fields));
                let rule = rule.map_err(D::Error::custom)?;
                Ok(Self {
                    rule,
                    files,
                    strict,
                    crowds,
                })
            }
        }
    }
}
