//! Fills the rows of a run, with workers or in this process.
//!
//! Runs in the consumer. After the start, only this file distinguishes the two.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::batch_request::BatchRequest;
use crate::pool::consumer::Pool;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::in_process::InProcessLoop;
use crate::pool::pool_report::PoolReport;

/// Fills the rows of a run.
#[derive(Debug)]
pub enum RowFiller {
    Workers(Box<Pool>),
    InProcess(Box<InProcessLoop>),
}

impl RowFiller {
    /// Returns the next batch. `upcoming(0)` describes it, `upcoming(n)` the n-th batch after it,
    /// as far as the run is known.
    ///
    /// # Errors
    /// The pool has ended; every slot is held for too long.
    pub fn next(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
    ) -> Result<FilledBatch> {
        loop {
            if let Some(filled) = self.next_within(upcoming, Duration::MAX)? {
                return Ok(filled);
            }
        }
    }

    /// Like [`RowFiller::next`], but returns `None` if workers have not finished the batch within
    /// `limit`. Without workers the limit has no effect.
    ///
    /// # Errors
    /// Like [`RowFiller::next`].
    pub fn next_within(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
        limit: Duration,
    ) -> Result<Option<FilledBatch>> {
        match self {
            Self::Workers(pool) => pool.next_within(upcoming, limit),
            Self::InProcess(process) => match upcoming(0) {
                Some(place) => Ok(Some(process.fill(place))),
                None => Err(Error::protocol("a batch after the last was requested")),
            },
        }
    }

    /// Number of slots of the ring; `None` without workers, where each batch has its own memory.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match self {
            Self::Workers(pool) => Some(pool.depth()),
            Self::InProcess(_) => None,
        }
    }

    /// Cancels all batches in flight.
    pub fn cancel(&mut self) {
        match self {
            Self::Workers(pool) => pool.cancel(),
            Self::InProcess(_) => {}
        }
    }

    /// Counters since the start.
    ///
    /// # Errors
    /// The coordinator does not answer.
    pub fn report(&self) -> Result<PoolReport> {
        match self {
            Self::Workers(pool) => pool.report(),
            Self::InProcess(process) => Ok(process.report()),
        }
    }
}
