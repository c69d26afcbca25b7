//! Ranks, positions in a run, and marks between batches.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The number of a process among those that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// Number of this process, from 0.
    pub rank: u32,
    /// Number of processes.
    pub world: u32,
}

impl Rank {
    /// Process `rank` of `world`.
    #[must_use]
    pub fn new(rank: u32, world: u32) -> Self {
        Self { rank, world }
    }

    /// # Errors
    /// `rank` is not below `world`.
    pub(crate) fn check(self) -> Result<()> {
        if self.rank < self.world {
            return Ok(());
        }
        Err(Error::option(
            "rank",
            format!(
                "`rank` is {} of {}: ranks count from 0",
                self.rank, self.world
            ),
        ))
    }
}

/// A single process: 0 of 1.
impl Default for Rank {
    fn default() -> Self {
        Self::new(0, 1)
    }
}

/// A position in a run: the next batch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Position {
    pub epoch: u64,
    /// Number of the batch in that epoch, on this rank.
    pub batch: u64,
}

impl Position {
    /// Before batch `batch` of epoch `epoch`; both count from 0.
    #[must_use]
    pub fn new(epoch: u64, batch: u64) -> Self {
        Self { epoch, batch }
    }
}

/// A position between two batches of any size: the number of samples of all ranks before it.
/// [`EpochPlan::mark`](super::EpochPlan::mark) converts a batch number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EpochMark {
    pub epoch: u64,
    pub samples: u64,
}

impl EpochMark {
    /// After `samples` samples of epoch `epoch`.
    #[must_use]
    pub fn new(epoch: u64, samples: u64) -> Self {
        Self { epoch, samples }
    }
}
