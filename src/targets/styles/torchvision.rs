//! Objects as torchvision 0.29.2 moves them: step by step, rounded after each.
//!
//! - Boxes flip to `W - x`. Keypoints flip to `W - 1 - x`, and never change names.
//! - Integer boxes are truncated after each step: 31 halved is 15.
//! - Crops and pads clamp boxes to the picture. A resize does not.
//! - Rotations, affine maps and perspectives take the hull of four corners, and clamp it.
//! - A rotation that enlarges the picture measures boxes from the least corner of its frame, and
//!   pixels from its centre, as there. One difference, on purpose: torchvision often gives the boxes
//!   a frame that is a pixel larger than its picture, and then refuses further operations. Here the
//!   frame is the picture.
//! - Objects stay, whatever their size, until [`sanitize_boxes`] is asked.

use super::moved_sample::MovedSample;
use crate::recipe::Size;
use crate::targets::box_format::BoxFormat;
use crate::targets::displacement::DisplacementMap;
use crate::targets::matrix::{PointMatrix, corners_of, hull_of};
use crate::targets::objects::SampleObjects;
use crate::targets::rotated_box::{
    BoxCorners, ClampingMode, RotatedFormat, clamp_corners, cos_sin, rectangle_of,
};
use crate::targets::step_motion::{MotionKind, StepMotion};

/// How torchvision stores and clamps boxes and keypoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TorchvisionRules {
    /// Boxes and keypoints are integers, as a JSON file of integers makes them.
    pub integers: bool,
    pub clamping: ClampingMode,
}

impl TorchvisionRules {
    /// Moves the boxes, rotated boxes and keypoints of a sample through all steps.
    pub(super) fn walk(&self, moved: &MovedSample<'_>, objects: &mut SampleObjects) {
        for (number, step) in moved.motion.steps().iter().enumerate() {
            let walk = StepWalk {
                rules: *self,
                step,
                map: StepMap::of(step, moved.path.displacement(number)),
            };
            for values in &mut objects.boxes {
                *values = walk.boxes(objects.box_format, *values);
            }
            if let Some(format) = objects.rotated.format {
                for values in objects.rotated.values.chunks_exact_mut(format.numbers()) {
                    walk.rotated(format, values);
                }
            }
            for point in &mut objects.keypoints.points {
                *point = walk.keypoint(*point);
            }
        }
    }

    /// A number as the tensor stores it.
    fn store(&self, v: f64) -> f64 {
        match self.integers {
            true => v.trunc(),
            false => f64::from(v as f32),
        }
    }

    /// Left, top, right and bottom, by a conversion of the stored numbers.
    fn to_xyxy(self, format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
        to_xyxy(format, values).map(|v| self.store(v))
    }

    /// The inverse conversion of stored numbers. torchvision divides integers downwards.
    fn stored_in(self, format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
        match self.integers {
            true => format.from_xyxy(values).map(f64::floor),
            false => from_xyxy(format, values),
        }
    }
}

/// Left, top, right and bottom, in single precision: torchvision adds the width to the left.
fn to_xyxy(format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
    let [a, b, c, d] = values.map(|v| v as f32);
    let upright = match format {
        BoxFormat::Xyxy => [a, b, c, d],
        BoxFormat::Xywh => [a, b, c + a, d + b],
        BoxFormat::Cxcywh => {
            let (left, top) = (a - c / 2.0, b - d / 2.0);
            [left, top, c + left, d + top]
        }
    };
    upright.map(f64::from)
}

/// A box of left, top, right and bottom in a format, in single precision.
fn from_xyxy(format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
    let [x0, y0, x1, y1] = values.map(|v| v as f32);
    let (w, h) = (x1 - x0, y1 - y0);
    let values = match format {
        BoxFormat::Xyxy => [x0, y0, x1, y1],
        BoxFormat::Xywh => [x0, y0, w, h],
        BoxFormat::Cxcywh => [(x0 * 2.0 + w) / 2.0, (y0 * 2.0 + h) / 2.0, w, h],
    };
    values.map(f64::from)
}

/// The part of a step's map that all its points share.
enum StepMap<'a> {
    None,
    Matrix(SingleMatrix),
    Displacement(&'a DisplacementMap),
}

/// A matrix from source to output in single precision, with torchvision's sums. Integer boxes are
/// truncated after it, so the last bit counts.
struct SingleMatrix {
    rows: [[f32; 3]; 3],
    is_perspective: bool,
    /// The least corner of the moved frame: a rotation with a larger picture subtracts it.
    corner: [f32; 2],
}

impl SingleMatrix {
    fn new(matrix: &PointMatrix, is_perspective: bool) -> Self {
        // torchvision divides by the last element.
        let last = match is_perspective {
            true => matrix.0[2][2],
            false => 1.0,
        };
        Self {
            rows: matrix.0.map(|row| row.map(|v| (v / last) as f32)),
            is_perspective,
            corner: [0.0; 2],
        }
    }

    /// The point's place, without the corner of the frame.
    fn map(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let [across, down, depth] = self.rows.map(|[a, b, c]| (x * a + y * b) + c);
        match self.is_perspective {
            true => [across / depth, down / depth],
            false => [across, down],
        }
    }
}

impl<'a> StepMap<'a> {
    fn of(step: &StepMotion, displacement: Option<&'a DisplacementMap>) -> Self {
        let (matrix, kind) = match (step.matrix(), step.kind) {
            (None, _) => return displacement.map_or(Self::None, Self::Displacement),
            (Some(matrix), kind) => (matrix, kind),
        };
        let grows = step.after != step.before;
        match kind {
            MotionKind::Rotate { .. } if grows => {
                // torchvision rotates about the old centre, and then subtracts the least corner.
                let middle =
                    |size: Size| (f64::from(size.width) / 2.0, f64::from(size.height) / 2.0);
                let (old, new) = (middle(step.before), middle(step.after));
                let about = matrix.then(&PointMatrix::shift(old.0 - new.0, old.1 - new.1));
                let mut single = SingleMatrix::new(&about, false);
                let corners = corners_of(frame_of(step.before));
                let moved = corners.map(|at| single.map(at.map(|v| v as f32)));
                let least = |axis: usize| {
                    let values = moved.iter().map(|at| at[axis]);
                    values.fold(f32::INFINITY, f32::min)
                };
                single.corner = [least(0), least(1)];
                Self::Matrix(single)
            }
            MotionKind::Rotate { .. } | MotionKind::Affine | MotionKind::Turn(_) => {
                Self::Matrix(SingleMatrix::new(matrix, false))
            }
            MotionKind::Perspective => Self::Matrix(SingleMatrix::new(matrix, true)),
            _ => Self::None,
        }
    }
}

/// The box of a whole picture.
fn frame_of(size: Size) -> [f64; 4] {
    [0.0, 0.0, f64::from(size.width), f64::from(size.height)]
}

fn clamped(values: [f64; 4], size: Size, mode: ClampingMode) -> [f64; 4] {
    if mode == ClampingMode::Off {
        return values;
    }
    let [_, _, width, height] = frame_of(size);
    let [x0, y0, x1, y1] = values;
    [
        x0.clamp(0.0, width),
        y0.clamp(0.0, height),
        x1.clamp(0.0, width),
        y1.clamp(0.0, height),
    ]
}

/// One step on one object.
struct StepWalk<'a> {
    rules: TorchvisionRules,
    step: &'a StepMotion,
    map: StepMap<'a>,
}

impl StepWalk<'_> {
    /// The new width and height, divided by the old ones.
    fn ratios(&self) -> [f32; 2] {
        let (before, after) = (self.step.before, self.step.after);
        let ratio = |new: u32, old: u32| (f64::from(new) / f64::from(old)) as f32;
        [
            ratio(after.width, before.width),
            ratio(after.height, before.height),
        ]
    }

    /// What a crop or pad adds.
    fn shift(&self) -> Option<[f64; 2]> {
        match self.step.kind {
            MotionKind::Crop { left, top } => Some([-f64::from(left), -f64::from(top)]),
            MotionKind::Pad { left, top } => Some([f64::from(left), f64::from(top)]),
            _ => None,
        }
    }

    /// Clamps a box whose numbers are stored, in its format.
    fn clamp(&self, format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
        // In floats, also for integers.
        let upright = to_xyxy(format, values);
        let inside = clamped(upright, self.step.after, self.rules.clamping);
        from_xyxy(format, inside).map(|v| self.rules.store(v))
    }

    fn boxes(&self, format: BoxFormat, values: [f64; 4]) -> [f64; 4] {
        let rules = self.rules;
        let (width, height) = (
            f64::from(self.step.before.width),
            f64::from(self.step.before.height),
        );
        let [a, b, c, d] = values;
        match self.step.kind {
            MotionKind::Still => values,
            MotionKind::Mirror => match format {
                BoxFormat::Xyxy => [width - c, b, width - a, d],
                BoxFormat::Xywh => [width - rules.store(a + c), b, c, d],
                BoxFormat::Cxcywh => [width - a, b, c, d],
            }
            .map(|v| rules.store(v)),
            MotionKind::UpsideDown => match format {
                BoxFormat::Xyxy => [a, height - d, c, height - b],
                BoxFormat::Xywh => [a, height - rules.store(b + d), c, d],
                BoxFormat::Cxcywh => [a, height - b, c, d],
            }
            .map(|v| rules.store(v)),
            MotionKind::Resize if self.step.before == self.step.after => values,
            MotionKind::Resize => {
                let [across, down] = self.ratios();
                let scaled = |v: f64, by: f32| rules.store(f64::from(v as f32 * by));
                [
                    scaled(a, across),
                    scaled(b, down),
                    scaled(c, across),
                    scaled(d, down),
                ]
            }
            MotionKind::Crop { .. } | MotionKind::Pad { .. } => {
                let [dx, dy] = self.shift().unwrap_or_default();
                let moved = match format {
                    BoxFormat::Xyxy => [a + dx, b + dy, c + dx, d + dy],
                    BoxFormat::Xywh | BoxFormat::Cxcywh => [a + dx, b + dy, c, d],
                };
                self.clamp(format, moved.map(|v| rules.store(v)))
            }
            MotionKind::Perspective => {
                // Integers are converted before they become floats.
                let upright = rules.to_xyxy(format, values);
                self.warped(format, upright)
            }
            MotionKind::Turn(_) | MotionKind::Rotate { .. } | MotionKind::Affine => {
                self.warped(format, to_xyxy(format, values))
            }
            MotionKind::Elastic { .. } => {
                let upright = rules.to_xyxy(format, values);
                let corners = corners_of(upright).map(|at| self.displaced(at.map(f64::ceil)));
                let hull = hull_of(corners).map(|v| rules.store(v));
                let inside = clamped(hull, self.step.after, rules.clamping);
                rules.stored_in(format, inside.map(|v| rules.store(v)))
            }
        }
    }

    /// The clamped hull of the corners of a box of left, top, right and bottom, in its format.
    fn warped(&self, format: BoxFormat, upright: [f64; 4]) -> [f64; 4] {
        let hull = hull_of(corners_of(upright).map(|at| self.mapped(at)));
        let inside = clamped(hull, self.step.after, self.rules.clamping);
        from_xyxy(format, inside).map(|v| self.rules.store(v))
    }

    fn mapped(&self, point: [f64; 2]) -> [f64; 2] {
        match &self.map {
            StepMap::Matrix(matrix) => {
                let [left, top] = matrix.corner;
                let [x, y] = matrix.map(point.map(|v| v as f32));
                [x - left, y - top].map(f64::from)
            }
            StepMap::None | StepMap::Displacement(_) => point,
        }
    }

    /// torchvision looks the displacement up where the point is, not where it goes to. Its result
    /// counts from the centre of the first pixel.
    fn displaced(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let StepMap::Displacement(map) = &self.map else {
            return [x, y];
        };
        let inside = |at: f64, n: u32| at.trunc().clamp(0.0, f64::from(n.max(1) - 1));
        let (before, [x, y]) = (self.step.before, [x, y]);
        let (x, y) = (inside(x, before.width), inside(y, before.height));
        let [right, down] = map.at_pixel(x as i64, y as i64);
        [x - right, y - down]
    }

    fn keypoint(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let before = self.step.before;
        let last = |n: u32| f64::from(n) - 1.0;
        match self.step.kind {
            MotionKind::Still => [x, y],
            MotionKind::Mirror => [last(before.width) - x, y],
            MotionKind::UpsideDown => [x, last(before.height) - y],
            MotionKind::Resize if before == self.step.after => [x, y],
            MotionKind::Resize => {
                let [across, down] = self.ratios();
                [f64::from(x as f32 * across), f64::from(y as f32 * down)]
            }
            MotionKind::Crop { .. } | MotionKind::Pad { .. } => {
                let [dx, dy] = self.shift().unwrap_or_default();
                [x + dx, y + dy]
            }
            MotionKind::Turn(_)
            | MotionKind::Rotate { .. }
            | MotionKind::Affine
            | MotionKind::Perspective => self.mapped([x, y]),
            MotionKind::Elastic { .. } => self.displaced([x, y]),
        }
        .map(|v| self.rules.store(v))
    }

    fn rotated(&self, format: RotatedFormat, values: &mut [f64]) {
        match self.step.kind {
            MotionKind::Still => return,
            MotionKind::Resize if self.step.before == self.step.after => return,
            MotionKind::Mirror => self.flip_rotated(format, values, 0),
            MotionKind::UpsideDown => self.flip_rotated(format, values, 1),
            MotionKind::Crop { .. } | MotionKind::Pad { .. } => {
                let shift = self.shift().unwrap_or_default();
                let points = match format {
                    RotatedFormat::Xyxyxyxy => 4,
                    RotatedFormat::Xywhr | RotatedFormat::Cxcywhr => 1,
                };
                for point in values.as_chunks_mut::<2>().0.iter_mut().take(points) {
                    *point = [point[0] + shift[0], point[1] + shift[1]];
                }
                let crops = matches!(self.step.kind, MotionKind::Crop { .. });
                if let Some(mut corners) = format.corners(values) {
                    if crops && format == RotatedFormat::Xyxyxyxy {
                        corners = rectangle_of(corners);
                    }
                    format.write(self.clamp_corners(corners), values);
                }
            }
            MotionKind::Elastic { .. } => {
                // Only the centre moves.
                let mut numbers = [0.0; 5];
                if let Some(corners) = format.corners(values) {
                    RotatedFormat::Cxcywhr.write(corners, &mut numbers);
                    let [x, y, ..] = numbers;
                    let centre = self.displaced([x.ceil(), y.ceil()]);
                    numbers[..2].copy_from_slice(&centre);
                    if let Some(corners) = RotatedFormat::Cxcywhr.corners(&numbers) {
                        format.write(self.clamp_corners(corners), values);
                    }
                }
            }
            MotionKind::Resize
            | MotionKind::Turn(_)
            | MotionKind::Rotate { .. }
            | MotionKind::Affine
            | MotionKind::Perspective => {
                let Some(corners) = format.corners(values) else {
                    return;
                };
                let [across, down] = self.ratios();
                let moved = |[x, y]: [f32; 2]| match &self.map {
                    StepMap::Matrix(matrix) => matrix.map([x, y]),
                    StepMap::None | StepMap::Displacement(_) => [x * across, y * down],
                };
                let mut moved_corners = corners;
                for corner in moved_corners.as_chunks_mut::<2>().0 {
                    *corner = moved(*corner);
                }
                let mut rectangle = rectangle_of(moved_corners);
                if let StepMap::Matrix(matrix) = &self.map {
                    let [left, top] = matrix.corner;
                    for corner in rectangle.as_chunks_mut::<2>().0 {
                        *corner = [corner[0] - left, corner[1] - top];
                    }
                }
                format.write(self.clamp_corners(rectangle), values);
            }
        }
        for value in values {
            *value = self.rules.store(*value);
        }
    }

    fn clamp_corners(&self, corners: BoxCorners) -> BoxCorners {
        clamp_corners(corners, self.step.after, self.rules.clamping)
    }

    /// A flip of the axis: 0 left to right, 1 top to bottom.
    fn flip_rotated(&self, format: RotatedFormat, values: &mut [f64], axis: usize) {
        let before = self.step.before;
        let side = f64::from([before.width, before.height][axis]);
        if format == RotatedFormat::Xyxyxyxy {
            for point in values.as_chunks_mut::<2>().0 {
                point[axis] = side - point[axis];
            }
            // Clockwise again.
            values.swap(0, 2);
            values.swap(1, 3);
            values.swap(4, 6);
            values.swap(5, 7);
            return;
        }
        if format == RotatedFormat::Xywhr {
            // The other end of the first side becomes the first corner.
            let (cos, sin) = cos_sin(values[4] as f32);
            values[0] += values[2] * f64::from(cos);
            values[1] -= values[2] * f64::from(sin);
        }
        values[axis] = side - values[axis];
        values[4] = [0.0, 180.0][axis] - values[4];
    }
}

/// torchvision's `ClampBoundingBoxes`: boxes and rotated boxes are clamped to a picture of this
/// size.
pub fn clamp_boxes(rules: &TorchvisionRules, objects: &mut SampleObjects, size: Size) {
    let format = objects.box_format;
    if rules.clamping != ClampingMode::Off {
        for values in &mut objects.boxes {
            let inside = clamped(to_xyxy(format, *values), size, rules.clamping);
            *values = from_xyxy(format, inside).map(|v| rules.store(v));
        }
    }
    if let Some(format) = objects.rotated.format {
        for values in objects.rotated.values.chunks_exact_mut(format.numbers()) {
            if let Some(corners) = format.corners(values) {
                format.write(clamp_corners(corners, size, rules.clamping), values);
            }
        }
    }
}

/// torchvision's `ClampKeyPoints`: x to 0 to width - 1, y to 0 to height - 1.
pub fn clamp_keypoints(rules: &TorchvisionRules, objects: &mut SampleObjects, size: Size) {
    let last = |n: u32| f64::from(n.max(1) - 1);
    for [x, y] in &mut objects.keypoints.points {
        *x = rules.store(x.clamp(0.0, last(size.width)));
        *y = rules.store(y.clamp(0.0, last(size.height)));
    }
}

/// torchvision's `SanitizeBoundingBoxes`: which objects it keeps in a picture of this size.
///
/// A box must have sides of at least `min_size`, an area of at least `min_area`, and all its
/// coordinates from 0 to width or height. A box at -0.01 is dropped. Defaults there are 1 and 1.
#[must_use]
pub fn sanitize_boxes(
    rules: &TorchvisionRules,
    objects: &SampleObjects,
    size: Size,
    min_size: f64,
    min_area: f64,
) -> Vec<bool> {
    let [_, _, width, height] = frame_of(size);
    let is_inside = |[x, y]: [f64; 2]| (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
    let is_large = |w: f64, h: f64| w >= min_size && h >= min_size && w * h >= min_area;
    let mut keep = vec![true; objects.len()];
    for (keep, values) in keep.iter_mut().zip(&objects.boxes) {
        let [x0, y0, x1, y1] = rules.to_xyxy(objects.box_format, *values);
        let (w, h) = (rules.store(x1 - x0), rules.store(y1 - y0));
        *keep = is_large(w, h) && is_inside([x0, y0]) && is_inside([x1, y1]);
    }
    if let Some(format) = objects.rotated.format {
        let boxes = objects.rotated.values.chunks_exact(format.numbers());
        for (keep, values) in keep.iter_mut().zip(boxes) {
            let Some(corners) = format.corners(values) else {
                continue;
            };
            let [x1, y1, x2, y2, x3, y3, x4, _] = corners;
            let length = |x: f32, y: f32| f64::from((x * x + y * y).sqrt());
            // torchvision's second length takes y of the second and third corner, and then x of the
            // third and fourth.
            let (w, h) = (length(x1 - x2, y1 - y2), length(y2 - y3, x3 - x4));
            let points = corners.as_chunks::<2>().0.iter();
            let mut points = points.map(|point| point.map(f64::from));
            *keep = *keep && is_large(w, h) && points.all(is_inside);
        }
    }
    keep
}

/// torchvision's `SanitizeKeyPoints`: which objects it keeps in a picture of this size. All
/// keypoints of an object must have x from 0 to below width, and y from 0 to below height.
#[must_use]
pub fn sanitize_keypoints(objects: &SampleObjects, size: Size) -> Vec<bool> {
    let [_, _, width, height] = frame_of(size);
    let count = objects.keypoints.per_object;
    if count == 0 {
        return vec![true; objects.len()];
    }
    let groups = objects.keypoints.points.chunks_exact(count);
    groups
        .map(|points| {
            points
                .iter()
                .all(|[x, y]| (0.0..width).contains(x) && (0.0..height).contains(y))
        })
        .collect()
}
