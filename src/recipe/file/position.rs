//! Positions in a text.

/// The position where something begins in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters. In TOML in bytes.
    pub(crate) column: usize,
}

impl TextPosition {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}
