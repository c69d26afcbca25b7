//! What all steps of a sample do to coordinates.

use super::displacement::DisplacementMap;
use super::matrix::PointMatrix;
use super::step_motion::{MotionKind, StepMotion};
use crate::recipe::{AugmentStep, PixelRect, Size, Step};

/// The motions of a sample's steps, in the written order of its recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleMotion {
    source: Size,
    steps: Vec<StepMotion>,
    /// Whether the steps now make images that are mixed into a sum.
    mixes: bool,
}

impl SampleMotion {
    /// No steps yet. `source`: the size of the upright picture before the first step.
    #[must_use]
    pub fn new(source: Size) -> Self {
        Self {
            source,
            steps: Vec::new(),
            mixes: false,
        }
    }

    /// The motions of these steps, each with the number of its operation.
    #[must_use]
    pub fn of<'a>(source: Size, steps: impl IntoIterator<Item = (usize, &'a Step)>) -> Self {
        let mut motion = Self::new(source);
        for (op, step) in steps {
            motion.push(op, step);
        }
        motion
    }

    /// Adds a step of operation number `op`. The first operation that moves objects has number 0.
    /// Operations that drew no step leave a gap.
    ///
    /// AugMix moves copies of the picture and mixes them with it. Objects stay where the unmoved
    /// picture has them, so motions between `keep` and the mix are left out.
    pub fn push(&mut self, op: usize, step: &Step) {
        match step {
            Step::Augment(AugmentStep::Keep) => self.mixes = true,
            Step::Augment(
                AugmentStep::Total | AugmentStep::Blend { .. } | AugmentStep::BlendTotal { .. },
            ) => self.mixes = false,
            _ => {}
        }
        let still = Step::Augment(AugmentStep::Keep);
        let step = if self.mixes { &still } else { step };
        self.steps.push(StepMotion::of(op, step, self.output()));
    }

    /// The size before the first step.
    #[must_use]
    pub fn source(&self) -> Size {
        self.source
    }

    /// The size after the last step.
    #[must_use]
    pub fn output(&self) -> Size {
        self.steps.last().map_or(self.source, |step| step.after)
    }

    #[must_use]
    pub fn steps(&self) -> &[StepMotion] {
        &self.steps
    }

    /// The motion of the first `steps` steps.
    #[must_use]
    pub fn first(&self, steps: usize) -> Self {
        Self {
            steps: self.steps.iter().take(steps).copied().collect(),
            ..Self::new(self.source)
        }
    }

    /// What the step with this number keeps of the picture before it. None unless it is a crop.
    #[must_use]
    pub fn crop_rect(&self, step: usize) -> Option<PixelRect> {
        let step = self.steps.get(step)?;
        let MotionKind::Crop { left, top } = step.kind else {
            return None;
        };
        let Size { height, width } = step.after;
        Some(PixelRect {
            left,
            top,
            width,
            height,
        })
    }

    /// The part of the output that is no border: what pads add. A border before any step that is
    /// not a pad, a crop or a turn counts as picture.
    #[must_use]
    pub fn content(&self) -> PixelRect {
        let Size { height, width } = self.source;
        let mut content = PixelRect::whole((height, width));
        for step in &self.steps {
            let Size { height, width } = step.after;
            let PixelRect {
                left: x,
                top: y,
                width: w,
                height: h,
            } = content;
            content = match step.kind {
                MotionKind::Still => continue,
                MotionKind::Pad { left, top } => PixelRect {
                    left: x + left,
                    top: y + top,
                    ..content
                },
                MotionKind::Crop { left, top } => {
                    let cut = |from: u32, side: u32, first: u32, most: u32| {
                        let start = from.saturating_sub(first).min(most);
                        let end = (from + side).saturating_sub(first).min(most);
                        (start, end - start)
                    };
                    let (left, width) = cut(x, w, left, width);
                    let (top, height) = cut(y, h, top, height);
                    PixelRect {
                        left,
                        top,
                        width,
                        height,
                    }
                }
                MotionKind::Mirror => PixelRect {
                    left: width - x - w,
                    ..content
                },
                MotionKind::UpsideDown => PixelRect {
                    top: height - y - h,
                    ..content
                },
                MotionKind::Turn(quarters) => {
                    let (left, top) = match quarters {
                        1 => (y, height - x - w),
                        2 => (width - x - w, height - y - h),
                        _ => (width - y - h, x),
                    };
                    let (width, height) = match quarters {
                        2 => (w, h),
                        _ => (h, w),
                    };
                    PixelRect {
                        left,
                        top,
                        width,
                        height,
                    }
                }
                MotionKind::Resize
                | MotionKind::Rotate { .. }
                | MotionKind::Affine
                | MotionKind::Perspective
                | MotionKind::Elastic { .. } => PixelRect::whole((height, width)),
            };
        }
        content
    }

    /// The one matrix of all steps, from source to output. None if a step is a displacement.
    #[must_use]
    pub fn matrix(&self) -> Option<PointMatrix> {
        let mut all = PointMatrix::IDENTITY;
        for step in &self.steps {
            all = all.then(step.matrix()?);
        }
        Some(all)
    }

    /// The map of points: one matrix between displacements. Displacements are computed here.
    #[must_use]
    pub fn path(&self) -> MotionPath {
        let mut path = MotionPath {
            stages: Vec::new(),
            last: PointMatrix::IDENTITY,
        };
        for (number, step) in self.steps.iter().enumerate() {
            if let Some(matrix) = step.matrix() {
                path.last = path.last.then(matrix);
            } else if let Some(by) = step.displacement() {
                let before = std::mem::replace(&mut path.last, PointMatrix::IDENTITY);
                path.stages.push(DisplacedStage { before, number, by });
            }
        }
        path
    }

    /// The number of flips from left to right.
    #[must_use]
    pub fn mirrors(&self) -> usize {
        let is_mirror = |step: &&StepMotion| step.kind == MotionKind::Mirror;
        self.steps.iter().filter(is_mirror).count()
    }

    /// Whether a step may move a part of the picture out of the frame, or change its shape other than
    /// by a resize.
    #[must_use]
    pub fn cuts_or_warps(&self) -> bool {
        let is_whole = |step: &StepMotion| match step.kind {
            MotionKind::Still
            | MotionKind::Pad { .. }
            | MotionKind::Resize
            | MotionKind::Mirror
            | MotionKind::UpsideDown
            | MotionKind::Turn(_) => true,
            MotionKind::Crop { .. }
            | MotionKind::Rotate { .. }
            | MotionKind::Affine
            | MotionKind::Perspective
            | MotionKind::Elastic { .. } => false,
        };
        !self.steps.iter().all(is_whole)
    }

    /// Whether left and right of an object have changed places: an odd number of flips, of either
    /// kind.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        let flips = self.steps.iter().filter(|step| {
            let matrix = step.matrix();
            matrix.is_some_and(|matrix| matrix.determinant() < 0.0)
        });
        flips.count() % 2 == 1
    }
}

/// The map of points from source to output. It holds the displacements of all steps that have one.
#[derive(Debug, Clone, PartialEq)]
pub struct MotionPath {
    stages: Vec<DisplacedStage>,
    last: PointMatrix,
}

/// A displacement, and the matrix of the steps before it.
#[derive(Debug, Clone, PartialEq)]
struct DisplacedStage {
    before: PointMatrix,
    /// The number of the step.
    number: usize,
    by: DisplacementMap,
}

impl MotionPath {
    /// The place of a source point in the output. NaN if the output cannot show it.
    #[must_use]
    pub fn map(&self, point: [f64; 2]) -> [f64; 2] {
        let mut moved = point;
        for stage in &self.stages {
            moved = stage.by.output_of(stage.before.map(moved));
        }
        self.last.map(moved)
    }

    /// The factor by which small areas at a source point grow: negative if the picture is mirrored.
    /// Displacements count as 1.
    #[must_use]
    pub fn area_factor(&self, point: [f64; 2]) -> f64 {
        let (mut at, mut factor) = (point, 1.0);
        for stage in &self.stages {
            factor *= stage.before.area_factor(at);
            at = stage.by.output_of(stage.before.map(at));
        }
        factor * self.last.area_factor(at)
    }

    /// The displacement of the step with this number. None for a matrix.
    #[must_use]
    pub fn displacement(&self, number: usize) -> Option<&DisplacementMap> {
        let mut stages = self.stages.iter();
        let stage = stages.find(|stage| stage.number == number);
        stage.map(|stage| &stage.by)
    }
}
