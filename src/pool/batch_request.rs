//! A batch as the consumer asks for it, before a slot is free.
//!
//! In the consumer, which makes tickets of it.

use std::fmt;

use crate::pool::ring::ticket::{BatchKey, Ticket};

/// A batch that is to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRequest {
    /// What the job knows it by.
    pub key: BatchKey,
    /// What errors call it: its epoch, where the job has epochs, and its number.
    pub epoch: Option<u64>,
    pub number: u64,
    /// Rows for workers to fill.
    pub rows_to_fill: u32,
    /// Rows of the batch, padding included.
    pub rows: u32,
}

impl BatchRequest {
    /// A batch of a job without epochs, whose key is this number and 0.
    pub fn numbered(number: u64, rows: u32) -> Self {
        Self {
            key: BatchKey([number, 0]),
            epoch: None,
            number,
            rows_to_fill: rows,
            rows,
        }
    }

    /// The order to fill it.
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
