//! What a sample is labelled with.

use crate::data::index::sealed::LabelVector;

/// What is known about one sample beside its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Label<'a> {
    None,
    /// A class number; -1 in a flat folder.
    Class(i64),
    Vector(LabelVector<'a>),
}
