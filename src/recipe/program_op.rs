//! An operation at its place of a recipe: from the random numbers of a position to its
//! steps, on the size that the picture has there.
//!
//! Distributions are torchvision's (`get_params` of each transform) where no operation
//! says others.

use super::op::Op;
use super::operation::{DrawContext, Operation};
use super::pixel_state::PixelState;
use super::random::{OperationNumbers, RandomStreams};
use super::size_bounds::HeightWidth;
use super::steps::{LargestCase, OpStep, SampleSteps};
use crate::error::SampleFault;

/// An operation, with what the draw must know of its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramOp {
    pub(crate) op: Op,
    /// Whose numbers it draws.
    pub(crate) stream: u32,
    /// What is known in front of it.
    pub(crate) known: PixelState,
}

impl ProgramOp {
    /// The label that is drawn here.
    pub(crate) fn draw_label(&self, random: &impl RandomStreams) -> Option<i64> {
        self.op
            .draw_label(&mut OperationNumbers::new(random, self.stream))
    }

    /// Adds the steps of this operation on a picture of this height and width;
    /// what that becomes.
    ///
    /// # Errors
    /// When the picture is too small.
    pub(crate) fn draw(
        &self,
        at: usize,
        size: HeightWidth,
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> Result<HeightWidth, SampleFault> {
        self.op.draw(DrawContext {
            known: &self.known,
            size,
            random: &mut OperationNumbers::new(random, self.stream),
            steps: &mut SampleSteps::new(at, self.op.parts(), steps),
        })
    }

    /// Adds the steps that take the most memory, instead of drawn ones.
    pub(crate) fn largest(
        &self,
        at: usize,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.begin(at, self.op.parts());
        self.op.largest(&self.known, size, most)
    }

    /// The same, making pictures of this size where that has a meaning.
    pub(crate) fn with_size(&self, size: HeightWidth) -> Self {
        let op = self.op.with_size(size);
        Self {
            op: op.unwrap_or_else(|| self.op.clone()),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
