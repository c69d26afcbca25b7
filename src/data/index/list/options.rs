//! How a list file is read.

use std::path::PathBuf;

/// How [`Index::list`](crate::data::index::Index::list) reads a list file.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub delimiter: ListDelimiter,
    /// Where relative paths start; by default the list file's folder.
    pub root: Option<PathBuf>,
    /// Accept paths that lead out of the root.
    pub allow_outside: bool,
    pub labels: ListLabels,
    /// Numbers whole-number labels anew, from 0 without gaps, in their ascending
    /// order: PaddleClas' `relabel`.
    pub relabel: bool,
    /// A folder of box files, one a sample: only its box of the picture is taken, as if
    /// it were the picture. That of `a/1.x.jpg` is `a/1.txt`: the path up to its first
    /// dot. Its last line that is not blank is `x0 y0 x1 y1`, whole pixels of the
    /// upright picture; x1 and y1 are no part of it. PaddleClas' `bbox_crop`.
    pub boxes: Option<PathBuf>,
}

/// What stands between a path and its label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListDelimiter {
    /// A run of blanks and tabs.
    #[default]
    Blanks,
    /// This byte, once. Blanks around path and label are no part of them.
    Byte(u8),
}

/// What stands behind the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListLabels {
    /// What the first line shows: a whole number, several numbers, or nothing
    /// behind a path with a known image extension.
    #[default]
    Auto,
    /// Nothing: the whole line is the path.
    None,
    /// One whole number.
    Scalar,
    /// One number or more.
    Vector,
    /// One whole number behind the first delimiter; what stands behind it, such as
    /// VeriWild's camera, means nothing. Blanks in a path need quotes.
    Second,
}
