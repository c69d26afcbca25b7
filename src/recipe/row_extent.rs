//! The size of the rows of a batch.

use super::patches::CutRule;

/// The size of the rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowExtent {
    /// All rows have this size, in pixels. It follows from the recipe alone.
    Fixed { height: u32, width: u32 },
    /// Each row has the upright size of its image, so it depends on the data.
    Own,
    /// Each row has patches or tiles of its image, as many as the rule makes of its size.
    Patches(CutRule),
}

impl RowExtent {
    /// Whether the sizes of rows depend on the data.
    pub(crate) fn is_of_data(self) -> bool {
        match self {
            Self::Fixed { .. } => false,
            Self::Own | Self::Patches(_) => true,
        }
    }

    /// Height and width of a row for an upright image of this height and width. Of patches: those
    /// of the resized image or the canvas, and 0 x 0 for an image that the rule refuses, whose
    /// sample fails.
    pub(crate) fn of(self, picture: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Fixed { height, width } => (height, width),
            Self::Own => picture,
            Self::Patches(rule) => match rule.grid(picture) {
                Ok(grid) => grid.resized(rule.side()),
                Err(_) => (0, 0),
            },
        }
    }
}
