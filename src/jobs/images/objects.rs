//! The objects of a batch: flat arrays with an offset for each row.
//!
//! In the consumer. Copies the few bytes that objects have, so that they outlive their slot.

use std::ops::Range;
use std::sync::Arc;

#[cfg(doc)]
use crate::data::objects::ObjectForm;
use crate::device::stage_shapes::TrailingBytes;
use crate::jobs::images::object_section::ObjectSection;
use crate::jobs::object_record::ObjectRecord;
#[cfg(doc)]
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::raster_section::ROW_ALIGNMENT;
use crate::targets::DropCounts;

/// The objects of all rows of a batch. Objects `offsets[n]..offsets[n + 1]` belong to row `n`.
///
/// A masked row has no objects. All arrays have a value for each object, or a group of values,
/// unless they say otherwise. An array that the annotations lack is empty.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct BatchObjects {
    /// One more than rows. The first is 0, the last the number of objects.
    pub offsets: Vec<u64>,
    /// Left, top, right and bottom in pixels of the row, from 0 to its width and height.
    pub boxes: Vec<[f32; 4]>,
    /// By [`ObjectRule::labels`]: the place of the category in [`ObjectForm::categories`], or its
    /// number.
    pub labels: Vec<i64>,
    /// Square pixels as the style moves them, from those of the annotation.
    pub area: Vec<f32>,
    /// Whether the object is a crowd.
    pub crowd: Vec<bool>,
    /// The number of the object in the annotation. -1 if it has none.
    pub ids: Vec<i64>,
    /// [`ObjectForm::keypoints`] of each object: x, y and visibility (0 not labelled, 1 hidden, 2
    /// visible).
    pub keypoints: Vec<[f32; 3]>,
    /// Numbers of rotated boxes: 5 or 8 of each object, by [`ObjectForm::rotated`].
    pub rotated: Vec<f32>,
    /// For each row: the number of the picture in the annotation. -1 if it has none.
    pub image_ids: Vec<i64>,
    /// For each row: height and width of the upright picture. 0 for a masked row.
    pub source_sizes: Vec<[u32; 2]>,
    /// For each row: height and width of its pixels. 0 for a masked row.
    pub sizes: Vec<[u32; 2]>,
    /// For each row: left, top, right and bottom of the picture in it, in pixels. The rest is a
    /// border. 0 for a masked row.
    pub content: Vec<[u32; 4]>,
    /// For each row: how many objects were dropped, and why.
    pub dropped: Vec<DropCounts>,
    keypoints_each: usize,
    rotated_each: usize,
    has_ids: bool,
    /// The instance masks of each row. Empty if the loader makes none.
    masks: Vec<RowMasks>,
    /// The bytes of masks, if they are not where workers wrote them.
    mask_bytes: Option<Arc<Vec<u8>>>,
}

/// Where the instance masks of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowMasks {
    /// The first byte in the bytes of the batch, or in those that the objects hold.
    pub(crate) start: usize,
    /// Height and width. 0 for a masked row.
    pub(crate) size: (u32, u32),
}

/// A record of objects in the bytes of a batch.
pub(crate) struct RecordPlace<'a> {
    /// All bytes of the batch.
    pub(crate) bytes: &'a [u8],
    pub(crate) range: Range<usize>,
    /// Height and width of the row.
    pub(crate) row: Option<(u32, u32)>,
}

impl BatchObjects {
    pub(crate) fn new(section: &ObjectSection) -> Self {
        let form = section.table().form();
        Self {
            has_ids: section.has_ids_as_labels(),
            offsets: vec![0],
            keypoints_each: form.keypoints,
            rotated_each: form.rotated.map_or(0, |form| form.numbers()),
            ..Self::default()
        }
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The objects of a row. Empty for a row that the batch lacks.
    #[must_use]
    pub fn row(&self, row: usize) -> Range<usize> {
        match self.offsets.get(row..row.saturating_add(2)) {
            Some([start, end]) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// Where the instance masks of a row are. None without masks.
    pub(crate) fn row_masks(&self, row: usize) -> Option<RowMasks> {
        self.masks.get(row).copied()
    }

    /// Sets the places of the masks on a device: one after the other, from byte `first` of the batch
    /// on, each at a multiple of [`ROW_ALIGNMENT`]. Returns where they lie in the slot, and where
    /// they go.
    pub(crate) fn place_masks(&mut self, first: usize) -> Vec<TrailingBytes> {
        let mut to = first;
        let mut placed = Vec::with_capacity(self.masks.len());
        for row in 0..self.masks.len() {
            let len = self.mask_bytes_of(row);
            to = to.next_multiple_of(ROW_ALIGNMENT);
            let from = std::mem::replace(&mut self.masks[row].start, to);
            placed.push(TrailingBytes { from, to, len });
            to += len;
        }
        placed
    }

    /// Bytes of the masks of a row.
    fn mask_bytes_of(&self, row: usize) -> usize {
        let RowMasks { size, .. } = self.masks[row];
        self.row(row).len() * size.0 as usize * size.1 as usize
    }

    /// Copies the masks out of the bytes of the batch, which will not stay.
    pub(crate) fn hold_masks(&mut self, bytes: &[u8]) {
        if self.mask_bytes.is_some() || self.masks.is_empty() {
            return;
        }
        let mut held = Vec::new();
        for row in 0..self.masks.len() {
            let RowMasks { start, .. } = self.masks[row];
            let len = self.mask_bytes_of(row);
            self.masks[row].start = held.len();
            held.extend_from_slice(&bytes[start..start + len]);
        }
        self.mask_bytes = Some(Arc::new(held));
    }

    /// The bytes of all masks, if the batch does not have them.
    pub(crate) fn held_masks(&self) -> Option<&[u8]> {
        self.mask_bytes.as_deref().map(Vec::as_slice)
    }

    /// Whether labels are the numbers of categories, not their places.
    #[must_use]
    pub fn has_ids_as_labels(&self) -> bool {
        self.has_ids
    }

    /// Keypoints of an object. 0: none.
    #[must_use]
    pub fn keypoints_per_object(&self) -> usize {
        self.keypoints_each
    }

    /// Numbers of a rotated box. 0: none.
    #[must_use]
    pub fn rotated_numbers(&self) -> usize {
        self.rotated_each
    }

    /// The bytes of everything that a row's objects consist of, for fingerprints. Numbers are
    /// little-endian.
    #[must_use]
    pub fn row_bytes(&self, row: usize) -> Vec<u8> {
        let objects = self.row(row);
        let of = |each: usize| objects.start * each..objects.end * each;
        let mut bytes = Vec::new();
        let mut add = |words: &[u8]| bytes.extend_from_slice(words);
        for object in objects.clone() {
            add(&self.labels[object].to_le_bytes());
            add(&self.ids[object].to_le_bytes());
            add(&[u8::from(self.crowd[object])]);
            let area = self.area.get(object).into_iter();
            (self.boxes[object].iter().chain(area)).for_each(|v| add(&v.to_le_bytes()));
        }
        let keypoints = self.keypoints[of(self.keypoints_each)].iter().flatten();
        let rotated = self.rotated[of(self.rotated_each)].iter();
        keypoints.chain(rotated).for_each(|v| add(&v.to_le_bytes()));
        if let (Some(id), Some(source), Some(size), Some(content)) = (
            self.image_ids.get(row),
            self.source_sizes.get(row),
            self.sizes.get(row),
            self.content.get(row),
        ) {
            add(&id.to_le_bytes());
            let sides = source.iter().chain(size).chain(content);
            sides.for_each(|n| add(&n.to_le_bytes()));
        }
        bytes
    }

    /// Adds a row without objects.
    pub(crate) fn push_masked(&mut self, section: &ObjectSection) {
        if section.has_masks() {
            self.masks.push(RowMasks::default());
        }
        self.push_record(ObjectRecord::default(), -1);
    }

    /// Adds the objects of the next row, which holds sample `id`. False if the record is damaged:
    /// then nothing is added.
    #[must_use]
    pub(crate) fn push_row(
        &mut self,
        section: &ObjectSection,
        id: u64,
        place: RecordPlace<'_>,
    ) -> bool {
        let table = section.table();
        let layout = section.layout_of(place.row);
        let bytes = place.bytes.get(place.range.clone()).unwrap_or_default();
        let Some(record) = layout.read(bytes) else {
            return false;
        };
        let [height, width] = record.head.output;
        if place.row.is_some_and(|row| row != (height, width)) || !record.head.is_inside() {
            return false;
        }
        // Of several samples each object names its own. Shared memory may hold any number.
        let samples = record.samples.iter().copied();
        let samples: Vec<u64> = match section.is_joining() {
            true => samples.collect(),
            false => vec![id; record.number.len()],
        };
        let is_right = |(sample, number): (&u64, &u32)| {
            *sample < table.samples() && (*number as usize) < table.count(*sample)
        };
        if !samples.iter().zip(&record.number).all(is_right) {
            return false;
        }
        for (sample, number) in samples.iter().zip(&record.number) {
            let (stated, object) = (table.sample(*sample), *number as usize);
            self.labels.push(section.label(stated.labels[object]));
            self.ids.push(stated.ids[object]);
            self.crowd.push(stated.crowds[object] != 0);
        }
        if let Some(size) = section.mask_size(place.row) {
            let range = layout.mask_range(bytes.len(), record.number.len());
            let start = place.range.start + range.start;
            self.masks.push(RowMasks { start, size });
        }
        self.push_record(record, table.image_id(id));
        true
    }

    /// Removes the objects of a row, which has lost its sample: it becomes as
    /// [`BatchObjects::push_masked`] adds it.
    pub(crate) fn clear_row(&mut self, row: usize) {
        fn remove<T>(values: &mut Vec<T>, objects: &Range<usize>, each: usize) {
            if !values.is_empty() {
                values.drain(objects.start * each..objects.end * each);
            }
        }
        let objects = self.row(row);
        remove(&mut self.boxes, &objects, 1);
        remove(&mut self.labels, &objects, 1);
        remove(&mut self.area, &objects, 1);
        remove(&mut self.crowd, &objects, 1);
        remove(&mut self.ids, &objects, 1);
        remove(&mut self.keypoints, &objects, self.keypoints_each);
        remove(&mut self.rotated, &objects, self.rotated_each);
        for end in &mut self.offsets[row + 1..] {
            *end -= objects.len() as u64;
        }
        let head = ObjectRecord::default().head;
        self.image_ids[row] = -1;
        self.source_sizes[row] = head.source;
        self.sizes[row] = head.output;
        self.content[row] = head.content;
        self.dropped[row] = head.drops();
        if let Some(masks) = self.masks.get_mut(row) {
            *masks = RowMasks::default();
        }
    }

    fn push_record(&mut self, record: ObjectRecord, image_id: i64) {
        self.offsets.push(self.labels.len() as u64);
        self.boxes.extend(record.boxes);
        self.area.extend(record.area);
        self.keypoints.extend(record.keypoints);
        self.rotated.extend(record.rotated);
        self.image_ids.push(image_id);
        self.source_sizes.push(record.head.source);
        self.sizes.push(record.head.output);
        self.content.push(record.head.content);
        self.dropped.push(record.head.drops());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::objects::RotatedForm;
    use crate::data::objects::{ItemObjects, ObjectList, ObjectListOptions};
    use crate::jobs::object_record::RecordHead;
    use crate::jobs::object_rule::{InstanceMasks, LabelNumbers, ObjectRule};
    use crate::recipe::{Mosaic, Recipe, Resize, SampleProgram};
    use crate::targets::SampleMotion;

    fn section() -> ObjectSection {
        let mut list = ObjectList::new(ObjectListOptions::default());
        for count in [2, 0, 3] {
            let item = ItemObjects {
                boxes: vec![[1.0, 2.0, 3.0, 4.0]; count],
                labels: (0..count as i64).map(|n| 10 * count as i64 + n).collect(),
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let recipe = Recipe::new("joined")
            .then(Resize::longer(8))
            .then(Mosaic::new(8));
        let program = SampleProgram::compile(&recipe).unwrap();
        let table = Arc::new(list.finish().unwrap());
        let rule = ObjectRule {
            labels: Some(LabelNumbers::Ids),
            ..ObjectRule::default()
        };
        ObjectSection::new(table, &rule).joining(&program)
    }

    /// A row with these objects: sample and number there.
    fn pushed(section: &ObjectSection, origins: &[(u64, u32)]) -> Option<BatchObjects> {
        let row = (16, 16);
        let record = ObjectRecord {
            number: origins.iter().map(|(_, number)| *number).collect(),
            samples: origins.iter().map(|(sample, _)| *sample).collect(),
            boxes: vec![[0.0; 4]; origins.len()],
            area: vec![0.0; origins.len()],
            head: RecordHead::new(
                row.into(),
                &SampleMotion::new(row.into()),
                DropCounts::default(),
            ),
            ..ObjectRecord::default()
        };
        let mut bytes = vec![0; section.record_bytes(0, Some(row)) as usize];
        assert!(section.layout_of(Some(row)).write(&record, &mut bytes));
        let mut objects = BatchObjects::new(section);
        let place = RecordPlace {
            range: 0..bytes.len(),
            bytes: &bytes,
            row: Some(row),
        };
        objects.push_row(section, 0, place).then_some(objects)
    }

    /// A row that loses its sample is as one that never had any.
    #[test]
    fn a_cleared_row_is_a_masked_row() {
        let mut list = ObjectList::new(ObjectListOptions {
            keypoints: 2,
            rotated: Some(RotatedForm::Corners),
            ..ObjectListOptions::default()
        });
        for count in [2, 0, 3] {
            let item = ItemObjects {
                boxes: vec![[1.0, 2.0, 3.0, 4.0]; count],
                labels: vec![5; count],
                area: vec![7.0; count],
                keypoints: vec![[1.0, 2.0, 2.0]; 2 * count],
                rotated: vec![1.0; 8 * count],
                ..ItemObjects::default()
            };
            list.push(&item).unwrap();
        }
        let table = Arc::new(list.finish().unwrap());
        let rule = ObjectRule {
            masks: Some(InstanceMasks::Full),
            ..ObjectRule::default()
        };
        let section = ObjectSection::new(table, &rule);
        let row = (16, 24);
        let objects = |masked: &[u64]| {
            let mut objects = BatchObjects::new(&section);
            for id in 0..3 {
                if masked.contains(&id) {
                    objects.push_masked(&section);
                    continue;
                }
                let count = section.table().count(id);
                let record = ObjectRecord {
                    number: (0..count as u32).collect(),
                    boxes: vec![[id as f32; 4]; count],
                    area: vec![id as f32; count],
                    keypoints: vec![[id as f32; 3]; 2 * count],
                    rotated: vec![id as f32; 8 * count],
                    head: RecordHead::new(
                        row.into(),
                        &SampleMotion::new(row.into()),
                        DropCounts::default(),
                    ),
                    ..ObjectRecord::default()
                };
                let mut bytes = vec![0; section.record_bytes(id, Some(row)) as usize];
                assert!(section.layout_of(Some(row)).write(&record, &mut bytes));
                let place = RecordPlace {
                    range: 0..bytes.len(),
                    bytes: &bytes,
                    row: Some(row),
                };
                assert!(objects.push_row(&section, id, place));
            }
            objects
        };
        for masked in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
            let mut all = objects(&[]);
            assert_eq!(all.len(), 5);
            for row in masked {
                all.clear_row(*row as usize);
            }
            assert_eq!(all, objects(masked), "{masked:?}");
        }
    }

    #[test]
    fn objects_of_several_samples_are_found_and_checked() {
        let section = section();
        // Room for its own two, and for three of each of three partners.
        let room = 2 + 3 * 3;
        let most = vec![(2, 2); room];
        assert_eq!(pushed(&section, &most).unwrap().labels, vec![32; room]);
        let objects = pushed(&section, &[(0, 1), (2, 0), (0, 0)]).unwrap();
        assert_eq!(objects.labels, [21, 30, 20]);
        for damaged in [(0, 2), (1, 0), (2, 3), (3, 0), (u64::MAX, 0), (0, u32::MAX)] {
            assert!(
                pushed(&section, &[(0, 0), damaged]).is_none(),
                "{damaged:?}"
            );
        }
    }
}
