//! Batches in order, made by workers.
//!
//! Runs in the consumer. A ticket is a step. Not here: how batches are made.

use std::fmt::Debug;
use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::row_filler::RowFiller;
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};
use crate::scene::jobs::shared::spec::untag_fault;

/// Tickets and batches of the steps, for one kind of run.
pub(crate) trait StepTickets: Debug {
    type Arrays: SceneArrays;
    /// The caller's parameter of a step.
    type Request: Copy;

    /// Whether the posted tickets are unsuitable for this request and later ones like it.
    fn changes_tickets(&mut self, request: Self::Request) -> bool;

    /// The ticket of a step.
    fn place(&self, step: u64) -> BatchRequest;

    /// Returns the bytes and arrays of a batch.
    ///
    /// # Errors
    /// A place that no ticket has.
    fn arrays(&self, place: &BatchRequest, request: Self::Request)
    -> Result<(usize, Self::Arrays)>;

    /// Converts a fault that names no image to an error.
    fn unnamed_fault(&self, index: &Index, step: u64, fault: SampleFault) -> Error;
}

/// Batches from workers, step by step.
#[derive(Debug)]
pub(crate) struct TicketRun<S> {
    pub(crate) filler: RowFiller,
    index: Index,
    steps: S,
}

impl<S> TicketRun<S> {
    /// `index` lists the image files.
    pub(crate) fn new(filler: RowFiller, index: Index, steps: S) -> Self {
        Self {
            filler,
            index,
            steps,
        }
    }
}

impl<S: StepTickets> TicketRun<S> {
    /// Returns the batch of `step`, or `None` if it is not ready within `limit`. If `step` does not
    /// follow the last batch, the caller must cancel the filler first.
    ///
    /// # Errors
    /// An image that cannot be read; an error that ends the pool.
    pub(crate) fn next_within(
        &mut self,
        step: u64,
        request: S::Request,
        limit: Duration,
    ) -> Result<Option<SceneBatch<S::Arrays>>> {
        if self.steps.changes_tickets(request) {
            self.filler.cancel();
        }
        let steps = &self.steps;
        let upcoming = |n: usize| Some(steps.place(step + n as u64));
        let Some(filled) = self.filler.next_within(&upcoming, limit)? else {
            return Ok(None);
        };
        let FilledBatch { place, rows, bad } = filled;
        if let Some(bad) = bad.first() {
            // The posted tickets are of later steps. The next call restarts with this step.
            self.filler.cancel();
            let (image, fault) = untag_fault(&bad.fault);
            return Err(match image {
                Some((id, file)) => Error::Sample {
                    id,
                    path: self.index.path(file),
                    fault,
                },
                None => self.steps.unnamed_fault(&self.index, place.number, fault),
            });
        }
        let (bytes, arrays) = self.steps.arrays(&place, request)?;
        Ok(Some(SceneBatch::host((rows, bytes), arrays, place.number)))
    }
}

impl<S> Drop for TicketRun<S> {
    /// Cancels all posted tickets.
    fn drop(&mut self) {
        self.filler.cancel();
    }
}
