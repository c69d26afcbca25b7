//! The objects of a row as bytes of a slot.
//!
//! A worker writes a record, and the consumer reads it. A record has room for a number of objects
//! that is known before the run. Both sides compute its places from its length. The consumer checks
//! every number: shared memory may hold anything.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::data::objects::{ObjectForm, ObjectTable};
use crate::recipe::Size;
use crate::targets::{DropCounts, SampleMotion};

/// Records begin at multiples of this.
pub(crate) const RECORD_ALIGNMENT: usize = 64;

/// The first bytes of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RecordHead {
    /// The number of objects.
    count: u32,
    /// Height and width of the upright picture.
    pub(crate) source: [u32; 2],
    /// Height and width of the row.
    pub(crate) output: [u32; 2],
    /// Left, top, right and bottom of the picture in the row.
    pub(crate) content: [u32; 4],
    drops: [u32; 7],
}

/// Which arrays a record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordLayout {
    area: bool,
    keypoints: usize,
    rotated: usize,
    /// Whether each object names its sample, because a row has objects of several samples.
    samples: bool,
    /// Bytes of a mask. 0: no masks.
    mask: usize,
}

/// The objects of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ObjectRecord {
    pub(crate) head: RecordHead,
    /// The number of each object among those of its sample.
    pub(crate) number: Vec<u32>,
    /// The sample of each object. Empty: all are of the sample of the row.
    pub(crate) samples: Vec<u64>,
    /// Left, top, right, bottom, in pixels of the row.
    pub(crate) boxes: Vec<[f32; 4]>,
    pub(crate) area: Vec<f32>,
    /// x, y, visibility.
    pub(crate) keypoints: Vec<[f32; 3]>,
    pub(crate) rotated: Vec<f32>,
}

const HEAD: usize = size_of::<RecordHead>();

impl RecordHead {
    /// `source`: the size of the upright picture.
    pub(crate) fn new(source: Size, motion: &SampleMotion, drops: DropCounts) -> Self {
        let (output, content) = (motion.output(), motion.content());
        Self {
            source: [source.height, source.width],
            output: [output.height, output.width],
            content: [
                content.left,
                content.top,
                content.left + content.width,
                content.top + content.height,
            ],
            drops: [
                drops.crowd,
                drops.lost,
                drops.degenerate,
                drops.small,
                drops.hidden,
                drops.elongated,
                drops.over,
            ],
            ..Self::default()
        }
    }

    /// Whether the picture lies within the row.
    pub(crate) fn is_inside(&self) -> bool {
        let [left, top, right, bottom] = self.content;
        let [height, width] = self.output;
        left <= right && top <= bottom && right <= width && bottom <= height
    }

    /// Objects that were dropped, by reason.
    pub(crate) fn drops(&self) -> DropCounts {
        let [crowd, lost, degenerate, small, hidden, elongated, over] = self.drops;
        DropCounts {
            crowd,
            lost,
            degenerate,
            small,
            hidden,
            elongated,
            over,
        }
    }
}

impl RecordLayout {
    pub(crate) fn of(form: &ObjectForm) -> Self {
        Self {
            area: form.area,
            keypoints: form.keypoints,
            rotated: form.rotated.map_or(0, |form| form.numbers()),
            samples: false,
            mask: 0,
        }
    }

    /// The same for rows with objects of several samples.
    pub(crate) fn with_samples(self) -> Self {
        Self {
            samples: true,
            ..self
        }
    }

    pub(crate) fn has_samples(self) -> bool {
        self.samples
    }

    /// The same with a mask of this size for each object, after all arrays. A byte for each pixel.
    pub(crate) fn with_masks(self, size: Option<Size>) -> Self {
        let pixels = |size: Size| size.height as usize * size.width as usize;
        Self {
            mask: size.map_or(0, pixels),
            ..self
        }
    }

    /// Where the masks are in a record of this length: one after the other, in the order of the
    /// objects.
    pub(crate) fn mask_range(self, bytes: usize, objects: usize) -> Range<usize> {
        let room = self.room(bytes);
        let start = HEAD + room * (self.object_bytes() - self.mask);
        start..start + objects.min(room) * self.mask
    }

    /// Bytes of an object.
    fn object_bytes(self) -> usize {
        let area = if self.area { 4 } else { 0 };
        4 + self.sample_bytes() + 16 + area + 12 * self.keypoints + 4 * self.rotated + self.mask
    }

    /// Bytes of the number of an object's sample.
    fn sample_bytes(self) -> usize {
        if self.samples { 8 } else { 0 }
    }

    /// Bytes of a record with room for this number of objects: a multiple of [`RECORD_ALIGNMENT`].
    pub(crate) fn bytes(self, objects: usize) -> u64 {
        let objects = (objects as u64).saturating_mul(self.object_bytes() as u64);
        let bytes = objects.saturating_add(HEAD as u64);
        (bytes.checked_next_multiple_of(RECORD_ALIGNMENT as u64)).unwrap_or(u64::MAX)
    }

    /// The number of objects for which a record of this length has room.
    fn room(self, bytes: usize) -> usize {
        bytes.saturating_sub(HEAD) / self.object_bytes()
    }

    /// Writes a record. False if it does not fit.
    #[must_use]
    pub(crate) fn write(self, record: &ObjectRecord, to: &mut [u8]) -> bool {
        let room = self.room(to.len());
        let count = record.number.len();
        if to.len() < HEAD || count > room {
            return false;
        }
        to.fill(0);
        let head = RecordHead {
            count: count as u32,
            ..record.head
        };
        let (first, mut rest) = to.split_at_mut(HEAD);
        first.copy_from_slice(bytemuck::bytes_of(&head));
        let areas = if self.area { &record.area[..] } else { &[] };
        let arrays: [(usize, &[u8]); 6] = [
            (4, bytemuck::cast_slice(&record.number)),
            (self.sample_bytes(), bytemuck::cast_slice(&record.samples)),
            (16, bytemuck::cast_slice(&record.boxes)),
            (if self.area { 4 } else { 0 }, bytemuck::cast_slice(areas)),
            (12 * self.keypoints, bytemuck::cast_slice(&record.keypoints)),
            (4 * self.rotated, bytemuck::cast_slice(&record.rotated)),
        ];
        for (each, bytes) in arrays {
            if bytes.len() != each * count {
                return false;
            }
            let (place, after) = std::mem::take(&mut rest).split_at_mut(each * room);
            place[..bytes.len()].copy_from_slice(bytes);
            rest = after;
        }
        true
    }

    /// The record in these bytes. None if it names more objects than it has room for.
    pub(crate) fn read(self, from: &[u8]) -> Option<ObjectRecord> {
        let room = self.room(from.len());
        let (head, mut rest) = from.split_at_checked(HEAD)?;
        let head: RecordHead = bytemuck::pod_read_unaligned(head);
        let count = head.count as usize;
        if count > room {
            return None;
        }
        let mut next = |each: usize| {
            let (place, after) = rest.split_at_checked(each * room)?;
            rest = after;
            place.get(..each * count)
        };
        Some(ObjectRecord {
            head,
            number: bytemuck::pod_collect_to_vec(next(4)?),
            samples: bytemuck::pod_collect_to_vec(next(self.sample_bytes())?),
            boxes: bytemuck::pod_collect_to_vec(next(16)?),
            area: bytemuck::pod_collect_to_vec(next(if self.area { 4 } else { 0 })?),
            keypoints: bytemuck::pod_collect_to_vec(next(12 * self.keypoints)?),
            rotated: bytemuck::pod_collect_to_vec(next(4 * self.rotated)?),
        })
    }
}

/// Most bytes that the objects of so many samples of a table take while they move.
pub(crate) fn scratch_bytes(table: &ObjectTable, samples: u64) -> u64 {
    let form = table.form();
    let rotated = form.rotated.map_or(0, |form| form.numbers());
    // Numbers of eight bytes: number, sample, box, area, crowd, keypoints with visibility, rotated
    // box.
    let words = 1 + 2 + 4 + 1 + 1 + 3 * form.keypoints + rotated;
    // As stated, moved, sorted, and as a record.
    let arrays = 4 * 8 * words as u64 * table.most_objects() as u64;
    let arrays = arrays.saturating_mul(samples);
    // Shapes as bytes, as stated, moved, and as those of the objects that are kept.
    arrays.saturating_add(table.most_shape_bytes().saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::objects::RotatedForm;

    fn record(form: &ObjectForm, count: usize) -> ObjectRecord {
        let size = Size {
            height: 480,
            width: 640,
        };
        let drops = DropCounts {
            crowd: 1,
            over: 7,
            ..DropCounts::default()
        };
        let numbers = form.rotated.map_or(0, |form| form.numbers());
        ObjectRecord {
            head: RecordHead {
                count: count as u32,
                ..RecordHead::new(size, &SampleMotion::new(Size::from(224)), drops)
            },
            number: (0..count as u32).map(|n| 3 * n).collect(),
            samples: Vec::new(),
            boxes: (0..count).map(|n| [n as f32, 0.5, 1.5, 2.5]).collect(),
            area: match form.area {
                true => (0..count).map(|n| n as f32 / 3.0).collect(),
                false => Vec::new(),
            },
            keypoints: (0..count * form.keypoints)
                .map(|n| [n as f32, 1.0, 2.0])
                .collect(),
            rotated: (0..count * numbers).map(|n| n as f32).collect(),
        }
    }

    #[test]
    fn records_come_back() {
        let mut forms = Vec::new();
        for area in [false, true] {
            for keypoints in [0, 1, 17] {
                for rotated in [None, Some(RotatedForm::Centre), Some(RotatedForm::Corners)] {
                    forms.push(ObjectForm {
                        area,
                        keypoints,
                        rotated,
                        ..ObjectForm::default()
                    });
                }
            }
        }
        for form in &forms {
            let layout = RecordLayout::of(form);
            for room in [0, 1, 2, 31, 100] {
                let bytes = layout.bytes(room) as usize;
                assert!(bytes.is_multiple_of(RECORD_ALIGNMENT) && layout.room(bytes) >= room);
                for count in [0, room / 2, room] {
                    let want = record(form, count);
                    let mut place = vec![0xa5; bytes];
                    assert!(layout.write(&want, &mut place));
                    assert_eq!(layout.read(&place).unwrap(), want);
                    assert_eq!(layout.read(&place).unwrap().head.drops().total(), 8);
                }
                let more = record(form, layout.room(bytes) + 1);
                assert!(!layout.write(&more, &mut vec![0; bytes]));
            }
        }
    }

    #[test]
    fn objects_of_several_samples_name_theirs() {
        let form = ObjectForm {
            keypoints: 2,
            ..ObjectForm::default()
        };
        let layout = RecordLayout::of(&form).with_samples();
        let want = ObjectRecord {
            samples: vec![u64::MAX, 0, 7],
            ..record(&form, 3)
        };
        let mut place = vec![0xa5; layout.bytes(4) as usize];
        assert!(layout.write(&want, &mut place));
        assert_eq!(layout.read(&place).unwrap(), want);
        // Each object needs one.
        assert!(!layout.write(&record(&form, 3), &mut place));
        assert_eq!(
            layout.object_bytes(),
            RecordLayout::of(&form).object_bytes() + 8
        );
    }

    #[test]
    fn damaged_records_are_refused() {
        let layout = RecordLayout::of(&ObjectForm::default());
        let mut place = vec![0; layout.bytes(3) as usize];
        assert!(layout.read(&place).unwrap().number.is_empty());
        place[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(layout.read(&place).is_none());
        assert!(layout.read(&place[..HEAD - 1]).is_none());
        assert!(layout.read(&[]).is_none());
    }
}
