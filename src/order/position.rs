//! Places that a caller names: a process's among the others, and a batch's in a run.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A process's place among those that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are.
    pub world: u32,
}

impl Rank {
    /// Process `rank` of `world`.
    #[must_use]
    pub fn new(rank: u32, world: u32) -> Self {
        Self { rank, world }
    }

    /// # Errors
    /// A number that is not below the number of processes.
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

/// Alone: 0 of 1.
impl Default for Rank {
    fn default() -> Self {
        Self::new(0, 1)
    }
}

/// A place of a run: the batch that comes next.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Position {
    pub epoch: u64,
    /// Batch of that epoch, on this rank.
    pub batch: u64,
}

impl Position {
    /// Before batch `batch` of epoch `epoch`; both count from 0.
    #[must_use]
    pub fn new(epoch: u64, batch: u64) -> Self {
        Self { epoch, batch }
    }
}

/// A place of an epoch between two batches, whatever their size: the samples of all ranks
/// that come before it. [`Plan::mark`](super::Plan::mark) makes it of a batch's number.
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
