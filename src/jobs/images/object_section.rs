//! The bytes that the objects of a row take in a slot.
//!
//! Pure, except that it reads numbers of objects from sealed shared memory.

use std::sync::Arc;

use crate::data::objects::ObjectTable;
use crate::jobs::object_record::RecordLayout;
use crate::jobs::object_rule::{LabelNumbers, ObjectRule};

/// The room of each sample's objects.
#[derive(Debug)]
pub(crate) struct ObjectSection {
    table: Arc<ObjectTable>,
    rule: ObjectRule,
    layout: RecordLayout,
}

impl ObjectSection {
    pub(crate) fn new(table: Arc<ObjectTable>, rule: &ObjectRule) -> Self {
        Self {
            layout: RecordLayout::of(table.form()),
            rule: rule.clone(),
            table,
        }
    }

    /// Bytes of the record of sample `id`.
    pub(crate) fn record_bytes(&self, id: u64) -> u64 {
        self.layout.bytes(self.rule.room(&self.table, id))
    }

    /// Bytes of the largest record.
    pub(crate) fn largest_record(&self) -> u64 {
        let ids = 0..self.table.samples();
        ids.map(|id| self.record_bytes(id)).max().unwrap_or(0)
    }

    /// The label of a category in batches.
    pub(crate) fn label(&self, category: u32) -> i64 {
        match self.rule.labels {
            Some(LabelNumbers::Ids) => {
                let categories = &self.table.form().categories;
                (categories.get(category as usize)).map_or(i64::from(category), |of| of.id)
            }
            None | Some(LabelNumbers::Contiguous) => i64::from(category),
        }
    }

    pub(crate) fn layout(&self) -> RecordLayout {
        self.layout
    }

    pub(crate) fn table(&self) -> &ObjectTable {
        &self.table
    }
}
