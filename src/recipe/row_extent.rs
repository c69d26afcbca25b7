//! How large the rows of a batch are.

use serde::{Deserialize, Serialize};

/// How large the rows of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowExtent {
    /// All of this size, pixels: it follows from the recipe alone.
    Fixed { height: u32, width: u32 },
    /// Each has its picture's own upright size: it follows from the data.
    Own,
}

impl RowExtent {
    /// Height and width of the row of an upright picture of this height and width.
    pub(crate) fn of(self, picture: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Fixed { height, width } => (height, width),
            Self::Own => picture,
        }
    }
}
