//! The size of the rows of a batch.

use serde::{Deserialize, Serialize};

/// The size of the rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowExtent {
    /// All rows have this size, in pixels. It follows from the recipe alone.
    Fixed { height: u32, width: u32 },
    /// Each row has the upright size of its image, so it depends on the data.
    Own,
}

impl RowExtent {
    /// Height and width of a row for an upright image of this height and width.
    pub(crate) fn of(self, picture: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Fixed { height, width } => (height, width),
            Self::Own => picture,
        }
    }
}
