//! The operations that are made so far, and what is known of a picture behind them.

use super::held::Held;
use crate::configs::paddle::dataset_form::LabelKey;
use crate::configs::paddle::note::Notes;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::file::Node;
use crate::recipe::{Cast, ColorOrder, Dtype, Layout, MemoryLayout, Op, Size};

/// Whose sizes pictures get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Each operation's own.
    Own,
    /// The batch's, which no operation has made so far.
    Awaited,
    /// The batch's, which they have.
    Made,
}

/// The operations so far, and what is known behind them.
pub(crate) struct Pipe<'n> {
    pub(crate) ops: Vec<Op>,
    /// Line of each.
    pub(crate) lines: Vec<u64>,
    pub(super) notes: &'n mut Notes,
    pub(super) line: u64,
    pub(super) sizes: Sizes,
    pub(super) held: Held,
    /// CustomLabelDataset: whose draw is the label.
    pub(super) label_key: Option<LabelKey<'n>>,
    pub(super) color: ColorOrder,
    pub(super) values: Values,
    pub(super) chw: bool,
    /// NormalizeImage has added a channel of zeros.
    pub(super) zero_channel: bool,
    /// By ToTensor: operations know its order of axes.
    pub(super) tensor: bool,
    pub(super) dtype: Dtype,
    /// Whether the stages of the training have sizes of their own.
    pub(super) progressive: bool,
    /// Of each stage the size, once an operation has said so.
    pub(crate) stages: Vec<Size>,
    /// Reads one more operation: for those that hold others.
    pub(super) read: fn(&Node, &mut Pipe<'_>) -> Read<()>,
}

/// What the numbers of a picture are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Levels,
    /// ToTensor divided them by 255.
    Parts,
    Normalised,
}

impl Pipe<'_> {
    pub(super) fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
        self.lines.push(self.line);
    }

    /// What must not depend on what is drawn.
    pub(super) fn known(&self) -> (Values, ColorOrder, bool, bool, Dtype, bool) {
        (
            self.values,
            self.color,
            self.chw,
            self.tensor,
            self.dtype,
            self.zero_channel,
        )
    }

    /// Takes the operations from `first` on out again.
    pub(super) fn take_from(&mut self, first: usize) -> Vec<Op> {
        self.lines.truncate(first);
        self.ops.split_off(first)
    }

    /// The ends that PaddleClas has by itself: a float batch, transposed.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.ends_in_numbers(self.values == Values::Levels)?;
        if self.sizes == Sizes::Awaited {
            return Err(
                "MultiScaleDataset needs RandCropImage or ResizeImage in transform_ops, to give \
                 them the batch's size"
                    .to_owned(),
            );
        }
        let dtype = match self.values {
            Values::Levels => Dtype::U8,
            Values::Parts | Values::Normalised => self.dtype,
        };
        self.push(Cast { dtype });
        self.push(Layout {
            layout: MemoryLayout::Nchw,
        });
        Ok(())
    }

    /// Refuses what works on levels behind their end.
    pub(super) fn needs_levels(&self, params: &Params<'_>) -> Read<()> {
        if self.values == Values::Levels && !self.chw {
            return Ok(());
        }
        Err(params.misplaced(
            "needs levels of height x width x 3, and comes after an operation that \
                 changes them: move it up",
        ))
    }

    /// Refuses operations on colours where blue comes first: PaddleClas would take
    /// it for red.
    pub(super) fn needs_rgb(&self, params: &Params<'_>) -> Read<()> {
        self.needs_levels(params)?;
        if self.color == ColorOrder::Rgb {
            return Ok(());
        }
        Err(params.misplaced(
            "needs red, green, blue, and DecodeImage gives blue first: write to_rgb: True",
        ))
    }

    pub(super) fn note(&mut self, params: &Params<'_>, text: impl std::fmt::Display) {
        self.notes.at(params.at, format!("{}: {text}", params.name));
    }
}
