//! Where something stands in a text.

/// Where something begins in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters; in TOML in bytes.
    pub(crate) column: usize,
}

impl TextPosition {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}
