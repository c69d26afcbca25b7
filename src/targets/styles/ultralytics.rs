//! Objects by the rules of Ultralytics' detection and pose trainers.
//!
//! - All steps are one map. A box becomes the hull of its corners, clipped to the output.
//! - Where the picture is cut or warped, a box is kept if both sides are above `min_side`, if enough
//!   of its area is left, and if it is not too long. The area before is that of the moved box, not of
//!   its hull. Other steps, such as those of a letterbox, drop only boxes without area.
//! - Keypoints flip to `W - x`, and partners are exchanged when the picture is mirrored. One outside
//!   the output moves to its edge, with visibility 0.
//!
//! Its library is under the AGPL. These rules follow its documented behaviour, and have none of its
//! code. Boxes are not made anew from polygons.

use super::detectron2::no_swap;
use super::dropping::KeepList;
use super::moved_sample::MovedSample;
use crate::targets::fault::TargetFault;
use crate::targets::matrix::{corners_of, hull_of};
use crate::targets::objects::{DropCounts, SampleObjects};

/// Which boxes are kept where a picture is cut or warped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UltralyticsRules {
    /// Width and height must be above this, in pixels.
    pub min_side: f64,
    /// The share of the area that is left must be above this, 0 to 1. 0.01 with polygons.
    pub min_area_ratio: f64,
    /// The longer side divided by the shorter must be below this.
    pub max_aspect: f64,
}

impl Default for UltralyticsRules {
    fn default() -> Self {
        Self {
            min_side: 2.0,
            min_area_ratio: 0.1,
            max_aspect: 100.0,
        }
    }
}

impl UltralyticsRules {
    /// The rules for samples with polygons.
    #[must_use]
    pub fn with_polygons() -> Self {
        Self {
            min_area_ratio: 0.01,
            ..Self::default()
        }
    }

    /// Keeps each box with an area.
    const WITH_AREA: Self = Self {
        min_side: 0.0,
        min_area_ratio: 0.0,
        max_aspect: f64::INFINITY,
    };

    pub(super) fn walk(
        &self,
        moved: &MovedSample<'_>,
        objects: &mut SampleObjects,
        counts: &mut DropCounts,
    ) -> Result<(), TargetFault> {
        let (motion, path) = (moved.motion, moved.path);
        let size = motion.output();
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let format = objects.box_format;
        let mut areas = Vec::with_capacity(objects.boxes.len());
        for values in &mut objects.boxes {
            let [x0, y0, x1, y1] = format.to_xyxy(*values);
            let centre = [f64::midpoint(x0, x1), f64::midpoint(y0, y1)];
            areas.push((x1 - x0) * (y1 - y0) * path.area_factor(centre).abs());
            *values = hull_of(corners_of([x0, y0, x1, y1]).map(|at| path.map(at)));
        }
        let limits = match motion.cuts_or_warps() {
            true => *self,
            false => Self::WITH_AREA,
        };
        let mut keep = KeepList::new(objects.len());
        for (object, (values, area)) in objects.boxes.iter_mut().zip(areas).enumerate() {
            if !values.iter().all(|v| v.is_finite()) {
                continue;
            }
            let [x0, y0, x1, y1] = *values;
            let (x0, x1) = (x0.clamp(0.0, width), x1.clamp(0.0, width));
            let (y0, y1) = (y0.clamp(0.0, height), y1.clamp(0.0, height));
            *values = format.from_xyxy([x0, y0, x1, y1]);
            let (w, h) = (x1 - x0, y1 - y0);
            let reason = if w <= limits.min_side || h <= limits.min_side {
                &mut counts.small
            } else if w * h <= limits.min_area_ratio * area {
                &mut counts.hidden
            } else if w.max(h) >= limits.max_aspect * w.min(h) {
                &mut counts.elongated
            } else {
                continue;
            };
            keep.drop(object, reason);
        }
        keep.apply(objects);
        let keypoints = &mut objects.keypoints;
        if keypoints.per_object == 0 {
            return Ok(());
        }
        for (point, seen) in keypoints.points.iter_mut().zip(&mut keypoints.visibility) {
            *point = path.map(*point);
            let [x, y] = *point;
            if !((0.0..=width).contains(&x) && (0.0..=height).contains(&y)) {
                *seen = 0;
            }
            *point = [x.clamp(0.0, width), y.clamp(0.0, height)];
        }
        if motion.is_mirrored() {
            keypoints.swap(moved.swap.ok_or_else(no_swap)?)?;
        }
        Ok(())
    }
}
