//! The settings that a `dataset` of any class leads to.

use std::path::PathBuf;

use crate::data::index::{CifarOptions, ListOptions};
use crate::recipe::file::{TextPosition, TreeNode};

/// The settings that a `dataset` leads to.
pub(crate) struct DatasetConfig<'a> {
    pub(crate) opener: ImageOpener,
    pub(crate) multi_scale: bool,
    /// The key of the operation that draws the labels. None: the list has the labels.
    pub(crate) label_key: Option<LabelKey<'a>>,
    /// None: this kind of data set has no list.
    pub(crate) list: Option<PathBuf>,
    /// For CIFAR batches instead of a list: their folder, if the config has it, and options.
    pub(crate) cifar: Option<(Option<PathBuf>, CifarOptions)>,
    pub(crate) options: ListOptions,
    pub(crate) transform_ops: &'a TreeNode,
    pub(crate) batch_transform_ops: Option<&'a TreeNode>,
}

/// The key under which an operation passes on the value that it drew.
#[derive(Clone, Copy)]
pub(crate) struct LabelKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: TextPosition,
}

/// How images are opened before the first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageOpener {
    /// They are not: DecodeImage must be the first operation.
    Undecoded,
    /// By OpenCV, as an array.
    Array,
    /// By Pillow: as an array of its pixels, or as a Pillow image.
    Pillow { is_picture: bool },
}
