//! The operations translated so far, and the state of the image after them.

use super::image_form::ImageForm;
use crate::configs::paddle::dataset_config::LabelKey;
use crate::configs::paddle::note::NoteList;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::file::TreeNode;
use crate::recipe::{Cast, ColorOrder, DataType, Layout, MemoryLayout, Op, Size};

/// What sets the size of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeSource {
    /// Each operation sets its own.
    Own,
    /// The batch, but no operation has applied its size yet.
    BatchPending,
    /// The batch, and an operation has applied its size.
    BatchSet,
}

/// The operations translated so far, and the state of the image after them.
pub(crate) struct OpPipeline<'n> {
    pub(crate) ops: Vec<Op>,
    /// Line of each operation.
    pub(crate) lines: Vec<u64>,
    pub(super) notes: &'n mut NoteList,
    pub(super) line: u64,
    pub(super) sizes: SizeSource,
    pub(super) form: ImageForm,
    /// CustomLabelDataset: the key of the drawn value that is the label.
    pub(super) label_key: Option<LabelKey<'n>>,
    pub(super) color: ColorOrder,
    pub(super) values: ValueScale,
    pub(super) chw: bool,
    /// NormalizeImage added a channel of zeros.
    pub(super) zero_channel: bool,
    /// ToTensor has run: later operations know its axis order.
    pub(super) tensor: bool,
    pub(super) dtype: DataType,
    /// Whether the stages of the training set their own sizes.
    pub(super) progressive: bool,
    /// The size of each stage, once an operation has set them.
    pub(crate) stages: Vec<Size>,
    /// Translates a nested operation.
    pub(super) read: fn(&TreeNode, &mut OpPipeline<'_>) -> ConfigResult<()>,
}

/// The range of the pixel values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueScale {
    Levels,
    /// Divided by 255 by ToTensor.
    Parts,
    Normalised,
}

impl OpPipeline<'_> {
    pub(super) fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
        self.lines.push(self.line);
    }

    /// State that must not depend on a draw.
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

    /// Removes and returns the operations from `first` on.
    pub(super) fn split_off_ops(&mut self, first: usize) -> Vec<Op> {
        self.lines.truncate(first);
        self.ops.split_off(first)
    }

    /// Adds PaddleClas' final steps: a float batch, transposed.
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

    /// Rejects an operation on levels after the levels were changed.
    pub(super) fn needs_levels(&self, params: &ConfigParams<'_>) -> ConfigResult<()> {
        if self.values == ValueScale::Levels && !self.chw {
            return Ok(());
        }
        Err(params.misplaced(
            "needs levels of height x width x 3, and comes after an operation that \
                 changes them: move it up",
        ))
    }

    /// Rejects operations on colours if blue comes first: PaddleClas would read blue as red.
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
