//! What an operation is: everything that the rest of the program asks of one.
//!
//! Each file of `ops` answers for its struct; `op` hands a question on to the struct
//! that an [`Op`](super::op::Op) holds. Never here: the name of an operation.

use super::random::{Lowest, Numbers};
use super::steps::Sink;
use super::tensor::Dtype;
use super::values::{Interpolation, PaddingMode, PerChannel, Span};

// What the trait's functions take and give: a file of `ops` has them from here.
pub(crate) use super::geometry::Uniform;
pub(crate) use super::known::Known;
pub(crate) use super::reach::Sides;
pub(crate) use super::step::Step;
pub(crate) use super::steps::Largest;
pub(crate) use super::unit::Part;
pub(crate) use crate::error::SampleFault;

/// The place of a draw: a picture, and where its random numbers and steps are.
pub(crate) struct DrawContext<'a> {
    /// What is known of the pixels in front of the operation.
    pub(crate) known: &'a Known,
    /// Height and width of the picture.
    pub(crate) size: Sides,
    /// The numbers of this operation.
    pub(crate) random: &'a mut Numbers<'a>,
    pub(crate) steps: &'a mut dyn Sink,
}

/// One operation on one sample.
///
/// What must be answered stands first; the rest has an answer for operations to
/// which the question means nothing. An operation that holds operations is a generic
/// struct of `O: Operation`, so that its file does not depend on the list of all.
pub(crate) trait Operation: Clone + Sized {
    /// The units that the planner moves, in the order in which it does them. All steps of
    /// an operation of one part are of that part.
    const PARTS: &'static [Part];

    /// Whether it takes random numbers.
    const DRAWS: bool = true;

    /// Whether every number is in its range and the operation can work on such pixels;
    /// `known` becomes what is known behind it.
    ///
    /// # Errors
    /// What is wrong, and what would be accepted; the operation's name is put in front.
    fn check(&self, known: &mut Known) -> Result<(), String>;

    /// `PARTS`, or those of these parameters.
    fn parts(&self) -> &'static [Part] {
        Self::PARTS
    }

    /// Of an operation that does one step or nothing, and keeps the size: how probable the
    /// step is, 0 to 1, and the step. `draw` and `largest` follow from it.
    fn chance(&self) -> Option<(f64, Step)> {
        None
    }

    /// The same without a part that what is known of its place rules out, if there is one.
    fn settled(&self, _known: &Known) -> Option<Self> {
        None
    }

    /// Pushes the steps on a picture; the height and width that it becomes.
    ///
    /// Without an answer of its own: the step of `chance`.
    ///
    /// # Errors
    /// When the picture is too small or too large.
    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
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
    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        match self.chance() {
            Some((_, step)) => {
                most.optionally(|most| most.push(step));
                size
            }
            None => lowest(self, known, size, most),
        }
    }

    fn draws(&self) -> bool {
        Self::DRAWS
    }

    /// Whether the size behind it is not that in front of it.
    fn sets_size(&self) -> bool {
        let sets = |p: &Part| matches!(p, Part::Crop | Part::Resize | Part::Pad);
        self.parts().iter().any(sets)
    }

    /// The same, making pictures of this size, where that has a meaning.
    fn with_size(&self, _size: Sides) -> Option<Self> {
        None
    }

    /// What a user reads of a part, where the operation's name alone does not say it.
    fn part_name(&self, _part: Part) -> Option<&'static str> {
        None
    }

    /// What the planner may do with it.
    fn rights(&self) -> Rights {
        Rights::default()
    }

    /// What a device needs to know to do it.
    fn on_device(&self) -> OnDevice {
        OnDevice::default()
    }

    /// Levels of operations that stand inside of it.
    fn levels(&self) -> usize {
        0
    }

    /// Operations that stand inside of it, those inside of these included.
    fn operations_inside(&self) -> usize {
        0
    }

    /// How many labels there are, where what is drawn is the sample's label: from 0 on.
    fn labels(&self) -> Option<u32> {
        None
    }

    /// The label that is drawn. No picture's size has a part in it: who knows a row's
    /// position knows its label.
    fn label(&self, _random: &mut impl Uniform) -> Option<i64> {
        None
    }
}

/// An operation that knows what a recipe calls it: one that may stand inside of another.
pub(crate) trait Named: Operation {
    fn called(&self) -> &'static str;
}

/// The steps of the lowest numbers, whatever may be drawn.
pub(crate) fn lowest(
    op: &impl Operation,
    known: &Known,
    size: Sides,
    most: &mut Largest<'_>,
) -> Sides {
    let context = DrawContext {
        known,
        size,
        random: &mut Numbers::new(&Lowest, 0),
        steps: most,
    };
    op.draw(context).unwrap_or(size)
}

/// What the rules of the planner ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rights {
    /// Why values change where it stands behind a crop. None: no bit does.
    pub(crate) behind_crop: Option<&'static str>,
    /// Why values change where it stands behind a resize.
    pub(crate) behind_resize: &'static str,
    /// The type that it casts to.
    pub(crate) casts_to: Option<Dtype>,
    /// The border that it may add.
    pub(crate) border: Option<(PaddingMode, PerChannel)>,
    /// Only pictures that are too small get that border.
    pub(crate) border_is_rare: bool,
}

impl Default for Rights {
    fn default() -> Self {
        Self {
            behind_crop: None,
            behind_resize: "both round to whole levels: up to about a level",
            casts_to: None,
            border: None,
            border_is_rare: false,
        }
    }
}

/// What a device does of an operation. Whatever is not said is done by workers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct OnDevice {
    /// Of crops with random shapes: width by height.
    pub(crate) ratio: Option<Span>,
    /// Of resizes: the filter, and whether it is antialiased.
    pub(crate) filter: Option<(Interpolation, bool)>,
    /// Its border is added by workers, and the rest may still be done there.
    pub(crate) border: bool,
    /// The most colour steps that it may draw.
    pub(crate) colors: Option<usize>,
    /// One of these takes the mean of the row.
    pub(crate) takes_mean: bool,
}
