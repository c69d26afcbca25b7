//! What follows from a `dataset` of a config, whatever its class.

use std::path::PathBuf;

use crate::data::index::{CifarOptions, ListOptions};
use crate::recipe::file::{TextPosition, TreeNode};

/// What follows from a `dataset`.
pub(crate) struct DatasetConfig<'a> {
    pub(crate) opener: ImageOpener,
    pub(crate) multi_scale: bool,
    /// Whose draw the labels are; none: they stand in the list.
    pub(crate) label_key: Option<LabelKey<'a>>,
    /// None: the form has no list.
    pub(crate) list: Option<PathBuf>,
    /// CIFAR's batches instead of a list, and the folder of them where it is written.
    pub(crate) cifar: Option<(Option<PathBuf>, CifarOptions)>,
    pub(crate) options: ListOptions,
    pub(crate) transform_ops: &'a TreeNode,
    pub(crate) batch_transform_ops: Option<&'a TreeNode>,
}

/// By which name an operation hands its draw on.
#[derive(Clone, Copy)]
pub(crate) struct LabelKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: TextPosition,
}

/// Where pictures come from before the first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageOpener {
    /// Bytes: DecodeImage must be there.
    Undecoded,
    /// By OpenCV.
    Array,
    /// By Pillow: an array of its pixels, or the picture itself.
    Pillow { is_picture: bool },
}
