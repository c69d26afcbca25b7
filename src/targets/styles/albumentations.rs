//! Objects as albumentations 2.0.8 moves them: operation by operation, filtered after each.
//!
//! - Boxes are shares of the sides, rounded to single precision once at the start. Each operation
//!   converts them for itself. After it, boxes are clipped and filtered.
//! - Keypoints count from the centre of the first pixel: they flip to `W - 1 - x`. A resize
//!   multiplies them all the same, and so moves them by up to half a pixel.
//! - Keypoints never change names. A removed keypoint keeps its place here, with visibility 0.
//!
//! Differences on purpose:
//!
//! - albumentations refuses a sample with a box outside the picture. Here the first filter clips it.
//! - Keypoints belong to an object here, and go with its box.
//! - With `min_visibility` 1 albumentations drops every box, because its quotient stays just below
//!   1. Here a box that lies wholly inside passes.

use super::dropping::KeepList;
use super::moved_sample::MovedSample;
use crate::recipe::Size;
use crate::targets::box_format::{box_in_pixels, normalized_box};
use crate::targets::displacement::DisplacementMap;
use crate::targets::matrix::{corners_of, hull_of};
use crate::targets::objects::{DropCounts, SampleObjects};
use crate::targets::step_motion::{MotionKind, StepMotion};

/// The parameters of albumentations' `BboxParams` and `KeypointParams`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlbumentationsRules {
    /// Boxes are clipped to the picture before the first operation.
    pub clip: bool,
    /// Boxes without area are dropped before the first operation.
    pub filter_invalid: bool,
    /// The least area of what is inside, in square pixels. From 0.
    pub min_area: f64,
    /// The least share of a box that is inside, 0 to 1.
    pub min_visibility: f64,
    /// The least width of what is inside, in pixels. From 0.
    pub min_width: f64,
    /// The least height of what is inside, in pixels. From 0.
    pub min_height: f64,
    /// The most that a box is longer than wide. At least 1.
    pub max_accept_ratio: Option<f64>,
    /// Keypoints outside the picture are removed.
    pub remove_invisible: bool,
}

impl Default for AlbumentationsRules {
    fn default() -> Self {
        Self {
            clip: false,
            filter_invalid: false,
            min_area: 0.0,
            min_visibility: 0.0,
            min_width: 0.0,
            min_height: 0.0,
            max_accept_ratio: None,
            remove_invisible: true,
        }
    }
}

/// albumentations' guard against division by zero.
const EPSILON: f64 = 1e-7;

impl AlbumentationsRules {
    /// Moves boxes and keypoints of a sample through all steps.
    pub(super) fn walk(
        &self,
        moved: &MovedSample<'_>,
        objects: &mut SampleObjects,
        counts: &mut DropCounts,
    ) {
        let motion = moved.motion;
        self.begin(motion.source(), objects, counts);
        let steps = motion.steps();
        // Operations before the first step drew nothing, and were filtered all the same.
        if steps.first().is_some_and(|step| step.op > 0) {
            self.filter(motion.source(), objects, counts);
        }
        for (i, step) in steps.iter().enumerate() {
            let map = moved.path.displacement(i);
            let mut keep = KeepList::new(objects.len());
            for (object, values) in objects.boxes.iter_mut().enumerate() {
                *values = moved_box(step, map, *values);
                if moves_by_matrix(step) && is_outside(*values) {
                    keep.drop(object, &mut counts.hidden);
                }
            }
            keep.apply(objects);
            for point in &mut objects.keypoints.points {
                *point = moved_keypoint(step, map, *point).map(|v| f64::from(v as f32));
            }
            let next = steps.get(i + 1).map(|next| next.op);
            if next != Some(step.op) {
                self.filter(step.after, objects, counts);
            }
        }
        self.filter(motion.output(), objects, counts);
        let format = objects.box_format;
        for values in &mut objects.boxes {
            *values = format.from_xyxy(box_in_pixels(*values, motion.output()));
        }
    }

    /// Converts boxes to shares.
    fn begin(&self, size: Size, objects: &mut SampleObjects, counts: &mut DropCounts) {
        let single = |v: f64| f64::from(v as f32);
        let format = objects.box_format;
        for values in &mut objects.boxes {
            let upright = format.to_xyxy(values.map(single)).map(single);
            *values = normalized_box(upright, size).map(single);
            if self.clip {
                *values = values.map(|v| v.clamp(0.0, 1.0));
            }
        }
        for point in &mut objects.keypoints.points {
            *point = point.map(single);
        }
        if self.filter_invalid {
            let bare = Self {
                remove_invisible: false,
                ..Self::default()
            };
            bare.filter(size, objects, counts);
        }
    }

    /// Clips boxes of shares to a picture of this size, and drops those that the rules refuse.
    fn filter(&self, size: Size, objects: &mut SampleObjects, counts: &mut DropCounts) {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let sides = |[x0, y0, x1, y1]: [f64; 4]| ((x1 - x0) * width, (y1 - y0) * height);
        let mut keep = KeepList::new(objects.len());
        for (object, values) in objects.boxes.iter_mut().enumerate() {
            let (w, h) = sides(*values);
            let area = w * h;
            let [x0, y0, x1, y1] = box_in_pixels(*values, size);
            let inside = [
                x0.clamp(0.0, width),
                y0.clamp(0.0, height),
                x1.clamp(0.0, width),
                y1.clamp(0.0, height),
            ];
            *values = normalized_box(inside, size);
            let (w, h) = sides(*values);
            let left = w * h;
            let ratio = (w / (h + EPSILON)).max(h / (w + EPSILON));
            let is_visible = left >= area || left / (area + EPSILON) >= self.min_visibility;
            let reason = if !values.iter().all(|v| v.is_finite()) {
                &mut counts.lost
            } else if area < EPSILON {
                &mut counts.degenerate
            } else if left < self.min_area - EPSILON
                || w < self.min_width - EPSILON
                || h < self.min_height - EPSILON
            {
                &mut counts.small
            } else if !is_visible {
                &mut counts.hidden
            } else if self.max_accept_ratio.is_some_and(|most| ratio > most) {
                &mut counts.elongated
            } else {
                continue;
            };
            keep.drop(object, reason);
        }
        keep.apply(objects);
        if self.remove_invisible {
            let keypoints = &mut objects.keypoints;
            for ([x, y], seen) in keypoints.points.iter().zip(&mut keypoints.visibility) {
                if !((0.0..width).contains(x) && (0.0..height).contains(y)) {
                    *seen = 0;
                }
            }
        }
    }
}

/// Whether the step moves boxes by a matrix of pixels, and drops those outside at once.
fn moves_by_matrix(step: &StepMotion) -> bool {
    matches!(
        step.kind,
        MotionKind::Rotate { .. } | MotionKind::Affine | MotionKind::Perspective
    )
}

fn is_outside([x0, y0, x1, y1]: [f64; 4]) -> bool {
    x1 <= 0.0 || y1 <= 0.0 || x0 >= 1.0 || y0 >= 1.0
}

/// A box of shares after a step.
fn moved_box(step: &StepMotion, map: Option<&DisplacementMap>, values: [f64; 4]) -> [f64; 4] {
    let [x0, y0, x1, y1] = values;
    let shifted = |values: [f64; 4], dx: f64, dy: f64| {
        let [x0, y0, x1, y1] = box_in_pixels(values, step.before);
        normalized_box([x0 + dx, y0 + dy, x1 + dx, y1 + dy], step.after)
    };
    match step.kind {
        MotionKind::Still | MotionKind::Resize => values,
        MotionKind::Mirror => [1.0 - x1, y0, 1.0 - x0, y1],
        MotionKind::UpsideDown => [x0, 1.0 - y1, x1, 1.0 - y0],
        MotionKind::Turn(1) => [y0, 1.0 - x1, y1, 1.0 - x0],
        MotionKind::Turn(2) => [1.0 - x1, 1.0 - y1, 1.0 - x0, 1.0 - y0],
        MotionKind::Turn(_) => [1.0 - y1, x0, 1.0 - y0, x1],
        MotionKind::Crop { left, top } => {
            let single = values.map(|v| f64::from(v as f32));
            shifted(single, -f64::from(left), -f64::from(top))
        }
        MotionKind::Pad { left, top } => shifted(values, f64::from(left), f64::from(top)),
        MotionKind::Rotate { .. } | MotionKind::Affine | MotionKind::Perspective => {
            let Some(matrix) = step.matrix().filter(|matrix| !matrix.is_identity()) else {
                return values;
            };
            let corners = corners_of(box_in_pixels(values, step.before));
            normalized_box(hull_of(corners.map(|at| matrix.map(at))), step.after)
        }
        MotionKind::Elastic { .. } => {
            let Some(map) = map else {
                return values;
            };
            let corners = corners_of(box_in_pixels(values, step.before));
            normalized_box(hull_of(corners.map(|at| map.output_of(at))), step.after)
        }
    }
}

/// A keypoint after a step. It counts from the centre of the first pixel.
fn moved_keypoint(step: &StepMotion, map: Option<&DisplacementMap>, [x, y]: [f64; 2]) -> [f64; 2] {
    match (step.kind, step.matrix()) {
        (MotionKind::Resize, _) => {
            let ratio = |new: u32, old: u32| f64::from(new) / f64::from(old);
            [
                x * ratio(step.after.width, step.before.width),
                y * ratio(step.after.height, step.before.height),
            ]
        }
        (_, Some(matrix)) => matrix.with_offset(0.5).map([x, y]),
        (_, None) => match map {
            Some(map) => map.output_of([x + 0.5, y + 0.5]).map(|v| v - 0.5),
            None => [x, y],
        },
    }
}
