//! What happens at the end of an epoch.

use serde::{Deserialize, Serialize};

/// What happens to the samples that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum EpochTail {
    /// The last batch is short.
    #[default]
    Short,
    /// The last batch has full size; the rows behind the samples are zero and
    /// their status is [`RowStatus::Padding`](crate::plan::RowStatus::Padding).
    Pad,
    /// The last batch is left out when it would be short.
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
