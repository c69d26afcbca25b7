//! Labels of many shards, of one kind: numbers, names with their table, or vectors.
//!
//! Runs in the consumer, behind the threads that read the shards.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::data::index::Classes;
use crate::data::index::names::shown;
use crate::data::index::sealed::Labels;
use crate::data::index::shards::found::{Found, Raw};
use crate::error::Result;

/// Labels of one kind, as they are gathered.
pub(crate) struct Joined {
    pub(crate) labels: Labels,
    pub(crate) classes: Classes,
    /// A class name's number; none unless labels are names.
    numbers: BTreeMap<Vec<u8>, i64>,
}

impl Joined {
    /// The first label that a sample has says what kind all of them are of; but
    /// whole numbers among which is a fraction are numbers, not classes.
    pub(crate) fn new(found: &[Found], table: Option<&Classes>) -> Result<Self> {
        let mut all = found.iter().flat_map(|f| &f.labels);
        let first = all.clone().find(|raw| **raw != Raw::Absent);
        let labels = match first {
            None | Some(Raw::Absent) => Labels::None,
            Some(Raw::Number(_)) if all.any(|raw| *raw == Raw::Vector(1)) => Labels::Vector {
                width: 1,
                values: Vec::new(),
            },
            Some(Raw::Number(_) | Raw::Name(_)) => Labels::Class(Vec::new()),
            Some(Raw::Vector(width)) => Labels::Vector {
                width: *width as usize,
                values: Vec::new(),
            },
        };
        let mut numbers = BTreeMap::new();
        let mut classes = Classes::default();
        if let Some(Raw::Name(_)) = first {
            let names = found.iter().flat_map(|f| &f.class_names);
            let names: BTreeSet<&[u8]> = names.map(Vec::as_slice).collect();
            classes = match table {
                Some(table) => table.clone(),
                None => Classes::new(names.iter().map(|name| OsStr::from_bytes(name)))?,
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
        self.labels != Labels::None
    }

    pub(crate) fn is_by_name(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// What its labels are, in words.
    pub(crate) fn kind(&self) -> &'static str {
        let raw = match &self.labels {
            Labels::None => Raw::Absent,
            Labels::Class(_) if self.is_by_name() => Raw::Name(0),
            Labels::Class(_) => Raw::Number(0),
            Labels::Vector { .. } => Raw::Vector(0),
        };
        kind(raw)
    }

    /// Adds a sample's label; or says why it cannot stand beside the others.
    pub(crate) fn add(
        &mut self,
        raw: Raw,
        vector: &[f32],
        names: &[Vec<u8>],
    ) -> Result<(), String> {
        let by_name = self.is_by_name();
        match (&mut self.labels, raw) {
            (Labels::None, Raw::Absent) => Ok(()),
            (Labels::Class(all), Raw::Number(number)) if !by_name => {
                all.push(number);
                Ok(())
            }
            (Labels::Class(all), Raw::Name(number)) if by_name => {
                let name = names.get(number as usize);
                let name = name.ok_or("its class has no name")?;
                let number = self.numbers.get(name).ok_or_else(|| unknown(name))?;
                all.push(*number);
                Ok(())
            }
            (Labels::Vector { width: 1, values }, Raw::Number(number)) => {
                values.push(number as f32);
                Ok(())
            }
            (Labels::Vector { width, values }, Raw::Vector(_)) if vector.len() == *width => {
                values.extend_from_slice(vector);
                Ok(())
            }
            (Labels::Vector { width, .. }, Raw::Vector(other)) => Err(format!(
                "this sample's label has {other} numbers, and those before it have {width}: use \
                 one length"
            )),
            (_, Raw::Absent) => Err(
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

fn kind(raw: Raw) -> &'static str {
    match raw {
        Raw::Absent => "none",
        Raw::Number(_) => "a class number",
        Raw::Name(_) => "a class name",
        Raw::Vector(_) => "a vector",
    }
}

/// Only where the table of classes is the user's: else all names are in it.
fn unknown(name: &[u8]) -> String {
    format!(
        "its class '{}' is not in the class table: add the name, or remove `classes`",
        shown(name)
    )
}
