//! The last batch of an epoch.

use serde::{Deserialize, Serialize};

/// What to do with samples that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum EpochTail {
    /// The last batch is short.
    #[default]
    Short,
    /// The last batch has full size. Rows after the samples are zero and have the status
    /// [`RowStatus::Padding`](crate::order::RowStatus::Padding).
    Pad,
    /// A short last batch is dropped.
    Drop,
}

impl EpochTail {
    /// Its name in options and states.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Pad => "pad",
            Self::Drop => "drop",
        }
    }
}
