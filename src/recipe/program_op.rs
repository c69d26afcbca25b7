//! An operation at its place in a recipe. It turns the random numbers of a position into steps for
//! an image of a given size.
//!
//! Distributions are those of torchvision (`get_params` of each transform), unless the operation
//! documents another.

use super::drawn_picture::DrawnPicture;
use super::op::Op;
use super::operation::{DrawContext, Operation};
use super::pixel_state::PixelState;
use super::random::{OperationNumbers, RandomStreams};
use super::size_bounds::HeightWidth;
use super::steps::{LargestCase, OpStep, SampleSteps};
use crate::error::{FaultKind, SampleFault};

/// An operation, with what a draw needs to know of its place in the recipe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramOp {
    pub(crate) op: Op,
    /// The random stream of the operation.
    pub(crate) stream: u32,
    /// The state of the pixels before it.
    pub(crate) known: PixelState,
}

impl ProgramOp {
    /// Draws the label.
    pub(crate) fn draw_label(&self, random: &impl RandomStreams) -> Option<i64> {
        self.op
            .draw_label(&mut OperationNumbers::new(random, self.stream))
    }

    /// Draws the steps for an image of this height and width, and returns the new height and width.
    /// `picture`: the image before the first of `steps`.
    ///
    /// # Errors
    /// If the image is too small, or if the operation reads boxes and there are none.
    pub(crate) fn draw(
        &self,
        at: usize,
        (picture, size): (&DrawnPicture<'_>, HeightWidth),
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> Result<HeightWidth, SampleFault> {
        let boxes = self.boxes(picture, steps)?;
        self.op.draw(DrawContext {
            known: &self.known,
            size,
            boxes: boxes.as_deref(),
            random: &mut OperationNumbers::new(random, self.stream),
            steps: &mut SampleSteps::new(at, self.op.parts(), steps),
        })
    }

    /// The boxes at this place, if the operation reads them.
    fn boxes(
        &self,
        picture: &DrawnPicture<'_>,
        steps: &[OpStep],
    ) -> Result<Option<Vec<[f64; 4]>>, SampleFault> {
        if !self.op.reads_boxes() {
            return Ok(None);
        }
        let Some(boxes) = picture.boxes else {
            return Err(FaultKind::Unsupported.fault(format!(
                "{} reads boxes, and the samples have no objects: give `objects`",
                self.op.name()
            )));
        };
        boxes.boxes_after(picture, steps).map(Some)
    }

    /// Pushes the steps that need the most memory, instead of drawn steps.
    pub(crate) fn largest(
        &self,
        at: usize,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.begin(at, self.op.parts());
        self.op.largest(&self.known, size, most)
    }

    /// The same with this output size, if the operation depends on a size.
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
