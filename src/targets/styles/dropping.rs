//! Which objects of a sample a rule keeps.

use crate::targets::objects::{DropCounts, SampleObjects};

/// A mark for each object, true until a rule drops it.
pub(super) struct KeepList(Vec<bool>);

impl KeepList {
    pub(super) fn new(objects: usize) -> Self {
        Self(vec![true; objects])
    }

    /// Drops an object, and counts it once for this reason.
    pub(super) fn drop(&mut self, object: usize, reason: &mut u32) {
        if let Some(keep) = self.0.get_mut(object).filter(|keep| **keep) {
            *keep = false;
            *reason += 1;
        }
    }

    pub(super) fn apply(&self, objects: &mut SampleObjects) {
        objects.retain(&self.0);
    }
}

/// Drops crowds.
pub(super) fn drop_crowds(objects: &mut SampleObjects, counts: &mut DropCounts) {
    let mut keep = KeepList::new(objects.len());
    for (object, is_crowd) in objects.crowd.iter().enumerate() {
        if *is_crowd {
            keep.drop(object, &mut counts.crowd);
        }
    }
    keep.apply(objects);
}

/// Makes keypoints that the picture cannot show 0, and not labelled.
pub(super) fn hide_lost_keypoints(objects: &mut SampleObjects) {
    let keypoints = &mut objects.keypoints;
    for (point, seen) in keypoints.points.iter_mut().zip(&mut keypoints.visibility) {
        if !point.iter().all(|v| v.is_finite()) {
            (*point, *seen) = ([0.0; 2], 0);
        }
    }
}

/// Drops objects of which a box or a polygon is not finite: the picture cannot show them.
pub(super) fn drop_lost(objects: &mut SampleObjects, counts: &mut DropCounts) {
    let mut keep = KeepList::new(objects.len());
    for (object, values) in objects.boxes.iter().enumerate() {
        if !values.iter().all(|v| v.is_finite()) {
            keep.drop(object, &mut counts.lost);
        }
    }
    for object in 0..objects.polygons.object_ends.len() {
        let mut points = objects.polygons.rings(object).flatten().flatten();
        if !points.all(|v| v.is_finite()) {
            keep.drop(object, &mut counts.lost);
        }
    }
    if let Some(format) = objects.rotated.format {
        let boxes = objects.rotated.values.chunks_exact(format.numbers());
        for (object, values) in boxes.enumerate() {
            if !values.iter().all(|v| v.is_finite()) {
                keep.drop(object, &mut counts.lost);
            }
        }
    }
    keep.apply(objects);
}
