//! Objects as the processors of Hugging Face's DETR family make them (transformers 5.23).
//!
//! - Crowds are dropped. Boxes are clipped to the source, and those without width or height are
//!   dropped. Nothing is dropped after that.
//! - A resize multiplies boxes by the ratio of the sides, and areas by both ratios.
//! - The model gets centre, width and height as shares of the sides: see
//!   [`normalized_box`](crate::targets::normalized_box).
//!
//! One difference, on purpose: transformers leaves keypoints where they were. Here they move.

use super::dropping::{KeepList, drop_crowds};
use super::moved_sample::MovedSample;
use crate::targets::matrix::{corners_of, hull_of};
use crate::targets::objects::{DropCounts, SampleObjects};

pub(super) fn walk(moved: &MovedSample<'_>, objects: &mut SampleObjects, counts: &mut DropCounts) {
    let (motion, path) = (moved.motion, moved.path);
    let single = |v: f64| f64::from(v as f32);
    drop_crowds(objects, counts);
    let source = motion.source();
    let (width, height) = (f64::from(source.width), f64::from(source.height));
    let format = objects.box_format;
    let mut keep = KeepList::new(objects.len());
    for (object, values) in objects.boxes.iter_mut().enumerate() {
        let upright = format.to_xyxy(values.map(single)).map(single);
        let [x0, y0, x1, y1] = upright;
        *values = [
            x0.clamp(0.0, width),
            y0.clamp(0.0, height),
            x1.clamp(0.0, width),
            y1.clamp(0.0, height),
        ];
        let [x0, y0, x1, y1] = *values;
        if x1 <= x0 || y1 <= y0 {
            keep.drop(object, &mut counts.degenerate);
        }
    }
    keep.apply(objects);
    for (object, values) in objects.boxes.iter_mut().enumerate() {
        let [x0, y0, x1, y1] = *values;
        let centre = [f64::midpoint(x0, x1), f64::midpoint(y0, y1)];
        let hull = hull_of(corners_of(*values).map(|at| path.map(at)));
        *values = format.from_xyxy(hull).map(single);
        if let Some(area) = objects.area.get_mut(object) {
            *area *= path.area_factor(centre).abs();
        }
    }
    for point in &mut objects.keypoints.points {
        *point = path.map(*point);
    }
}
