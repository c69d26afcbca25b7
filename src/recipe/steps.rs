//! Where operations put their steps: drawn ones, or those of the largest case.

use super::geometry::PixelRect;
use super::move_unit::{MoveUnit, OperationPart};
use super::pixel_state::PixelState;
use super::size_bounds::{AspectBounds, HeightWidth, SizeBounds};
use super::step::{AugmentStep, BoxFill, Step};

/// A step, and the operation that it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpStep {
    pub(crate) op: usize,
    /// Which part of the operation does it.
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

/// What the planner moves with others.
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

/// Takes steps.
pub(crate) trait StepSink {
    fn push(&mut self, step: Step);

    /// A step of a policy, if it has one.
    fn augment(&mut self, step: Option<AugmentStep>) {
        if let Some(step) = step {
            self.push(Step::Augment(step));
        }
    }
}

/// The steps that are drawn for a sample.
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

/// An operation of one part does all its steps as that part, whatever they are.
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

/// Whether a step of the largest case is one of every draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepPresence {
    #[default]
    Always,
    /// It is, or is not: by the picture's size.
    Maybe,
    /// It need not be drawn: the case without it is looked at too.
    Optional,
}

/// What is known of a step over all draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct StepBounds {
    pub(crate) presence: StepPresence,
    /// The sizes behind it, where the step does not say them.
    pub(crate) size_after: Option<SizeBounds>,
    /// Of a crop of random area.
    pub(crate) shape: Option<AspectBounds>,
    /// In front of a crop there may be a pad up to this.
    pub(crate) padded_before: Option<SizeBounds>,
    /// Of a turn: any number of quarters.
    pub(crate) any_quarter: bool,
}

/// A step of the largest case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LargestStep {
    pub(crate) of: OpStep,
    pub(crate) over: StepBounds,
    /// The sizes behind it. None: those in front of it, wherever the planner puts it.
    pub(crate) size_after: Option<SizeBounds>,
}

/// The steps of the largest case.
pub(crate) struct LargestCase<'a> {
    op: usize,
    part: Option<OperationPart>,
    /// All that is pushed need not be drawn.
    optional: bool,
    /// Steps that need not be drawn are taken.
    takes_optional: bool,
    reach: SizeBounds,
    steps: &'a mut Vec<LargestStep>,
}

impl<'a> LargestCase<'a> {
    /// `reach`: of pictures in front of all steps.
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

    /// What follows is of that operation.
    pub(crate) fn begin(&mut self, op: usize, parts: &[OperationPart]) {
        (self.op, self.part) = (op, only(parts));
    }

    /// Sizes behind the last step.
    pub(crate) fn reach(&self) -> SizeBounds {
        self.reach
    }

    /// A step that the draws differ in.
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

    /// All pixels may be erased, or none: the lowest numbers may leave nothing to erase.
    pub(crate) fn push_erase(&mut self, known: &PixelState, size: HeightWidth) -> HeightWidth {
        let step = Step::Erase {
            rect: PixelRect::whole(size),
            with: BoxFill::Value([0.0; 3]),
            grey: known.is_grey(),
        };
        self.optionally(|most| most.push(step));
        size
    }

    /// All that `push` adds need not be drawn.
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
