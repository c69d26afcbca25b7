//! The bytes that the objects of a row take in a slot.
//!
//! Pure, except that it reads numbers of objects from sealed shared memory.

use std::sync::Arc;

use crate::data::objects::ObjectTable;
use crate::jobs::object_record::RecordLayout;
use crate::jobs::object_rule::{LabelNumbers, ObjectRule};
use crate::recipe::{SampleProgram, Size};

/// The room of each sample's objects.
#[derive(Debug)]
pub(crate) struct ObjectSection {
    table: Arc<ObjectTable>,
    rule: ObjectRule,
    layout: RecordLayout,
    /// Objects of partners for which a row has room.
    of_partners: usize,
}

impl ObjectSection {
    pub(crate) fn new(table: Arc<ObjectTable>, rule: &ObjectRule) -> Self {
        Self {
            layout: RecordLayout::of(table.form()),
            rule: rule.clone(),
            table,
            of_partners: 0,
        }
    }

    /// The same for the rows of this program, which may be made of several samples.
    pub(crate) fn joining(self, program: &SampleProgram) -> Self {
        let partners = program.most_pictures().saturating_sub(1) as usize;
        match program.is_joined() {
            true => Self {
                layout: self.layout.with_samples(),
                of_partners: self.table.most_objects().saturating_mul(partners),
                ..self
            },
            false => self,
        }
    }

    /// Whether rows have objects of several samples.
    pub(crate) fn is_joining(&self) -> bool {
        self.layout.has_samples()
    }

    /// Bytes of the record of sample `id` in a row of this height and width.
    pub(crate) fn record_bytes(&self, id: u64, size: Option<(u32, u32)>) -> u64 {
        let room = self.rule.room(&self.table, id, self.of_partners);
        self.layout_of(size).bytes(room)
    }

    /// Bytes of the largest record in rows of this height and width.
    pub(crate) fn largest_record(&self, size: (u32, u32)) -> u64 {
        let ids = 0..self.table.samples();
        ids.map(|id| self.record_bytes(id, Some(size)))
            .max()
            .unwrap_or(0)
    }

    /// The label of a category in batches.
    pub(crate) fn label(&self, category: u32) -> i64 {
        match self.has_ids_as_labels() {
            true => {
                let categories = &self.table.form().categories;
                (categories.get(category as usize)).map_or(i64::from(category), |of| of.id)
            }
            false => i64::from(category),
        }
    }

    /// Whether labels are the numbers of categories, not their places.
    pub(crate) fn has_ids_as_labels(&self) -> bool {
        self.rule.labels == Some(LabelNumbers::Ids)
    }

    /// The layout of the record of a row of this height and width.
    pub(crate) fn layout_of(&self, size: Option<(u32, u32)>) -> RecordLayout {
        let (height, width) = size.unwrap_or_default();
        self.layout
            .with_masks(self.rule.mask_size(Size { height, width }))
    }

    pub(crate) fn has_masks(&self) -> bool {
        self.rule.masks.is_some()
    }

    /// Height and width of the instance masks of such a row. None without masks.
    pub(crate) fn mask_size(&self, size: Option<(u32, u32)>) -> Option<(u32, u32)> {
        let (height, width) = size?;
        let size = self.rule.mask_size(Size { height, width })?;
        Some((size.height, size.width))
    }

    pub(crate) fn table_and_rule(&self) -> (&Arc<ObjectTable>, &ObjectRule) {
        (&self.table, &self.rule)
    }

    pub(crate) fn table(&self) -> &ObjectTable {
        &self.table
    }
}
