//! A batch as the consumer asks for it, before a slot is free.
//!
//! In the consumer, which makes tickets of it.

use std::fmt;

use crate::pool::ring::ticket::{BatchKey, Ticket};

/// A batch that is to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// What the job knows it by.
    pub key: BatchKey,
    /// What errors call it: its epoch, where the job has epochs, and its number.
    pub epoch: Option<u64>,
    pub number: u64,
    /// Rows for workers to fill.
    pub filled: u32,
    /// Rows of the batch, padding included.
    pub rows: u32,
}

impl BatchPlace {
    /// A batch of a job without epochs, whose key is this number and 0.
    pub fn numbered(number: u64, rows: u32) -> Self {
        Self {
            key: BatchKey([number, 0]),
            epoch: None,
            number,
            filled: rows,
            rows,
        }
    }

    /// The order to fill it.
    pub(crate) fn ticket(&self, sequence: u32) -> Ticket {
        Ticket {
            sequence,
            key: self.key,
            rows: self.filled,
        }
    }
}

impl fmt::Display for BatchPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {}", self.number)?;
        match self.epoch {
            Some(epoch) => write!(f, " of epoch {epoch}"),
            None => Ok(()),
        }
    }
}
