//! Where operations put their steps: drawn ones, or those of the largest case.

use super::geometry::Rect;
use super::known::Known;
use super::reach::{Reach, Shape, Sides};
use super::step::{Augment, Erased, Step};
use super::unit::{Part, Unit};

/// A step, and the operation that it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpStep {
    pub(crate) op: usize,
    /// Which part of the operation does it.
    pub(crate) part: Part,
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
    fn unit(&self) -> Unit;
}

impl InUnit for OpStep {
    fn unit(&self) -> Unit {
        Unit {
            op: self.op,
            part: self.part,
        }
    }
}

impl InUnit for LargestStep {
    fn unit(&self) -> Unit {
        self.of.unit()
    }
}

/// Takes steps.
pub(crate) trait Sink {
    fn push(&mut self, step: Step);

    /// A step of a policy, if it has one.
    fn augment(&mut self, step: Option<Augment>) {
        if let Some(step) = step {
            self.push(Step::Augment(step));
        }
    }
}

/// The steps that are drawn for a sample.
pub(crate) struct Drawing<'a> {
    op: usize,
    part: Option<Part>,
    steps: &'a mut Vec<OpStep>,
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(op: usize, parts: &[Part], steps: &'a mut Vec<OpStep>) -> Self {
        Self {
            op,
            part: only(parts),
            steps,
        }
    }
}

impl Sink for Drawing<'_> {
    fn push(&mut self, step: Step) {
        self.steps.push(of(self.op, self.part, step));
    }
}

/// An operation of one part does all its steps as that part, whatever they are.
fn only(parts: &[Part]) -> Option<Part> {
    match parts {
        [part] => Some(*part),
        _ => None,
    }
}

fn of(op: usize, part: Option<Part>, step: Step) -> OpStep {
    OpStep {
        op,
        part: part.unwrap_or(step.part()),
        step,
    }
}

/// Whether a step of the largest case is one of every draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Presence {
    #[default]
    Always,
    /// It is, or is not: by the picture's size.
    Maybe,
    /// It need not be drawn: the case without it is looked at too.
    Optional,
}

/// What is known of a step over all draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Over {
    pub(crate) presence: Presence,
    /// The sizes behind it, where the step does not say them.
    pub(crate) behind: Option<Reach>,
    /// Of a crop of random area.
    pub(crate) shape: Option<Shape>,
    /// In front of a crop there may be a pad up to this.
    pub(crate) padded: Option<Reach>,
    /// Of a turn: any number of quarters.
    pub(crate) any_quarter: bool,
}

/// A step of the largest case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LargestStep {
    pub(crate) of: OpStep,
    pub(crate) over: Over,
    /// The sizes behind it. None: those in front of it, wherever the planner puts it.
    pub(crate) behind: Option<Reach>,
}

/// The steps of the largest case.
pub(crate) struct Largest<'a> {
    op: usize,
    part: Option<Part>,
    /// All that is pushed need not be drawn.
    optional: bool,
    /// Steps that need not be drawn are taken.
    takes_optional: bool,
    reach: Reach,
    steps: &'a mut Vec<LargestStep>,
}

impl<'a> Largest<'a> {
    /// `reach`: of pictures in front of all steps.
    pub(crate) fn new(reach: Reach, takes_optional: bool, steps: &'a mut Vec<LargestStep>) -> Self {
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
    pub(crate) fn begin(&mut self, op: usize, parts: &[Part]) {
        (self.op, self.part) = (op, only(parts));
    }

    /// Sizes behind the last step.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// A step that the draws differ in.
    pub(crate) fn add(&mut self, step: Step, mut over: Over) {
        if self.optional {
            over.presence = Presence::Optional;
        }
        if over.presence == Presence::Optional && !self.takes_optional {
            return;
        }
        let behind = over.behind.or_else(|| self.reach.behind(&step));
        self.reach = behind.unwrap_or(self.reach);
        self.steps.push(LargestStep {
            of: of(self.op, self.part, step),
            over,
            behind,
        });
    }

    /// All pixels may be erased, or none: the lowest numbers may leave nothing to erase.
    pub(crate) fn erased(&mut self, known: &Known, size: Sides) -> Sides {
        let step = Step::Erase {
            rect: Rect::whole(size),
            with: Erased::Value([0.0; 3]),
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

impl Sink for Largest<'_> {
    fn push(&mut self, step: Step) {
        self.add(step, Over::default());
    }
}
