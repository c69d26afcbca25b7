//! Where a batch stands in a run: numbers alone.
//!
//! In the consumer, which makes tickets of it.

use crate::pool::ring::ticket::Ticket;

/// Where a batch stands in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub epoch: u64,
    /// What the job knows the batch by.
    pub batch: u64,
    /// What people know it by.
    pub number: u64,
    /// Rows for workers to fill.
    pub filled: u32,
    /// Rows of the batch, padding included.
    pub rows: u32,
}

impl Place {
    /// The order to fill it.
    pub(crate) fn ticket(&self, sequence: u32) -> Ticket {
        Ticket {
            sequence,
            epoch: self.epoch,
            batch: self.batch,
            rows: self.filled,
        }
    }
}
