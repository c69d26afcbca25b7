//! Batches in order, made by workers.
//!
//! In the consumer. A ticket is a step. Never in here: how batches are made.

use std::fmt::Debug;
use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::row_filler::RowFiller;
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};
use crate::scene::jobs::shared::spec::untag_fault;

/// What a kind of run knows of its steps.
pub(crate) trait StepTickets: Debug {
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;

    /// Whether tickets that are out do not serve this request, nor later ones like it.
    fn changes_tickets(&mut self, request: Self::Request) -> bool;

    /// The ticket of a step.
    fn place(&self, step: u64) -> BatchRequest;

    /// The bytes and arrays of a batch.
    ///
    /// # Errors
    /// A place that no ticket has.
    fn arrays(&self, place: &BatchRequest, request: Self::Request)
    -> Result<(usize, Self::Arrays)>;

    /// The error of a fault that names no image.
    fn unnamed_fault(&self, index: &Index, step: u64, fault: SampleFault) -> Error;
}

/// Batches step by step.
#[derive(Debug)]
pub(crate) struct TicketRun<S> {
    pub(crate) engine: RowFiller,
    index: Index,
    steps: S,
}

impl<S> TicketRun<S> {
    /// `index` has the files of the images.
    pub(crate) fn new(engine: RowFiller, index: Index, steps: S) -> Self {
        Self {
            engine,
            index,
            steps,
        }
    }
}

impl<S: StepTickets> TicketRun<S> {
    /// The batch of `step`; none when it is not there within `limit`. Another step than the one
    /// after the last batch is asked for after a cancel of the engine.
    ///
    /// # Errors
    /// An image that cannot be read; what ends the pool.
    pub(crate) fn next_within(
        &mut self,
        step: u64,
        request: S::Request,
        limit: Duration,
    ) -> Result<Option<SceneBatch<S::Arrays>>> {
        if self.steps.changes_tickets(request) {
            self.engine.cancel();
        }
        let steps = &self.steps;
        let coming = |n: usize| Some(steps.place(step + n as u64));
        let Some(filled) = self.engine.next_within(&coming, limit)? else {
            return Ok(None);
        };
        let FilledBatch { place, rows, bad } = filled;
        if let Some(bad) = bad.first() {
            // The tickets behind it are of later steps: the next call begins anew.
            self.engine.cancel();
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
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}
