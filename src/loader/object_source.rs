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
#[derive(Debug, Clone, Default)]
pub struct ObjectOptions {
    pub(super) rule: ObjectRule,
    pub(super) files: ObjectPlace,
}

#[derive(Debug, Clone, Default)]
pub(super) enum ObjectPlace {
    /// They are listed later.
    #[default]
    Unset,
    Named(String),
    Listed(Arc<ObjectTable>),
}

impl ObjectOptions {
    /// Objects of the images of a data set that lists its images itself.
    ///
    /// # Errors
    /// Files that cannot be read; objects of another number of images; a rule that does not fit.
    pub(super) fn open(&self, images: &Index) -> Result<(Arc<ObjectTable>, ObjectRule)> {
        let (table, place) = match &self.files {
            ObjectPlace::Listed(table) => (table.clone(), "the list"),
            ObjectPlace::Named(_) | ObjectPlace::Unset => todo!(),
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
        self.rule.check_form(table.form())?;
        Ok((table, self.rule.clone()))
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rule.check()
    }

    /// The same rule, with objects that a program lists: those of each image, in their order.
    ///
    /// # Errors
    /// No memory for their table.
    pub fn listed(self, list: ObjectList) -> Result<Self> {
        Ok(Self {
            files: ObjectPlace::Listed(Arc::new(list.finish()?)),
            rule: ObjectRule {
                labels: self.rule.labels.or(Some(LabelNumbers::Ids)),
                ..self.rule
            },
        })
    }

    /// How objects move, and which are dropped.
    #[must_use]
    pub fn rule(self, rule: ObjectRule) -> Self {
        Self { rule, ..self }
    }
}
