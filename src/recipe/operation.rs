//! What an operation is: everything that the rest of the program asks of one.
//!
//! Each file of `ops` answers for its struct; `op` hands a question on to the struct
//! that an [`Op`](super::op::Op) holds. Never here: the name of an operation.

use super::random::{LowestDraws, OperationNumbers};
use super::steps::StepSink;
use super::tensor::DataType;
use super::values::{InterpolationMode, PaddingMode, PerChannel, Span};

// What the trait's functions take and give: a file of `ops` has them from here.
pub(crate) use super::geometry::UniformSource;
pub(crate) use super::move_unit::OperationPart;
pub(crate) use super::pixel_state::PixelState;
pub(crate) use super::size_bounds::HeightWidth;
pub(crate) use super::step::Step;
pub(crate) use super::steps::LargestCase;
pub(crate) use crate::error::SampleFault;

/// The place of a draw: a picture, and where its random numbers and steps are.
pub(crate) struct DrawContext<'a> {
    /// What is known of the pixels in front of the operation.
    pub(crate) known: &'a PixelState,
    /// Height and width of the picture.
    pub(crate) size: HeightWidth,
    /// The numbers of this operation.
    pub(crate) random: &'a mut OperationNumbers<'a>,
    pub(crate) steps: &'a mut dyn StepSink,
}

/// One operation on one sample.
///
/// What must be answered stands first; the rest has an answer for operations to
/// which the question means nothing. An operation that holds operations is a generic
/// struct of `O: Operation`, so that its file does not depend on the list of all.
pub(crate) trait Operation: Clone + Sized {
    /// The units that the planner moves, in the order in which it does them. All steps of
    /// an operation of one part are of that part.
    const PARTS: &'static [OperationPart];

    /// Whether it takes random numbers.
    const DRAWS: bool = true;

    /// Whether every number is in its range and the operation can work on such pixels;
    /// `known` becomes what is known behind it.
    ///
    /// # Errors
    /// What is wrong, and what would be accepted; the operation's name is put in front.
    fn check(&self, known: &mut PixelState) -> Result<(), String>;

    /// `PARTS`, or those of these parameters.
    fn parts(&self) -> &'static [OperationPart] {
        Self::PARTS
    }

    /// Of an operation that does one step or nothing, and keeps the size: how probable the
    /// step is, 0 to 1, and the step. `draw` and `largest` follow from it.
    fn chance(&self) -> Option<(f64, Step)> {
        None
    }

    /// The same without a part that what is known of its place rules out, if there is one.
    fn simplified(&self, _known: &PixelState) -> Option<Self> {
        None
    }

    /// Pushes the steps on a picture; the height and width that it becomes.
    ///
    /// Without an answer of its own: the step of `chance`.
    ///
    /// # Errors
    /// When the picture is too small or too large.
    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let chance = self.chance();
        debug_assert!(chance.is_some(), "neither `chance` nor `draw`");
        if let Some((p, step)) = chance
            && on.random.next_f64() < p
        {
            on.steps.push(step);
        }
        Ok(on.size)
    }

    /// Pushes the steps that take the most memory, instead of drawn ones.
    ///
    /// Without an answer of its own: the step of `chance`, or those of the lowest numbers.
    /// An operation whose `draw` may choose a size, or do nothing, has an answer of its own.
    /// A picture too small for a crop is a failed sample and takes nothing more.
    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        match self.chance() {
            Some((_, step)) => {
                most.optionally(|most| most.push(step));
                size
            }
            None => push_lowest_draw(self, known, size, most),
        }
    }

    fn draws(&self) -> bool {
        Self::DRAWS
    }

    /// Whether the size behind it is not that in front of it.
    fn sets_size(&self) -> bool {
        let sets = |p: &OperationPart| {
            matches!(
                p,
                OperationPart::Crop | OperationPart::Resize | OperationPart::Pad
            )
        };
        self.parts().iter().any(sets)
    }

    /// The same, making pictures of this size, where that has a meaning.
    fn with_size(&self, _size: HeightWidth) -> Option<Self> {
        None
    }

    /// What a user reads of a part, where the operation's name alone does not say it.
    fn part_name(&self, _part: OperationPart) -> Option<&'static str> {
        None
    }

    /// What the planner may do with it.
    fn move_rights(&self) -> MoveRights {
        MoveRights::default()
    }

    /// What a device needs to know to do it.
    fn device_support(&self) -> DeviceSupport {
        DeviceSupport::default()
    }

    /// Levels of operations that stand inside of it.
    fn nesting_depth(&self) -> usize {
        0
    }

    /// Operations that stand inside of it, those inside of these included.
    fn nested_operations(&self) -> usize {
        0
    }

    /// How many labels there are, where what is drawn is the sample's label: from 0 on.
    fn label_count(&self) -> Option<u32> {
        None
    }

    /// The label that is drawn. No picture's size has a part in it: who knows a row's
    /// position knows its label.
    fn draw_label(&self, _random: &mut impl UniformSource) -> Option<i64> {
        None
    }
}

/// An operation that knows what a recipe calls it: one that may stand inside of another.
pub(crate) trait NamedOperation: Operation {
    fn op_name(&self) -> &'static str;
}

/// The steps of the lowest numbers, whatever may be drawn.
pub(crate) fn push_lowest_draw(
    op: &impl Operation,
    known: &PixelState,
    size: HeightWidth,
    most: &mut LargestCase<'_>,
) -> HeightWidth {
    let context = DrawContext {
        known,
        size,
        random: &mut OperationNumbers::new(&LowestDraws, 0),
        steps: most,
    };
    op.draw(context).unwrap_or(size)
}

/// What the rules of the planner ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MoveRights {
    /// Why values change where it stands behind a crop. None: no bit does.
    pub(crate) change_after_crop: Option<&'static str>,
    /// Why values change where it stands behind a resize.
    pub(crate) change_after_resize: &'static str,
    /// The type that it casts to.
    pub(crate) casts_to: Option<DataType>,
    /// The border that it may add.
    pub(crate) border: Option<(PaddingMode, PerChannel)>,
    /// Only pictures that are too small get that border.
    pub(crate) border_is_rare: bool,
}

impl Default for MoveRights {
    fn default() -> Self {
        Self {
            change_after_crop: None,
            change_after_resize: "both round to whole levels: up to about a level",
            casts_to: None,
            border: None,
            border_is_rare: false,
        }
    }
}

/// What a device does of an operation. Whatever is not said is done by workers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DeviceSupport {
    /// Of crops with random shapes: width by height.
    pub(crate) ratio: Option<Span>,
    /// Of resizes: the filter, and whether it is antialiased.
    pub(crate) filter: Option<(InterpolationMode, bool)>,
    /// Its border is added by workers, and the rest may still be done there.
    pub(crate) border: bool,
    /// The most colour steps that it may draw.
    pub(crate) colors: Option<usize>,
    /// One of these takes the mean of the row.
    pub(crate) takes_mean: bool,
}
