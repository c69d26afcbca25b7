//! Joins the labels of many shards into one kind: numbers, names with their table, or vectors.
//!
//! Runs in the consumer, after the threads that read the shards.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::data::index::ClassList;
use crate::data::index::binary_form::IndexLabels;
use crate::data::index::names::shown;
use crate::data::index::shards::shard_scan::{RawLabel, ShardScan};
use crate::error::Result;

/// Labels of one kind, while they are collected.
pub(crate) struct LabelJoin {
    pub(crate) labels: IndexLabels,
    pub(crate) classes: ClassList,
    /// The numbers of class names. Empty unless labels are names.
    numbers: BTreeMap<Vec<u8>, i64>,
}

impl LabelJoin {
    /// The first label decides the kind of all labels. But if a fraction is among whole numbers,
    /// all labels are numbers, and not classes.
    ///
    /// # Errors
    /// The names cannot be a list of classes.
    pub(crate) fn new(found: &[ShardScan], table: Option<&ClassList>) -> Result<Self> {
        let mut all = found.iter().flat_map(|f| &f.labels);
        let first = all.clone().find(|raw| **raw != RawLabel::Absent);
        let labels = match first {
            None | Some(RawLabel::Absent) => IndexLabels::None,
            Some(RawLabel::Number(_)) if all.any(|raw| *raw == RawLabel::Vector(1)) => {
                IndexLabels::Vector {
                    width: 1,
                    values: Vec::new(),
                }
            }
            Some(RawLabel::Number(_) | RawLabel::Name(_)) => IndexLabels::Class(Vec::new()),
            Some(RawLabel::Vector(width)) => IndexLabels::Vector {
                width: *width as usize,
                values: Vec::new(),
            },
        };
        let mut numbers = BTreeMap::new();
        let mut classes = ClassList::default();
        if let Some(RawLabel::Name(_)) = first {
            let names = found.iter().flat_map(|f| &f.class_names);
            let names: BTreeSet<&[u8]> = names.map(Vec::as_slice).collect();
            classes = match table {
                Some(table) => table.clone(),
                None => ClassList::new(names.iter().map(|name| OsStr::from_bytes(name)))?,
            };
            let named = classes.iter().map(|name| name.as_bytes().to_vec());
            numbers.extend(named.zip(0..));
        }
        Ok(Self {
            labels,
            classes,
            numbers,
        })
    }

    pub(crate) fn is_labelled(&self) -> bool {
        self.labels != IndexLabels::None
    }

    pub(crate) fn is_by_name(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The kind of its labels, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        let raw = match &self.labels {
            IndexLabels::None => RawLabel::Absent,
            IndexLabels::Class(_) if self.is_by_name() => RawLabel::Name(0),
            IndexLabels::Class(_) => RawLabel::Number(0),
            IndexLabels::Vector { .. } => RawLabel::Vector(0),
        };
        kind(raw)
    }

    /// Adds the label of a sample. An error says why it does not fit the other labels.
    pub(crate) fn add(
        &mut self,
        raw: RawLabel,
        vector: &[f32],
        names: &[Vec<u8>],
    ) -> Result<(), String> {
        let by_name = self.is_by_name();
        match (&mut self.labels, raw) {
            (IndexLabels::None, RawLabel::Absent) => Ok(()),
            (IndexLabels::Class(all), RawLabel::Number(number)) if !by_name => {
                all.push(number);
                Ok(())
            }
            (IndexLabels::Class(all), RawLabel::Name(number)) if by_name => {
                let name = names.get(number as usize);
                let name = name.ok_or("its class has no name")?;
                let number = self.numbers.get(name).ok_or_else(|| unknown(name))?;
                all.push(*number);
                Ok(())
            }
            (IndexLabels::Vector { width: 1, values }, RawLabel::Number(number)) => {
                values.push(number as f32);
                Ok(())
            }
            (IndexLabels::Vector { width, values }, RawLabel::Vector(_))
                if vector.len() == *width =>
            {
                values.extend_from_slice(vector);
                Ok(())
            }
            (IndexLabels::Vector { width, .. }, RawLabel::Vector(other)) => Err(format!(
                "this sample's label has {other} numbers, and those before it have {width}: use \
                 one length"
            )),
            (_, RawLabel::Absent) => Err(
                "this sample has no label, and others have one: add it, or use `labels: none` to \
                 read every sample without a label"
                    .into(),
            ),
            (_, raw) => Err(format!(
                "this sample's label is {}, and those before it are {}: use one kind",
                kind(raw),
                self.kind()
            )),
        }
    }
}

fn kind(raw: RawLabel) -> &'static str {
    match raw {
        RawLabel::Absent => "none",
        RawLabel::Number(_) => "a class number",
        RawLabel::Name(_) => "a class name",
        RawLabel::Vector(_) => "a vector",
    }
}

/// This occurs only with a class table of the user. Otherwise all names are in the list.
fn unknown(name: &[u8]) -> String {
    format!(
        "its class '{}' is not in the class table: add the name, or remove `classes`",
        shown(name)
    )
}
