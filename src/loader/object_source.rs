//! Where the objects of a data set are.
//!
//! In the consumer.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use crate::data::index::Index;
use crate::data::objects::{ObjectList, ObjectTable};
use crate::error::{Error, Result};
use crate::jobs::object_rule::{LabelNumbers, ObjectRule};

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
    pub(super) rule: ObjectRule,
    files: ObjectFiles,
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
            rule: ObjectRule::default(),
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

    /// Objects of the images of a data set that lists its images itself.
    ///
    /// # Errors
    /// Files that cannot be read; objects of another number of images; a rule that does not fit.
    pub(super) fn open(&self, images: &Index) -> Result<(Arc<ObjectTable>, ObjectRule)> {
        let mut rule = self.rule.clone();
        let (table, place) = match &self.files {
            ObjectFiles::Listed(table) => {
                rule.labels.get_or_insert(LabelNumbers::Ids);
                (table.clone(), "the list")
            }
            ObjectFiles::Named(_) => todo!(),
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
        rule.check_form(table.form())?;
        Ok((table, rule))
    }
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
                let rule = serde_json::from_value(serde_json::Value::Object(fields));
                let rule = rule.map_err(D::Error::custom)?;
                Ok(Self { rule, files })
            }
        }
    }
}
