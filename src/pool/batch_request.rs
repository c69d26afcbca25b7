//! A batch that the consumer wants, before a slot is free.
//!
//! Runs in the consumer, which makes tickets of it.

use std::fmt;

use crate::pool::ring::ticket::{BatchKey, Ticket};

/// A batch to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRequest {
    /// Identifies the batch for the job.
    pub key: BatchKey,
    /// Epoch and number for error texts; `None` for jobs without epochs.
    pub epoch: Option<u64>,
    pub number: u64,
    /// Rows that workers fill.
    pub rows_to_fill: u32,
    /// Rows of the batch, including padding.
    pub rows: u32,
}

impl BatchRequest {
    /// A batch of a job without epochs. Its key is `[number, 0]`.
    pub fn numbered(number: u64, rows: u32) -> Self {
        Self {
            key: BatchKey([number, 0]),
            epoch: None,
            number,
            rows_to_fill: rows,
            rows,
        }
    }

    /// The ticket for this batch.
    pub(crate) fn ticket(&self, sequence: u32) -> Ticket {
        Ticket {
            sequence,
            key: self.key,
            rows: self.rows_to_fill,
        }
    }
}

impl fmt::Display for BatchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {}", self.number)?;
        match self.epoch {
            Some(epoch) => write!(f, " of epoch {epoch}"),
            None => Ok(()),
        }
    }
}
