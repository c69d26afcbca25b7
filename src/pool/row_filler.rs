//! Who fills the rows of a run: workers, or this process.
//!
//! In the consumer. The one place where the two are told apart once a run has begun.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::batch_request::BatchRequest;
use crate::pool::consumer::Pool;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::in_process::InProcessLoop;
use crate::pool::pool_report::PoolReport;

/// Who fills the rows.
#[derive(Debug)]
pub enum RowFiller {
    Workers(Box<Pool>),
    InProcess(Box<InProcessLoop>),
}

impl RowFiller {
    /// The next batch. `coming(0)` is its place, `coming(n)` that of the n-th
    /// behind it, as far as the run is known.
    ///
    /// # Errors
    /// What ends the pool; every slot held for too long.
    pub fn next(&mut self, coming: &impl Fn(usize) -> Option<BatchRequest>) -> Result<FilledBatch> {
        loop {
            if let Some(filled) = self.next_within(coming, Duration::MAX)? {
                return Ok(filled);
            }
        }
    }

    /// As [`RowFiller::next`]; none when workers have not finished it within `limit`. In
    /// this process a batch takes the time that it takes.
    ///
    /// # Errors
    /// As [`RowFiller::next`].
    pub fn next_within(
        &mut self,
        coming: &impl Fn(usize) -> Option<BatchRequest>,
        limit: Duration,
    ) -> Result<Option<FilledBatch>> {
        match self {
            Self::Workers(pool) => pool.next_within(coming, limit),
            Self::InProcess(process) => match coming(0) {
                Some(place) => Ok(Some(process.fill(place))),
                None => Err(Error::protocol("a batch after the last was asked for")),
            },
        }
    }

    /// Slots of the ring; none where each batch has memory of its own.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match self {
            Self::Workers(pool) => Some(pool.depth()),
            Self::InProcess(_) => None,
        }
    }

    /// Nothing that is under way will be asked for.
    pub fn cancel(&mut self) {
        match self {
            Self::Workers(pool) => pool.cancel(),
            Self::InProcess(_) => {}
        }
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<PoolReport> {
        match self {
            Self::Workers(pool) => pool.report(),
            Self::InProcess(process) => Ok(process.report()),
        }
    }
}
