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

/// Drops objects whose box is not finite: the picture cannot show them.
pub(super) fn drop_lost(objects: &mut SampleObjects, counts: &mut DropCounts) {
    let mut keep = KeepList::new(objects.len());
    for (object, values) in objects.boxes.iter().enumerate() {
        if !values.iter().all(|v| v.is_finite()) {
            keep.drop(object, &mut counts.lost);
        }
    }
    keep.apply(objects);
}
