//! Objects that a program lists.

use std::collections::{BTreeMap, BTreeSet};

use super::object_form::{BoxForm, ObjectCategory, ObjectForm, RotatedForm};
use super::shape_bytes::ObjectShape;
use super::stated::{StatedObject, StatedObjects};
use super::table::ObjectTable;
use super::table_writer::ObjectTableWriter;
use crate::error::{Error, Result};

/// The objects of one sample. Each array that is used has an entry for each object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemObjects {
    /// Four numbers, as [`ObjectListOptions::boxes`] says.
    pub boxes: Vec<[f64; 4]>,
    pub labels: Vec<i64>,
    /// Square pixels. Empty: the area of the box.
    pub area: Vec<f64>,
    /// Empty: no crowds.
    pub crowd: Vec<bool>,
    /// Empty: -1.
    pub ids: Vec<i64>,
    /// x, y and visibility (0, 1, 2): [`ObjectListOptions::keypoints`] for each object.
    pub keypoints: Vec<[f32; 3]>,
    /// 5 or 8 numbers for each object, by [`ObjectListOptions::rotated`].
    pub rotated: Vec<f64>,
    /// Rings of points for each object. Empty: no outlines.
    pub polygons: Vec<Vec<Vec<[f64; 2]>>>,
    /// The number of the picture. None: -1.
    pub image_id: Option<i64>,
    /// Height and width of the picture, if they should be checked.
    pub size: Option<(u32, u32)>,
}

/// What all objects of a list have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectListOptions {
    pub boxes: BoxForm,
    /// Whether coordinates are shares of the picture's sides, 0 to 1.
    pub shares: bool,
    /// Keypoints of an object.
    pub keypoints: usize,
    /// For each keypoint the one that takes its place in a mirrored picture. Empty: not known.
    pub keypoint_swap: Vec<usize>,
    pub rotated: Option<RotatedForm>,
    /// Whether objects have outlines.
    pub polygons: bool,
    /// Names of labels.
    pub names: BTreeMap<i64, String>,
}

/// The objects of samples, one after the other, in the order of the samples.
#[derive(Debug)]
pub struct ObjectList {
    options: ObjectListOptions,
    samples: Vec<StatedObjects>,
    /// The labels of each sample's objects.
    given: Vec<Vec<i64>>,
    labels: BTreeSet<i64>,
}

impl ObjectList {
    /// A list without samples.
    #[must_use]
    pub fn new(options: ObjectListOptions) -> Self {
        let labels = options.names.keys().copied().collect();
        Self {
            options,
            samples: Vec::new(),
            given: Vec::new(),
            labels,
        }
    }

    /// Adds the objects of the next sample.
    ///
    /// # Errors
    /// Arrays of other lengths than there are objects; coordinates that are not numbers; boxes of
    /// negative size.
    pub fn push(&mut self, item: &ItemObjects) -> Result<()> {
        let sample = self.samples.len();
        let wrong =
            |what: String| Error::option("objects", format!("objects: item {sample}: {what}"));
        let count = item.labels.len();
        let options = &self.options;
        let rotated = options.rotated.map_or(0, RotatedForm::numbers);
        let lengths = [
            ("boxes", item.boxes.len(), 1, false),
            ("area", item.area.len(), 1, true),
            ("crowd", item.crowd.len(), 1, true),
            ("ids", item.ids.len(), 1, true),
            ("keypoints", item.keypoints.len(), options.keypoints, false),
            ("rotated", item.rotated.len(), rotated, false),
            (
                "polygons",
                item.polygons.len(),
                usize::from(options.polygons),
                false,
            ),
        ];
        for (name, length, each, may_lack) in lengths {
            if length != count * each && !(may_lack && length == 0) {
                return Err(wrong(format!(
                    "`{name}` has {length} entries, and {count} labels need {}",
                    count * each
                )));
            }
        }
        let mut objects = Vec::with_capacity(count);
        for object in 0..count {
            let numbers = item.boxes[object];
            let [x0, y0, x1, y1] = options.boxes.corners(numbers);
            if !numbers.iter().all(|v| v.is_finite()) || x1 < x0 || y1 < y0 {
                return Err(wrong(format!(
                    "box {object} is {numbers:?}: its numbers must be finite, with a width and \
                     height of 0 or more"
                )));
            }
            let rings = item.polygons.get(object);
            objects.push(StatedObject {
                numbers,
                // Replaced by its place in the end.
                label: 0,
                id: item.ids.get(object).copied().unwrap_or(-1),
                area: (item.area.get(object).copied()).unwrap_or((x1 - x0) * (y1 - y0)),
                crowd: item.crowd.get(object).copied().unwrap_or(false),
                keypoints: group(&item.keypoints, object, options.keypoints),
                rotated: group(&item.rotated, object, rotated),
                shape: rings.map_or(ObjectShape::None, |rings| {
                    ObjectShape::Polygons(rings.clone())
                }),
            });
        }
        let coordinates = item.keypoints.iter().flatten().map(|v| f64::from(*v));
        let polygons = item.polygons.iter().flatten().flatten().flatten().copied();
        let mut all = (coordinates.chain(item.rotated.iter().copied())).chain(polygons);
        if let Some(v) = all.find(|v| !v.is_finite()) {
            return Err(wrong(format!("a coordinate is {v}: use finite numbers")));
        }
        self.labels.extend(&item.labels);
        self.samples.push(StatedObjects {
            size: item.size,
            image_id: item.image_id.unwrap_or(-1),
            objects,
        });
        self.given.push(item.labels.clone());
        Ok(())
    }

    /// The table of all objects.
    pub(crate) fn finish(self) -> Result<ObjectTable> {
        let options = self.options;
        let category = |id: &i64| ObjectCategory {
            id: *id,
            name: (options.names.get(id).cloned()).unwrap_or_else(|| id.to_string()),
        };
        let places: BTreeMap<i64, u32> = self.labels.into_iter().zip(0..).collect();
        let mut writer = ObjectTableWriter::new(ObjectForm {
            boxes: options.boxes,
            shares: options.shares,
            area: !options.shares,
            keypoints: options.keypoints,
            keypoint_swap: options.keypoint_swap.clone(),
            rotated: options.rotated,
            shapes: options.polygons,
            categories: places.keys().map(category).collect(),
            ..ObjectForm::default()
        })?;
        for (mut sample, labels) in self.samples.into_iter().zip(self.given) {
            for (object, label) in sample.objects.iter_mut().zip(labels) {
                object.label = places.get(&label).copied().unwrap_or(0);
            }
            writer.push(&sample)?;
        }
        writer.finish()
    }
}

fn group<T: Clone>(all: &[T], object: usize, each: usize) -> Vec<T> {
    all[object * each..(object + 1) * each].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_tables() {
        let options = ObjectListOptions {
            boxes: BoxForm::Xywh,
            keypoints: 2,
            polygons: true,
            names: [(7, "cat".to_owned())].into(),
            ..ObjectListOptions::default()
        };
        let mut list = ObjectList::new(options);
        let item = ItemObjects {
            boxes: vec![[1.0, 2.0, 3.0, 4.0], [0.0; 4]],
            labels: vec![90, -3],
            keypoints: vec![[1.0, 2.0, 2.0]; 4],
            polygons: vec![vec![vec![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]], vec![]],
            image_id: Some(12),
            size: Some((20, 30)),
            ..ItemObjects::default()
        };
        list.push(&item).unwrap();
        list.push(&ItemObjects::default()).unwrap();
        let e = list.push(&ItemObjects {
            labels: vec![1],
            ..ItemObjects::default()
        });
        let e = e.unwrap_err().to_string();
        assert!(e.contains("item 2: `boxes` has 0 entries"), "{e}");
        let mut bad = item.clone();
        bad.boxes[1][2] = -1.0;
        let e = list.push(&bad).unwrap_err().to_string();
        assert!(e.contains("item 2: box 1 is [0.0, 0.0, -1.0"), "{e}");
        bad.boxes[1][2] = f64::NAN;
        assert!(list.push(&bad).is_err());
        let mut bad = item.clone();
        bad.polygons[0][0][1][0] = f64::INFINITY;
        assert!(list.push(&bad).unwrap_err().to_string().contains("is inf"));
        let table = list.finish().unwrap();
        assert_eq!((table.samples(), table.objects()), (2, 2));
        let names: Vec<_> = (table.form().categories.iter())
            .map(|of| (of.id, of.name.as_str()))
            .collect();
        assert_eq!(names, [(-3, "-3"), (7, "cat"), (90, "90")]);
        let sample = table.sample(0);
        assert_eq!(
            (sample.labels, sample.areas),
            (&[2, 0][..], &[12.0, 0.0][..])
        );
        assert_eq!((sample.ids, sample.crowds), (&[-1, -1][..], &[0, 0][..]));
        assert_eq!((table.image_id(0), table.image_id(1)), (12, -1));
        assert_eq!(table.stated_size(0), Some((20, 30)));
    }
}
