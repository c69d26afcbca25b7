//! What all rules get of a sample.

use crate::targets::objects::{KeypointSwap, SampleObjects};
use crate::targets::sample_motion::{MotionPath, SampleMotion};

/// The motion of a sample's picture.
pub(super) struct MovedSample<'a> {
    pub(super) motion: &'a SampleMotion,
    /// The one map of all steps.
    pub(super) path: &'a MotionPath,
    /// The partners of keypoints, if they are known.
    pub(super) swap: Option<&'a KeypointSwap>,
}

impl MovedSample<'_> {
    /// Moves rotated boxes for libraries without a rule of their own: corners through the one map,
    /// and the rectangle of what becomes of them.
    pub(super) fn move_rotated(&self, objects: &mut SampleObjects) {
        let Some(format) = objects.rotated.format else {
            return;
        };
        let mirrored = self.motion.is_mirrored();
        for values in objects.rotated.values.chunks_exact_mut(format.numbers()) {
            format.move_by(values, mirrored, |at| self.path.map(at));
        }
    }
}
