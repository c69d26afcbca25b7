//! Objects as detectron2's `DatasetMapper` makes them.
//!
//! - Crowds are dropped.
//! - A box becomes the hull of its corners in each step. It is clipped to the output at the end, and
//!   dropped if a side is then not above the threshold.
//! - Keypoints are moved by half a pixel when they are loaded, to continuous coordinates. Then they
//!   flip to `W - x`. Outside the output they become not labelled, with x and y of 0.
//! - With an odd number of flips from left to right, partners are exchanged.

use super::dropping::{KeepList, drop_crowds, drop_lost};
use super::moved_sample::MovedSample;
use crate::targets::fault::TargetFault;
use crate::targets::matrix::{corners_of, hull_of};
use crate::targets::objects::{DropCounts, SampleObjects};

/// The numbers of detectron2's rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detectron2Rules {
    /// A box whose width or height is not above this is empty, in pixels. 1e-5 there.
    pub box_threshold: f64,
    /// Added to keypoints before the first step, in pixels. 0.5 for COCO, where integers are the
    /// centres of pixels.
    pub keypoint_offset: f64,
}

impl Default for Detectron2Rules {
    fn default() -> Self {
        Self {
            box_threshold: 1e-5,
            keypoint_offset: 0.5,
        }
    }
}

impl Detectron2Rules {
    pub(super) fn walk(
        &self,
        moved: &MovedSample<'_>,
        objects: &mut SampleObjects,
        counts: &mut DropCounts,
    ) -> Result<(), TargetFault> {
        drop_crowds(objects, counts);
        let format = objects.box_format;
        for values in &mut objects.boxes {
            *values = format.to_xyxy(*values);
        }
        for (number, step) in moved.motion.steps().iter().enumerate() {
            let map = moved.path.displacement(number);
            for values in &mut objects.boxes {
                let corners = corners_of(*values).map(|at| match (step.matrix(), map) {
                    (Some(matrix), _) => matrix.map(at),
                    (None, Some(map)) => map.output_of(at),
                    (None, None) => at,
                });
                *values = hull_of(corners);
            }
        }
        drop_lost(objects, counts);
        let size = moved.motion.output();
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let mut keep = KeepList::new(objects.len());
        for (object, values) in objects.boxes.iter_mut().enumerate() {
            let [x0, y0, x1, y1] = *values;
            let (x0, x1) = (x0.clamp(0.0, width), x1.clamp(0.0, width));
            let (y0, y1) = (y0.clamp(0.0, height), y1.clamp(0.0, height));
            *values = format.from_xyxy([x0, y0, x1, y1]);
            let is_above = |side: f64| side > self.box_threshold;
            if !is_above(x1 - x0) || !is_above(y1 - y0) {
                keep.drop(object, &mut counts.degenerate);
            }
        }
        keep.apply(objects);
        self.move_keypoints(moved, objects)
    }

    fn move_keypoints(
        &self,
        moved: &MovedSample<'_>,
        objects: &mut SampleObjects,
    ) -> Result<(), TargetFault> {
        let (motion, path) = (moved.motion, moved.path);
        let keypoints = &mut objects.keypoints;
        if keypoints.per_object == 0 {
            return Ok(());
        }
        let size = motion.output();
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        for (point, seen) in keypoints.points.iter_mut().zip(&mut keypoints.visibility) {
            *point = path.map(point.map(|v| v + self.keypoint_offset));
            let [x, y] = *point;
            if !((0.0..=width).contains(&x) && (0.0..=height).contains(&y)) {
                *seen = 0;
            }
        }
        if motion.mirrors() % 2 == 1 {
            let Some(table) = moved.swap else {
                return Err(no_swap());
            };
            keypoints.swap(table)?;
        }
        for (point, seen) in keypoints.points.iter_mut().zip(&keypoints.visibility) {
            if *seen == 0 {
                *point = [0.0; 2];
            }
        }
        Ok(())
    }
}

/// A picture with keypoints was flipped, and their partners are unknown.
pub(super) fn no_swap() -> TargetFault {
    let reason = "is missing, and the picture is flipped: give the partner of each keypoint, or \
                  remove the flip";
    TargetFault::new("swap", reason)
}
