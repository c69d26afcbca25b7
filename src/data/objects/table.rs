//! The table of all objects, in sealed memory.
//!
//! Arrays, one after the other, and at the end where each begins and ends. The consumer wrote the
//! bytes. Ranges are checked wherever they are used all the same.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytemuck::{AnyBitPattern, Pod, Zeroable};

use super::object_form::ObjectForm;
use super::shape_bytes::ObjectShape;
use super::stated::{StatedObject, StatedObjects};
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytes;

/// An array of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableSection {
    Shapes,
    ObjectEnds,
    Sizes,
    ImageIds,
    Numbers,
    Ids,
    Areas,
    Rotated,
    ShapeEnds,
    Labels,
    Keypoints,
    Crowds,
    Form,
}

impl TableSection {
    pub(super) const COUNT: usize = Self::Form as usize + 1;
}

/// Where the arrays are. The last bytes of the table.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TableHead {
    /// First byte, and the byte after the last.
    pub(super) sections: [[u64; 2]; TableSection::COUNT],
    /// Fingerprint of all arrays.
    pub(super) hash: [u8; 16],
}

/// The objects of all samples. Immutable.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    sealed: SealedBytes,
    head: TableHead,
    form: ObjectForm,
}

/// The objects of one sample. Arrays are empty where the form lacks them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectsOfSample<'a> {
    table: &'a ObjectTable,
    /// The number of the first object in the table.
    first: usize,
    pub(crate) numbers: &'a [[f64; 4]],
    pub(crate) labels: &'a [u32],
    pub(crate) ids: &'a [i64],
    pub(crate) areas: &'a [f64],
    /// 1 for a crowd.
    pub(crate) crowds: &'a [u8],
    /// Object after object: x, y, visibility.
    pub(crate) keypoints: &'a [[f32; 3]],
    pub(crate) rotated: &'a [f64],
}

impl ObjectsOfSample<'_> {
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The shape of an object of the sample. None if the table is damaged.
    pub(crate) fn shape(&self, object: usize) -> Option<ObjectShape> {
        self.table.shape(self.first + object)
    }
}

impl ObjectTable {
    pub(super) fn of_sealed(sealed: SealedBytes) -> Result<Self> {
        let damaged = || Error::protocol("the table of objects is damaged");
        let bytes = sealed.bytes();
        let head = bytes
            .last_chunk::<{ size_of::<TableHead>() }>()
            .ok_or_else(damaged)?;
        let head: TableHead = bytemuck::pod_read_unaligned(head);
        let [start, end] = head.sections[TableSection::Form as usize];
        let form = bytes.get(start as usize..end as usize).unwrap_or_default();
        let form: ObjectForm = serde_json::from_slice(form).map_err(|_| damaged())?;
        let table = Self { sealed, head, form };
        let objects = table.objects();
        let has = |section, count: usize, bytes: usize| {
            let [start, end] = table.head.sections[section as usize];
            end.checked_sub(start) == (count as u64).checked_mul(bytes as u64)
        };
        let samples = table.object_ends().len();
        let with = |has: bool| if has { objects } else { 0 };
        let rotated = table.form.rotated.map_or(0, |form| form.numbers());
        let whole = has(TableSection::Sizes, samples, 8)
            && has(TableSection::ImageIds, samples, 8)
            && has(TableSection::Numbers, objects, 32)
            && has(TableSection::Labels, objects, 4)
            && has(TableSection::Ids, objects, 8)
            && has(TableSection::Areas, with(table.form.area), 8)
            && has(TableSection::Crowds, objects, 1)
            && has(
                TableSection::Keypoints,
                objects,
                table.form.keypoints.saturating_mul(12),
            )
            && has(TableSection::Rotated, objects, 8 * rotated)
            && has(TableSection::ShapeEnds, with(table.form.shapes), 8);
        match whole {
            true => Ok(table),
            false => Err(damaged()),
        }
    }

    /// The table of a file, whose bytes any program may have written. `samples`: their number.
    ///
    /// # Errors
    /// Bytes that are no such table, in words; no memory.
    pub(crate) fn of_file(bytes: &[u8], samples: u64) -> Result<Self, String> {
        let sealed = SealedBytes::new("featherload-objects", &[bytes]);
        let table = Self::of_sealed(sealed.map_err(|e| e.to_string())?);
        let table = table.map_err(|_| "is damaged, or of another version".to_owned())?;
        if table.samples() != samples {
            return Err(format!(
                "has the objects of {} samples, and there are {samples}",
                table.samples()
            ));
        }
        table.check_values()?;
        Ok(table)
    }

    /// The bytes of a file, which [`ObjectTable::of_file`] reads.
    pub(crate) fn file_bytes(&self) -> &[u8] {
        self.sealed.bytes()
    }

    /// Checks each value, as readers of annotations do.
    fn check_values(&self) -> Result<(), String> {
        let ends = [
            (self.object_ends(), self.objects() as u64),
            (
                self.section(TableSection::ShapeEnds),
                self.section::<u8>(TableSection::Shapes).len() as u64,
            ),
        ];
        for (ends, most) in ends {
            if !ends.is_sorted() || ends.last().is_some_and(|last| *last > most) {
                return Err("has objects in a wrong order".into());
            }
        }
        let categories = self.form.categories.len();
        let is_swapped = |to: &usize| *to < self.form.keypoints;
        if !self.form.keypoint_swap.iter().all(is_swapped) {
            return Err("has keypoints in its mirror that do not exist".into());
        }
        for id in 0..self.samples() {
            let wrong = |what: &str| Err(format!("has {what} in sample {id}"));
            let sample = self.sample(id);
            if sample.labels.iter().any(|of| *of as usize >= categories) {
                return wrong("an unknown category");
            }
            let boxes = sample.numbers.iter().map(|of| self.form.boxes.corners(*of));
            let is_box = |[x0, y0, x1, y1]: [f64; 4]| {
                [x0, y0, x1, y1].iter().all(|v| v.is_finite()) && x0 <= x1 && y0 <= y1
            };
            if !boxes.into_iter().all(is_box) {
                return wrong("a box without a width or height");
            }
            let points = sample.keypoints.iter().flatten().map(|v| f64::from(*v));
            let mut values =
                (points.chain(sample.rotated.iter().copied())).chain(sample.areas.iter().copied());
            if !values.all(f64::is_finite) {
                return wrong("a number that is not finite");
            }
            if (0..sample.len()).any(|object| sample.shape(object).is_none()) {
                return wrong("a damaged outline");
            }
        }
        Ok(())
    }

    /// The objects of a sample as annotations state them. None if the table is damaged.
    pub(crate) fn stated(&self, id: u64) -> Option<StatedObjects> {
        let sample = self.sample(id);
        let rotated = self.form.rotated.map_or(0, |form| form.numbers());
        let object = |at: usize| {
            let keypoints = at * self.form.keypoints..(at + 1) * self.form.keypoints;
            Some(StatedObject {
                numbers: *sample.numbers.get(at)?,
                label: *sample.labels.get(at)?,
                id: *sample.ids.get(at)?,
                area: sample.areas.get(at).copied().unwrap_or_default(),
                crowd: *sample.crowds.get(at)? != 0,
                keypoints: sample.keypoints.get(keypoints)?.to_vec(),
                rotated: (sample.rotated.get(at * rotated..(at + 1) * rotated))?.to_vec(),
                shape: sample.shape(at)?,
            })
        };
        Some(StatedObjects {
            size: self.stated_size(id),
            image_id: self.image_id(id),
            objects: (0..sample.len()).map(object).collect::<Option<_>>()?,
        })
    }

    /// Maps the objects of `samples` samples, received from another process.
    pub(crate) fn from_fd(fd: OwnedFd, samples: u64) -> Result<Self> {
        let table = Self::of_sealed(SealedBytes::from_fd(fd)?)?;
        match table.samples() == samples {
            true => Ok(table),
            false => Err(Error::protocol(format!(
                "the received objects are of {} samples, and there are {samples}",
                table.samples()
            ))),
        }
    }

    /// What all objects have in common.
    pub(crate) fn form(&self) -> &ObjectForm {
        &self.form
    }

    pub(crate) fn samples(&self) -> u64 {
        self.object_ends().len() as u64
    }

    /// The number of all objects.
    pub(crate) fn objects(&self) -> usize {
        self.object_ends().last().copied().unwrap_or(0) as usize
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.sealed.bytes().len() as u64
    }

    /// Fingerprint of all arrays.
    pub(crate) fn hash(&self) -> u128 {
        u128::from_le_bytes(self.head.hash)
    }

    fn section<T: AnyBitPattern>(&self, section: TableSection) -> &[T] {
        let [start, end] = self.head.sections[section as usize];
        let bytes = self.sealed.bytes().get(start as usize..end as usize);
        // A map starts at a page boundary, and sections at multiples of 8.
        bytemuck::try_cast_slice(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn object_ends(&self) -> &[u64] {
        self.section(TableSection::ObjectEnds)
    }

    /// The numbers of the objects of a sample in the table.
    fn range(&self, id: u64) -> std::ops::Range<usize> {
        let ends = self.object_ends();
        let at = id as usize;
        let end = ends.get(at).copied().unwrap_or(0) as usize;
        let start = at.checked_sub(1).and_then(|before| ends.get(before));
        start.map_or(0, |start| *start as usize).min(end)..end
    }

    /// The number of objects of a sample.
    pub(crate) fn count(&self, id: u64) -> usize {
        self.range(id).len()
    }

    /// The largest number of objects that a sample has.
    pub(crate) fn most_objects(&self) -> usize {
        (0..self.samples())
            .map(|id| self.count(id))
            .max()
            .unwrap_or(0)
    }

    /// The most bytes of shapes that a sample's objects have.
    pub(crate) fn most_shape_bytes(&self) -> u64 {
        let ends = self.section::<u64>(TableSection::ShapeEnds);
        let end = |objects: usize| objects.checked_sub(1).map_or(0, |last| ends[last]);
        let of_sample = |id| {
            let range = self.range(id);
            match range.end <= ends.len() {
                true => end(range.end).saturating_sub(end(range.start)),
                false => 0,
            }
        };
        (0..self.samples()).map(of_sample).max().unwrap_or(0)
    }

    /// The objects of a sample. None of them for an id that no sample has.
    pub(crate) fn sample(&self, id: u64) -> ObjectsOfSample<'_> {
        let range = self.range(id);
        let per_rotated = self.form.rotated.map_or(0, |form| form.numbers());
        ObjectsOfSample {
            table: self,
            first: range.start,
            numbers: group(self.section(TableSection::Numbers), &range, 1),
            labels: group(self.section(TableSection::Labels), &range, 1),
            ids: group(self.section(TableSection::Ids), &range, 1),
            areas: group(self.section(TableSection::Areas), &range, 1),
            crowds: group(self.section(TableSection::Crowds), &range, 1),
            keypoints: group(
                self.section(TableSection::Keypoints),
                &range,
                self.form.keypoints,
            ),
            rotated: group(self.section(TableSection::Rotated), &range, per_rotated),
        }
    }

    /// Height and width that the annotation states. None if it does not.
    pub(crate) fn stated_size(&self, id: u64) -> Option<(u32, u32)> {
        let &[height, width] = self
            .section::<[u32; 2]>(TableSection::Sizes)
            .get(id as usize)?;
        (height != 0 && width != 0).then_some((height, width))
    }

    /// The number of the picture in the annotation. -1 if it has none.
    pub(crate) fn image_id(&self, id: u64) -> i64 {
        let ids = self.section(TableSection::ImageIds);
        ids.get(id as usize).copied().unwrap_or(-1)
    }

    fn shape(&self, object: usize) -> Option<ObjectShape> {
        if !self.form.shapes {
            return Some(ObjectShape::None);
        }
        let ends = self.section::<u64>(TableSection::ShapeEnds);
        let end = *ends.get(object)? as usize;
        let start = object
            .checked_sub(1)
            .map_or(0, |before| ends[before] as usize);
        let shapes = self.section::<u8>(TableSection::Shapes);
        ObjectShape::read(shapes.get(start..end)?)
    }
}

/// The values of these objects, `count` for each. Empty if the array lacks them.
fn group<'a, T>(all: &'a [T], objects: &std::ops::Range<usize>, count: usize) -> &'a [T] {
    let range = objects.start.saturating_mul(count)..objects.end.saturating_mul(count);
    all.get(range).unwrap_or_default()
}

impl AsFd for ObjectTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::object_form::{ObjectCategory, RotatedForm};
    use super::super::stated::{StatedObject, StatedObjects};
    use super::super::table_writer::ObjectTableWriter;
    use super::*;

    fn form() -> ObjectForm {
        ObjectForm {
            area: true,
            keypoints: 2,
            rotated: Some(RotatedForm::Centre),
            shapes: true,
            categories: vec![
                ObjectCategory {
                    id: 90,
                    name: "toothbrush".into(),
                };
                3
            ],
            ..ObjectForm::default()
        }
    }

    fn object(n: u32) -> StatedObject {
        StatedObject {
            numbers: [f64::from(n), 1.0, 2.0, 3.5],
            label: n % 3,
            id: i64::from(n) + 1000,
            area: 7.25 * f64::from(n),
            crowd: n % 2 == 1,
            keypoints: vec![[n as f32, 2.0, 1.0], [3.0, 4.0, 2.0]],
            rotated: vec![0.5, 1.5, 2.5, 3.5, f64::from(n)],
            shape: ObjectShape::Polygons(vec![vec![[f64::from(n), 0.1]; n as usize]]),
        }
    }

    #[test]
    fn another_process_sees_the_same_objects() {
        let mut writer = ObjectTableWriter::new(form()).unwrap();
        let counts = [0u32, 3, 0, 1, 70_000, 0];
        for (id, count) in (0..).zip(counts) {
            let sample = StatedObjects {
                size: (id % 2 == 0).then_some((480, 640 + id)),
                image_id: i64::from(id) * 10,
                objects: (0..count).map(|n| object(n % 100)).collect(),
            };
            writer.push(&sample).unwrap();
        }
        let table = writer.finish().unwrap();
        let fd = || table.as_fd().try_clone_to_owned().unwrap();
        let other = ObjectTable::from_fd(fd(), 6).unwrap();
        assert!(ObjectTable::from_fd(fd(), 5).is_err());
        assert_eq!(other.form(), &form());
        assert_eq!((other.objects(), other.most_objects()), (70_004, 70_000));
        assert_eq!(other.hash(), table.hash());
        for (id, count) in (0..).zip(counts) {
            let sample = other.sample(id);
            assert_eq!(sample.len(), count as usize);
            let size = (id % 2 == 0).then_some((480, 640 + id as u32));
            assert_eq!(other.stated_size(id), size);
            assert_eq!(other.image_id(id), id as i64 * 10);
            let stated = other.stated(id).unwrap();
            assert_eq!((stated.size, stated.image_id), (size, id as i64 * 10));
            assert_eq!(stated.objects.len(), count as usize);
            for n in (0..count).step_by(997) {
                assert_eq!(stated.objects[n as usize], object(n % 100));
                let (want, at) = (object(n % 100), n as usize);
                assert_eq!(sample.numbers[at], want.numbers);
                assert_eq!(sample.labels[at], want.label);
                assert_eq!(sample.ids[at], want.id);
                assert_eq!(sample.areas[at], want.area);
                assert_eq!(sample.crowds[at], u8::from(want.crowd));
                assert_eq!(sample.keypoints[2 * at..][..2], want.keypoints);
                assert_eq!(sample.rotated[5 * at..][..5], want.rotated);
                assert_eq!(sample.shape(at), Some(want.shape));
            }
        }
        for id in [6, u64::MAX] {
            assert_eq!(other.sample(id).len(), 0);
        }
    }

    #[test]
    fn a_file_of_objects_is_checked() {
        let one = |change: fn(&mut StatedObject)| {
            let mut objects = vec![object(1), object(2)];
            change(&mut objects[1]);
            let mut writer = ObjectTableWriter::with_later_categories(form()).unwrap();
            let sample = StatedObjects {
                objects,
                ..StatedObjects::default()
            };
            writer.push(&sample).unwrap();
            writer.finish().unwrap()
        };
        let good = one(|_| {});
        let back = ObjectTable::of_file(good.file_bytes(), 1).unwrap();
        assert_eq!(back.hash(), good.hash());
        assert_eq!(back.stated(0), good.stated(0));
        let e = ObjectTable::of_file(good.file_bytes(), 2).unwrap_err();
        assert!(e.contains("of 1 samples"), "{e}");
        let e = ObjectTable::of_file(&good.file_bytes()[..99], 1).unwrap_err();
        assert!(e.contains("damaged"), "{e}");
        type Change = fn(&mut StatedObject);
        let changes: [(Change, &str); 4] = [
            (|object| object.label = 3, "an unknown category in sample 0"),
            (|object| object.numbers[2] = f64::NAN, "a box without"),
            (|object| object.numbers[3] = 0.5, "a box without"),
            (|object| object.rotated[0] = f64::INFINITY, "not finite"),
        ];
        for (change, what) in changes {
            let e = ObjectTable::of_file(one(change).file_bytes(), 1).unwrap_err();
            assert!(e.contains(what), "{e}");
        }
    }

    #[test]
    fn no_objects_and_no_samples() {
        let table = ObjectTableWriter::new(ObjectForm::default()).unwrap();
        let table = table.finish().unwrap();
        assert_eq!((table.samples(), table.objects()), (0, 0));
        let mut writer = ObjectTableWriter::new(form()).unwrap();
        writer.push(&StatedObjects::default()).unwrap();
        let table = writer.finish().unwrap();
        assert_eq!((table.samples(), table.sample(0).len()), (1, 0));
    }

    #[test]
    fn objects_of_another_form_are_refused() {
        let mut writer = ObjectTableWriter::new(form()).unwrap();
        let changes: [fn(&mut StatedObject); 3] = [
            |object| object.keypoints.truncate(1),
            |object| object.rotated.clear(),
            |object| object.label = 3,
        ];
        for change in changes {
            let mut other = object(1);
            change(&mut other);
            let sample = StatedObjects {
                objects: vec![other],
                ..StatedObjects::default()
            };
            assert!(writer.push(&sample).is_err());
        }
    }

    #[test]
    fn damaged_memory_is_refused() {
        let mut writer = ObjectTableWriter::new(form()).unwrap();
        let sample = StatedObjects {
            objects: (0..9).map(object).collect(),
            ..StatedObjects::default()
        };
        writer.push(&sample).unwrap();
        let table = writer.finish().unwrap();
        let whole = table.sealed.bytes().to_vec();
        let open = |bytes: &[u8]| {
            let sealed = SealedBytes::new("featherload-test", &[bytes]).unwrap();
            ObjectTable::of_sealed(sealed)
        };
        assert!(open(&whole).is_ok());
        for len in [0, 1, 100, whole.len() - 8] {
            assert!(open(&whole[..len]).is_err(), "{len}");
        }
        // Whatever the bytes are, nothing panics.
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            if let Ok(table) = open(&bytes) {
                let sample = table.sample(0);
                for object in 0..sample.len() {
                    let _ = sample.shape(object);
                }
            }
        }
    }
}
