//! The objects of one sample, as flat arrays.

use super::box_format::BoxFormat;
use super::fault::TargetFault;
use super::rotated_box::RotatedFormat;

/// The objects of one sample. Arrays with a value for each object have equal lengths. An array of
/// what the sample lacks is empty.
///
/// Coordinates are in pixels of the picture, x to the right and y down. A box of the whole picture
/// is 0, 0, width, height.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleObjects {
    /// The number of each object in the sample's annotation, from 0. Labels and ids are found by
    /// it.
    pub number: Vec<u32>,
    /// Four numbers of each object.
    pub boxes: Vec<[f64; 4]>,
    pub box_format: BoxFormat,
    pub rotated: RotatedBoxes,
    /// Areas in square pixels, as the annotation states them.
    pub area: Vec<f64>,
    /// Whether an object is a crowd.
    pub crowd: Vec<bool>,
    pub keypoints: KeypointArray,
    pub polygons: PolygonArray,
}

/// Rotated boxes of a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RotatedBoxes {
    /// None: the sample has no rotated boxes.
    pub format: Option<RotatedFormat>,
    /// [`RotatedFormat::numbers`] numbers of each object.
    pub values: Vec<f64>,
}

/// Keypoints of a sample: the same count for each object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeypointArray {
    /// Keypoints of an object. 0: the sample has no keypoints.
    pub per_object: usize,
    /// Object after object: x, y.
    pub points: Vec<[f64; 2]>,
    /// For each point: 0 not labelled, 1 labelled and hidden, 2 visible.
    pub visibility: Vec<u8>,
}

/// Polygons of a sample. An object has any number of rings, and a ring any number of points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolygonArray {
    /// Ring after ring: x, y.
    pub points: Vec<[f64; 2]>,
    /// Where each ring ends in `points`.
    pub ring_ends: Vec<usize>,
    /// Where each object ends in `ring_ends`.
    pub object_ends: Vec<usize>,
}

/// The partner of each keypoint when left and right change places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeypointSwap(Vec<usize>);

impl KeypointSwap {
    /// `partners`: for each keypoint the keypoint that takes its place, itself for one in the
    /// middle.
    ///
    /// # Errors
    /// If a partner is no keypoint, or if two keypoints are not each other's partners.
    pub fn new(partners: Vec<usize>) -> Result<Self, TargetFault> {
        for (keypoint, &partner) in partners.iter().enumerate() {
            let back = partners.get(partner).copied();
            if back != Some(keypoint) {
                let reason = format!(
                    "has partner {partner} for keypoint {keypoint}, of {} keypoints: use pairs \
                     that name each other",
                    partners.len()
                );
                return Err(TargetFault::new("swap", reason));
            }
        }
        Ok(Self(partners))
    }

    /// The number of keypoints.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl KeypointArray {
    /// Exchanges partners in each object.
    ///
    /// # Errors
    /// If the table is for another number of keypoints.
    pub fn swap(&mut self, table: &KeypointSwap) -> Result<(), TargetFault> {
        let count = self.per_object;
        if table.len() != count {
            let reason = format!(
                "has {} keypoints, and objects have {count}: use one partner for each keypoint",
                table.len()
            );
            return Err(TargetFault::new("swap", reason));
        }
        let starts = (0..self.points.len()).step_by(count.max(1));
        for start in starts {
            for (keypoint, &partner) in table.0.iter().enumerate() {
                if keypoint < partner {
                    self.points.swap(start + keypoint, start + partner);
                    self.visibility.swap(start + keypoint, start + partner);
                }
            }
        }
        Ok(())
    }
}

impl PolygonArray {
    /// Adds the next object with these rings.
    pub fn push_object<'a>(&mut self, rings: impl IntoIterator<Item = &'a [[f64; 2]]>) {
        for ring in rings {
            self.points.extend_from_slice(ring);
            self.ring_ends.push(self.points.len());
        }
        self.object_ends.push(self.ring_ends.len());
    }

    /// The rings of an object. Empty for a number that no object has.
    pub fn rings(&self, object: usize) -> impl Iterator<Item = &[[f64; 2]]> {
        let before = |ends: &[usize], at: usize| match at {
            0 => 0,
            at => ends.get(at - 1).copied().unwrap_or(0),
        };
        let end = self.object_ends.get(object).copied().unwrap_or(0);
        let start = before(&self.object_ends, object).min(end);
        (start..end).map(move |ring| {
            let end = self.ring_ends.get(ring).copied().unwrap_or(0);
            let start = before(&self.ring_ends, ring).min(end);
            self.points.get(start..end).unwrap_or(&[])
        })
    }
}

impl SampleObjects {
    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.number.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.number.is_empty()
    }

    /// Checks that all arrays are of the same objects.
    ///
    /// # Errors
    /// Names the array and its length.
    pub fn check(&self) -> Result<(), TargetFault> {
        let objects = self.len();
        let points = self.keypoints.per_object.checked_mul(objects);
        let rotated = self.rotated.format.map_or(0, RotatedFormat::numbers);
        let lengths = [
            ("boxes", self.boxes.len(), Some(objects)),
            ("area", self.area.len(), Some(objects)),
            ("crowd", self.crowd.len(), Some(objects)),
            (
                "rotated",
                self.rotated.values.len(),
                rotated.checked_mul(objects),
            ),
            ("keypoints", self.keypoints.points.len(), points),
            ("visibility", self.keypoints.visibility.len(), points),
            ("polygons", self.polygons.object_ends.len(), Some(objects)),
        ];
        for (field, length, wanted) in lengths {
            // A sample may lack boxes, areas, marks of crowds and polygons.
            let may_lack = ["boxes", "area", "crowd", "polygons"].contains(&field);
            if Some(length) != wanted && !(may_lack && length == 0) {
                let reason = format!("has {length} values, and the sample has {objects} objects");
                return Err(TargetFault::new(field, reason));
            }
        }
        let ends = [
            (&self.polygons.object_ends, self.polygons.ring_ends.len()),
            (&self.polygons.ring_ends, self.polygons.points.len()),
        ];
        for (ends, last) in ends {
            if !ends.is_sorted() || ends.last().is_some_and(|end| *end != last) {
                let reason = "have ends that do not ascend to the number of points";
                return Err(TargetFault::new("polygons", reason));
            }
        }
        Ok(())
    }

    /// Keeps the objects for which `keep` is true, in their order.
    pub fn retain(&mut self, keep: &[bool]) {
        if keep.iter().all(|keep| *keep) {
            return;
        }
        retain_groups(&mut self.number, 1, keep);
        retain_groups(&mut self.boxes, 1, keep);
        retain_groups(&mut self.area, 1, keep);
        retain_groups(&mut self.crowd, 1, keep);
        let rotated = self.rotated.format.map_or(0, RotatedFormat::numbers);
        retain_groups(&mut self.rotated.values, rotated, keep);
        let count = self.keypoints.per_object;
        retain_groups(&mut self.keypoints.points, count, keep);
        retain_groups(&mut self.keypoints.visibility, count, keep);
        if !self.polygons.object_ends.is_empty() {
            let mut kept = PolygonArray::default();
            for object in (0..keep.len()).filter(|object| keep[*object]) {
                kept.push_object(self.polygons.rings(object));
            }
            self.polygons = kept;
        }
    }
}

/// Keeps groups of `count` values. An empty array stays empty.
fn retain_groups<T>(values: &mut Vec<T>, count: usize, keep: &[bool]) {
    let mut at = 0;
    values.retain(|_| {
        let group = at / count.max(1);
        at += 1;
        keep.get(group).copied().unwrap_or(false)
    });
}

/// Objects that a rule dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounts {
    /// Crowds, where the style has none.
    pub crowd: u32,
    /// Boxes whose place is not a number: the picture cannot show them.
    pub lost: u32,
    /// Boxes without width or height.
    pub degenerate: u32,
    /// Boxes below the minimum side or area.
    pub small: u32,
    /// Boxes of which too little is left inside the picture.
    pub hidden: u32,
    /// Boxes that are too long for their width.
    pub elongated: u32,
    /// Objects beyond the most that a picture may have.
    pub over: u32,
}

impl DropCounts {
    /// The sums of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            crowd: self.crowd.saturating_add(other.crowd),
            lost: self.lost.saturating_add(other.lost),
            degenerate: self.degenerate.saturating_add(other.degenerate),
            small: self.small.saturating_add(other.small),
            hidden: self.hidden.saturating_add(other.hidden),
            elongated: self.elongated.saturating_add(other.elongated),
            over: self.over.saturating_add(other.over),
        }
    }

    /// All dropped objects.
    #[must_use]
    pub fn total(&self) -> u32 {
        let all = [
            self.crowd,
            self.lost,
            self.degenerate,
            self.small,
            self.hidden,
            self.elongated,
            self.over,
        ];
        all.into_iter().fold(0, u32::saturating_add)
    }
}
