//! The operations that are made so far, and what is known of a picture behind them.

use super::image_form::ImageForm;
use crate::configs::paddle::dataset_config::LabelKey;
use crate::configs::paddle::note::NoteList;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::file::TreeNode;
use crate::recipe::{Cast, ColorOrder, DataType, Layout, MemoryLayout, Op, Size};

/// Whose sizes pictures get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeSource {
    /// Each operation's own.
    Own,
    /// The batch's, which no operation has made so far.
    BatchPending,
    /// The batch's, which they have.
    BatchSet,
}

/// The operations so far, and what is known behind them.
pub(crate) struct OpPipeline<'n> {
    pub(crate) ops: Vec<Op>,
    /// Line of each.
    pub(crate) lines: Vec<u64>,
    pub(super) notes: &'n mut NoteList,
    pub(super) line: u64,
    pub(super) sizes: SizeSource,
    pub(super) form: ImageForm,
    /// CustomLabelDataset: whose draw is the label.
    pub(super) label_key: Option<LabelKey<'n>>,
    pub(super) color: ColorOrder,
    pub(super) values: ValueScale,
    pub(super) chw: bool,
    /// NormalizeImage has added a channel of zeros.
    pub(super) zero_channel: bool,
    /// By ToTensor: operations know its order of axes.
    pub(super) tensor: bool,
    pub(super) dtype: DataType,
    /// Whether the stages of the training have sizes of their own.
    pub(super) progressive: bool,
    /// Of each stage the size, once an operation has said so.
    pub(crate) stages: Vec<Size>,
    /// Reads one more operation: for those that hold others.
    pub(super) read: fn(&TreeNode, &mut OpPipeline<'_>) -> ConfigResult<()>,
}

/// What the numbers of a picture are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueScale {
    Levels,
    /// ToTensor divided them by 255.
    Parts,
    Normalised,
}

impl OpPipeline<'_> {
    pub(super) fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
        self.lines.push(self.line);
    }

    /// What must not depend on what is drawn.
    pub(super) fn fixed_state(&self) -> (ValueScale, ColorOrder, bool, bool, DataType, bool) {
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
    pub(super) fn split_off_ops(&mut self, first: usize) -> Vec<Op> {
        self.lines.truncate(first);
        self.ops.split_off(first)
    }

    /// The ends that PaddleClas has by itself: a float batch, transposed.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.ends_in_numbers(self.values == ValueScale::Levels)?;
        if self.sizes == SizeSource::BatchPending {
            return Err(
                "MultiScaleDataset needs RandCropImage or ResizeImage in transform_ops, to give \
                 them the batch's size"
                    .to_owned(),
            );
        }
        let dtype = match self.values {
            ValueScale::Levels => DataType::U8,
            ValueScale::Parts | ValueScale::Normalised => self.dtype,
        };
        self.push(Cast { dtype });
        self.push(Layout {
            layout: MemoryLayout::Nchw,
        });
        Ok(())
    }

    /// Refuses what works on levels behind their end.
    pub(super) fn needs_levels(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        if self.values == ValueScale::Levels && !self.chw {
            return Ok(());
        }
        Err(params.misplaced(
            "needs levels of height x width x 3, and comes after an operation that \
                 changes them: move it up",
        ))
    }

    /// Refuses operations on colours where blue comes first: PaddleClas would take
    /// it for red.
    pub(super) fn needs_rgb(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        self.needs_levels(params)?;
        if self.color == ColorOrder::Rgb {
            return Ok(());
        }
        Err(params.misplaced(
            "needs red, green, blue, and DecodeImage gives blue first: write to_rgb: True",
        ))
    }

    pub(super) fn note(&mut self, params: &ConfigParams<'_>, text: impl std::fmt::Display) {
        self.notes.at(params.at, format!("{}: {text}", params.name));
    }
}
