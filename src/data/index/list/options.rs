//! Options for reading a list file.

use std::path::PathBuf;

/// How [`Index::list`](crate::data::index::Index::list) reads a list file.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// The delimiter between path and label.
    pub delimiter: ListDelimiter,
    /// The folder that relative paths start from. By default the list file's folder.
    pub root: Option<PathBuf>,
    /// Accept paths that lead out of the root.
    pub allow_outside: bool,
    /// The kind of labels in the list.
    pub labels: ListLabels,
    /// Renumbers whole-number labels from 0 without gaps, in ascending order. PaddleClas calls
    /// this `relabel`.
    pub relabel: bool,
    /// A folder of box files, one per sample. The box of each image is used as if it were the
    /// whole image. PaddleClas calls this `bbox_crop`.
    ///
    /// The box file of `a/1.x.jpg` is `a/1.txt`: the path up to its first dot. Its last line that
    /// is not blank is `x0 y0 x1 y1`, in whole pixels of the upright image. `x1` and `y1` are
    /// exclusive.
    pub boxes: Option<PathBuf>,
}

/// The delimiter between a path and its label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListDelimiter {
    /// One or more blanks and tabs.
    #[default]
    Blanks,
    /// This byte, once. Blanks around path and label are ignored.
    Byte(u8),
}

/// The kind of labels that follow the paths of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListLabels {
    /// The kind of the first line: a whole number, several numbers, or no label after a path with
    /// a known image extension.
    #[default]
    Auto,
    /// No labels: the whole line is the path.
    None,
    /// One whole number.
    Scalar,
    /// One or more numbers.
    Vector,
    /// One whole number after the first delimiter. The rest of the line, such as VeriWild's camera
    /// number, is ignored. Paths with blanks need quotes.
    Second,
}
