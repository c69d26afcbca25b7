//! Where an image goes, and the rounding that the rules share.

/// Where an image goes. Sizes are height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketFit {
    /// The size of the rows of its bucket.
    pub(crate) row: (u32, u32),
    /// The size that the image is resized to. It covers the row.
    pub(crate) resized: (u32, u32),
}

/// Halves go to the even number, as Python's `round`.
pub(super) fn rounded(value: f64) -> f64 {
    value.round_ties_even()
}
