//! Lists of steps: drawn steps, and those of the largest case.

use super::geometry::PixelRect;
use super::move_unit::{MoveUnit, OperationPart};
use super::pixel_state::PixelState;
use super::size_bounds::{AspectBounds, HeightWidth, SizeBounds};
use super::step::{AugmentStep, BoxFill, Step};

/// A step, and the operation that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpStep {
    pub(crate) op: usize,
    /// The part of the operation that makes the step.
    pub(crate) part: OperationPart,
    pub(crate) step: Step,
}

impl OpStep {
    pub(crate) fn new(op: usize, step: Step) -> Self {
        Self {
            op,
            part: step.part(),
            step,
        }
    }
}

/// Something that belongs to a unit of the planner.
pub(crate) trait InUnit {
    fn unit(&self) -> MoveUnit;
}

impl InUnit for OpStep {
    fn unit(&self) -> MoveUnit {
        MoveUnit {
            op: self.op,
            part: self.part,
        }
    }
}

impl InUnit for LargestStep {
    fn unit(&self) -> MoveUnit {
        self.of.unit()
    }
}

/// A receiver of steps.
pub(crate) trait StepSink {
    fn push(&mut self, step: Step);

    /// Pushes a policy's step, if there is one.
    fn augment(&mut self, step: Option<AugmentStep>) {
        if let Some(step) = step {
            self.push(Step::Augment(step));
        }
    }
}

/// Collects the steps that are drawn for a sample.
pub(crate) struct SampleSteps<'a> {
    op: usize,
    part: Option<OperationPart>,
    steps: &'a mut Vec<OpStep>,
}

impl<'a> SampleSteps<'a> {
    pub(crate) fn new(op: usize, parts: &[OperationPart], steps: &'a mut Vec<OpStep>) -> Self {
        Self {
            op,
            part: only(parts),
            steps,
        }
    }
}

impl StepSink for SampleSteps<'_> {
    fn push(&mut self, step: Step) {
        self.steps.push(of(self.op, self.part, step));
    }
}

/// If an operation has one part, all its steps belong to that part.
fn only(parts: &[OperationPart]) -> Option<OperationPart> {
    match parts {
        [part] => Some(*part),
        _ => None,
    }
}

fn of(op: usize, part: Option<OperationPart>, step: Step) -> OpStep {
    OpStep {
        op,
        part: part.unwrap_or(step.part()),
        step,
    }
}

/// Whether a step of the largest case occurs in every draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepPresence {
    #[default]
    Always,
    /// Depends on the size of the image.
    Maybe,
    /// May be absent. The case without it is computed as well.
    Optional,
}

/// What is known of a step over all draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct StepBounds {
    pub(crate) presence: StepPresence,
    /// The size bounds after it, where the step does not determine them.
    pub(crate) size_after: Option<SizeBounds>,
    /// For a crop of random area: its shapes.
    pub(crate) shape: Option<AspectBounds>,
    /// A pad up to this size may come before the crop.
    pub(crate) padded_before: Option<SizeBounds>,
    /// For a turn: any number of quarters.
    pub(crate) any_quarter: bool,
}

/// A step of the largest case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LargestStep {
    pub(crate) of: OpStep,
    pub(crate) over: StepBounds,
    /// The size bounds after it. None: it keeps the size, wherever the planner moves it.
    pub(crate) size_after: Option<SizeBounds>,
}

/// Collects the steps of the largest case.
pub(crate) struct LargestCase<'a> {
    op: usize,
    part: Option<OperationPart>,
    /// All steps pushed now are optional.
    optional: bool,
    /// Whether optional steps are collected.
    takes_optional: bool,
    reach: SizeBounds,
    steps: &'a mut Vec<LargestStep>,
}

impl<'a> LargestCase<'a> {
    /// `reach`: the size bounds before all steps.
    pub(crate) fn new(
        reach: SizeBounds,
        takes_optional: bool,
        steps: &'a mut Vec<LargestStep>,
    ) -> Self {
        steps.clear();
        Self {
            op: 0,
            part: None,
            optional: false,
            takes_optional,
            reach,
            steps,
        }
    }

    /// Sets the operation of the steps that follow.
    pub(crate) fn begin(&mut self, op: usize, parts: &[OperationPart]) {
        (self.op, self.part) = (op, only(parts));
    }

    /// The size bounds after the last step.
    pub(crate) fn reach(&self) -> SizeBounds {
        self.reach
    }

    /// Adds a step that varies between draws.
    pub(crate) fn add(&mut self, step: Step, mut over: StepBounds) {
        if self.optional {
            over.presence = StepPresence::Optional;
        }
        if over.presence == StepPresence::Optional && !self.takes_optional {
            return;
        }
        let behind = over.size_after.or_else(|| self.reach.after_step(&step));
        self.reach = behind.unwrap_or(self.reach);
        self.steps.push(LargestStep {
            of: of(self.op, self.part, step),
            over,
            size_after: behind,
        });
    }

    /// Pushes an optional erase of all pixels. The lowest numbers may give nothing to erase.
    pub(crate) fn push_erase(&mut self, known: &PixelState, size: HeightWidth) -> HeightWidth {
        let step = Step::Erase {
            rect: PixelRect::whole(size),
            with: BoxFill::Value([0.0; 3]),
            grey: known.is_grey(),
        };
        self.optionally(|most| most.push(step));
        size
    }

    /// Marks all steps that `push` adds as optional.
    pub(crate) fn optionally<T>(&mut self, push: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.optional, true);
        let result = push(self);
        self.optional = outer;
        result
    }
}

impl StepSink for LargestCase<'_> {
    fn push(&mut self, step: Step) {
        self.add(step, StepBounds::default());
    }
}
