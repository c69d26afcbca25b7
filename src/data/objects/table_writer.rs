//! Makes the table of all objects.
//!
//! Outlines are most of the bytes, so they go to the sealed memory at once. The other arrays are
//! kept until the end.

use super::object_form::{ObjectCategory, ObjectForm};
use super::stated::StatedObjects;
use super::table::{ObjectTable, TableHead, TableSection};
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytesWriter;

/// Sample after sample becomes a table.
pub(crate) struct ObjectTableWriter {
    form: ObjectForm,
    sealed: SealedBytesWriter,
    /// Bytes of shapes that are not in the sealed memory yet.
    shapes: Vec<u8>,
    /// Bytes of all shapes so far.
    shape_bytes: u64,
    shape_ends: Vec<u64>,
    object_ends: Vec<u64>,
    sizes: Vec<[u32; 2]>,
    image_ids: Vec<i64>,
    numbers: Vec<[f64; 4]>,
    labels: Vec<u32>,
    ids: Vec<i64>,
    areas: Vec<f64>,
    crowds: Vec<u8>,
    keypoints: Vec<[f32; 3]>,
    rotated: Vec<f64>,
    hasher: twox_hash::XxHash3_128,
    /// Categories are known in the end.
    has_later_categories: bool,
}

/// Shapes are written in pieces of this many bytes.
const PIECE: usize = 1 << 20;

impl ObjectTableWriter {
    pub(crate) fn new(form: ObjectForm) -> Result<Self> {
        Ok(Self {
            form,
            sealed: SealedBytesWriter::new("featherload-objects")?,
            shapes: Vec::new(),
            shape_bytes: 0,
            shape_ends: Vec::new(),
            object_ends: Vec::new(),
            sizes: Vec::new(),
            image_ids: Vec::new(),
            numbers: Vec::new(),
            labels: Vec::new(),
            ids: Vec::new(),
            areas: Vec::new(),
            crowds: Vec::new(),
            keypoints: Vec::new(),
            rotated: Vec::new(),
            hasher: twox_hash::XxHash3_128::new(),
            has_later_categories: false,
        })
    }

    /// A table whose categories [`ObjectTableWriter::finish_with`] sets. Labels are numbers for the
    /// time being.
    pub(crate) fn with_later_categories(form: ObjectForm) -> Result<Self> {
        Ok(Self {
            has_later_categories: true,
            ..Self::new(form)?
        })
    }

    /// Sets the number of keypoints of each object. Those of objects so far are not labelled: zeros.
    pub(crate) fn set_keypoints(&mut self, count: usize) {
        self.form.keypoints = count;
        let all = self.labels.len().saturating_mul(count);
        self.keypoints.resize(all, [0.0; 3]);
    }

    /// Adds the objects of the next sample.
    ///
    /// # Errors
    /// An object that lacks what the form has; memory that cannot be written.
    pub(crate) fn push(&mut self, sample: &StatedObjects) -> Result<()> {
        for object in &sample.objects {
            let rotated = self.form.rotated.map_or(0, |form| form.numbers());
            let fits = object.keypoints.len() == self.form.keypoints
                && object.rotated.len() == rotated
                && (self.has_later_categories
                    || (object.label as usize) < self.form.categories.len());
            if !fits {
                return Err(Error::protocol(format!(
                    "object {} of sample {} differs from the form of its table",
                    object.id,
                    self.object_ends.len()
                )));
            }
            self.numbers.push(object.numbers);
            self.labels.push(object.label);
            self.ids.push(object.id);
            if self.form.area {
                self.areas.push(object.area);
            }
            self.crowds.push(u8::from(object.crowd));
            self.keypoints.extend_from_slice(&object.keypoints);
            self.rotated.extend_from_slice(&object.rotated);
            if self.form.shapes {
                let before = self.shapes.len();
                object.shape.write(&mut self.shapes);
                self.shape_bytes += (self.shapes.len() - before) as u64;
                self.shape_ends.push(self.shape_bytes);
            }
        }
        if self.shapes.len() >= PIECE {
            self.write_shapes()?;
        }
        self.object_ends.push(self.labels.len() as u64);
        let (height, width) = sample.size.unwrap_or_default();
        self.sizes.push([height, width]);
        self.image_ids.push(sample.image_id);
        Ok(())
    }

    fn write_shapes(&mut self) -> Result<()> {
        self.hasher.write(&self.shapes);
        self.sealed.write(&self.shapes)?;
        self.shapes.clear();
        Ok(())
    }

    /// Seals the table with these categories. `labels`: the final label of each number so far.
    ///
    /// # Errors
    /// A number without a label; memory that cannot be written.
    pub(crate) fn finish_with(
        mut self,
        categories: Vec<ObjectCategory>,
        labels: &[u32],
    ) -> Result<ObjectTable> {
        for label in &mut self.labels {
            let found = labels.get(*label as usize).copied();
            let found = found.filter(|found| (*found as usize) < categories.len());
            *label =
                found.ok_or_else(|| Error::protocol(format!("no category has label {label}")))?;
        }
        self.form.categories = categories;
        self.finish()
    }

    /// Seals the table.
    pub(crate) fn finish(mut self) -> Result<ObjectTable> {
        self.write_shapes()?;
        let form = serde_json::to_vec(&self.form)
            .map_err(|e| Error::protocol(format!("the form of objects is no JSON: {e}")))?;
        let mut head = TableHead::default();
        head.sections[TableSection::Shapes as usize] = [0, self.shape_bytes];
        let mut at = self.shape_bytes;
        let arrays: [(TableSection, &[u8]); TableSection::COUNT - 1] = [
            (
                TableSection::ObjectEnds,
                bytemuck::cast_slice(&self.object_ends),
            ),
            (TableSection::Sizes, bytemuck::cast_slice(&self.sizes)),
            (
                TableSection::ImageIds,
                bytemuck::cast_slice(&self.image_ids),
            ),
            (TableSection::Numbers, bytemuck::cast_slice(&self.numbers)),
            (TableSection::Ids, bytemuck::cast_slice(&self.ids)),
            (TableSection::Areas, bytemuck::cast_slice(&self.areas)),
            (TableSection::Rotated, bytemuck::cast_slice(&self.rotated)),
            (
                TableSection::ShapeEnds,
                bytemuck::cast_slice(&self.shape_ends),
            ),
            (TableSection::Labels, bytemuck::cast_slice(&self.labels)),
            (
                TableSection::Keypoints,
                bytemuck::cast_slice(&self.keypoints),
            ),
            (TableSection::Crowds, &self.crowds),
            (TableSection::Form, &form),
        ];
        for (section, bytes) in arrays {
            let start = at.next_multiple_of(8);
            let gap = [0; 8];
            let gap = &gap[..(start - at) as usize];
            for part in [gap, bytes] {
                self.hasher.write(part);
                self.sealed.write(part)?;
            }
            at = start + bytes.len() as u64;
            head.sections[section as usize] = [start, at];
        }
        head.hash = self.hasher.finish_128().to_le_bytes();
        let gap = [0; 8];
        self.sealed
            .write(&gap[..(at.next_multiple_of(8) - at) as usize])?;
        self.sealed.write(bytemuck::bytes_of(&head))?;
        ObjectTable::of_sealed(self.sealed.seal()?)
    }
}
