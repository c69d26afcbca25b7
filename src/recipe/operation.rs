//! The trait of operations: everything that the rest of the program needs from one.
//!
//! Each file of `ops` implements it for its struct. `op` calls the struct inside an
//! [`Op`](super::op::Op). Never in here: the name of an operation.

use super::joints::SampleJoint;
use super::random::{LowestDraws, OperationNumbers};
use super::steps::StepSink;
use super::tensor::DataType;
use super::values::{InterpolationMode, PaddingMode, PerChannel, Span};

// Types of the trait's functions, re-exported for the files of `ops`.
pub(crate) use super::geometry::UniformSource;
pub(crate) use super::move_unit::OperationPart;
pub(crate) use super::pixel_state::PixelState;
pub(crate) use super::size_bounds::HeightWidth;
pub(crate) use super::step::Step;
pub(crate) use super::steps::LargestCase;
pub(crate) use crate::error::SampleFault;

/// The input of a draw: the image's state and size, its random numbers, and the list of steps.
pub(crate) struct DrawContext<'a> {
    /// The state of the pixels before the operation.
    pub(crate) known: &'a PixelState,
    /// Height and width of the image.
    pub(crate) size: HeightWidth,
    /// The boxes of the sample's objects, if the operation reads them.
    pub(crate) boxes: Option<&'a [[f64; 4]]>,
    /// The random numbers of this operation.
    pub(crate) random: &'a mut OperationNumbers<'a>,
    pub(crate) steps: &'a mut dyn StepSink,
}

/// One operation on one sample.
///
/// Required items come first. The others have defaults for operations to which they do not apply.
/// An operation that contains operations is generic over `O: Operation`, so its file does not
/// depend on the list of operations.
pub(crate) trait Operation: Clone + Sized {
    /// The units that the planner moves, in the order in which they run. If there is one part, all
    /// steps belong to it.
    const PARTS: &'static [OperationPart];

    /// Whether it uses random numbers.
    const DRAWS: bool = true;

    /// Checks the ranges of all numbers, and that the operation can work on pixels in this state.
    /// Updates `known` to the state after the operation.
    ///
    /// # Errors
    /// What is wrong, and what is accepted. The caller adds the operation's name.
    fn check(&self, known: &mut PixelState) -> Result<(), String>;

    /// The units for these parameters. The default is `PARTS`.
    fn parts(&self) -> &'static [OperationPart] {
        Self::PARTS
    }

    /// For an operation that keeps the size and either pushes one step or none: the probability, 0
    /// to 1, and the step. The defaults of `draw` and `largest` use it.
    fn chance(&self) -> Option<(f64, Step)> {
        None
    }

    /// The operation without a part that never applies in this state. None: nothing to remove.
    fn simplified(&self, _known: &PixelState) -> Option<Self> {
        None
    }

    /// Draws the steps for one image, and returns the new height and width.
    ///
    /// The default uses `chance`.
    ///
    /// # Errors
    /// If the image is too small or too large.
    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let chance = self.chance();
        debug_assert!(
            chance.is_some() || self.joint().is_some(),
            "neither `chance` nor `draw`"
        );
        if let Some((p, step)) = chance
            && on.random.next_f64() < p
        {
            on.steps.push(step);
        }
        Ok(on.size)
    }

    /// Pushes the steps that need the most memory, instead of drawn steps.
    ///
    /// The default uses `chance`, or the steps drawn with the lowest numbers. An operation whose
    /// `draw` chooses a size, or may push nothing, must override it. An image that is too small for
    /// a crop is a failed sample and needs no more memory.
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

    /// Whether a draw reads the boxes of the sample's objects.
    fn reads_boxes(&self) -> bool {
        false
    }

    /// Whether its crop drops the objects whose centre lies outside of it.
    fn drops_by_centre(&self) -> bool {
        false
    }

    /// Whether it changes the size.
    fn sets_size(&self) -> bool {
        let sets = |p: &OperationPart| {
            matches!(
                p,
                OperationPart::Crop | OperationPart::Resize | OperationPart::Pad
            )
        };
        self.parts().iter().any(sets)
    }

    /// The same operation with this output size. None: it does not depend on a size.
    fn with_size(&self, _size: HeightWidth) -> Option<Self> {
        None
    }

    /// The name of a part for users, where the operation's name alone is not enough.
    fn part_name(&self, _part: OperationPart) -> Option<&'static str> {
        None
    }

    /// Properties that the planner's rules use.
    fn move_rights(&self) -> MoveRights {
        MoveRights::default()
    }

    /// What a device must support to run it.
    fn device_support(&self) -> DeviceSupport {
        DeviceSupport::default()
    }

    /// How it joins the picture with those of other samples. None: it works on one picture.
    fn joint(&self) -> Option<SampleJoint> {
        None
    }

    /// The depth of the operations nested in it. 0: none.
    fn nesting_depth(&self) -> usize {
        0
    }

    /// The number of operations nested in it, at all depths.
    fn nested_operations(&self) -> usize {
        0
    }

    /// The number of label values (0 to n - 1), if the drawn value is the sample's label.
    fn label_count(&self) -> Option<u32> {
        None
    }

    /// Draws the label. It does not depend on the size of the image, so the position of a row is
    /// enough to compute its label.
    fn draw_label(&self, _random: &mut impl UniformSource) -> Option<i64> {
        None
    }
}

/// An operation with a name, so that it can be nested in another.
pub(crate) trait NamedOperation: Operation {
    fn op_name(&self) -> &'static str;
}

/// Pushes the steps drawn with the lowest numbers, whatever may be drawn.
pub(crate) fn push_lowest_draw(
    op: &impl Operation,
    known: &PixelState,
    size: HeightWidth,
    most: &mut LargestCase<'_>,
) -> HeightWidth {
    let context = DrawContext {
        known,
        size,
        boxes: None,
        random: &mut OperationNumbers::new(&LowestDraws, 0),
        steps: most,
    };
    op.draw(context).unwrap_or(size)
}

/// The properties of an operation that the planner's rules use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MoveRights {
    /// Why values change if the operation moves after a crop. None: no bit changes.
    pub(crate) change_after_crop: Option<&'static str>,
    /// Why values change if the operation moves after a resize.
    pub(crate) change_after_resize: &'static str,
    /// The element type that it casts to.
    pub(crate) casts_to: Option<DataType>,
    /// The border that it may add: mode and colour.
    pub(crate) border: Option<(PaddingMode, PerChannel)>,
    /// True if only images that are too small get the border.
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

/// How a device runs an operation. By default, workers run it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DeviceSupport {
    /// For crops of random shape: the range of width divided by height.
    pub(crate) ratio: Option<Span>,
    /// For resizes: the filter, and whether it is antialiased.
    pub(crate) filter: Option<(InterpolationMode, bool)>,
    /// Workers add its border. The device may still run the rest.
    pub(crate) border: bool,
    /// The maximum number of colour steps that it draws. None: a device cannot run it.
    pub(crate) colors: Option<usize>,
    /// True if one of its steps needs the mean of the row.
    pub(crate) takes_mean: bool,
}
