//! Whose sizes pictures get.

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
