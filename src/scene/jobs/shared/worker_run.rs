//! Batches in order, made by workers.
//!
//! In the consumer. A ticket is a step. Never in here: how batches are made.

use std::fmt::Debug;
use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::engine::Engine;
use crate::pool::filled::Filled;
use crate::pool::place::BatchPlace;
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};
use crate::scene::jobs::shared::spec::named_image;

/// What a kind of run knows of its steps.
pub(crate) trait WorkerSteps: Debug {
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;

    /// Whether tickets that are out do not serve this request, nor later ones like it.
    fn changes_tickets(&mut self, request: Self::Request) -> bool;

    /// The ticket of a step.
    fn place(&self, step: u64) -> BatchPlace;

    /// The bytes and arrays of a batch.
    ///
    /// # Errors
    /// A place that no ticket has.
    fn arrays(&self, place: &BatchPlace, request: Self::Request) -> Result<(usize, Self::Arrays)>;

    /// The error of a fault that names no image.
    fn unnamed(&self, index: &Index, step: u64, fault: SampleFault) -> Error;
}

/// Batches step by step.
#[derive(Debug)]
pub(crate) struct WorkerRun<S> {
    pub(crate) engine: Engine,
    index: Index,
    steps: S,
}

impl<S> WorkerRun<S> {
    /// `index` has the files of the images.
    pub(crate) fn new(engine: Engine, index: Index, steps: S) -> Self {
        Self {
            engine,
            index,
            steps,
        }
    }
}

impl<S: WorkerSteps> WorkerRun<S> {
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
        let Filled { place, rows, bad } = filled;
        if let Some(bad) = bad.first() {
            // The tickets behind it are of later steps: the next call begins anew.
            self.engine.cancel();
            let (image, fault) = named_image(&bad.fault);
            return Err(match image {
                Some((id, file)) => Error::Sample {
                    id,
                    path: self.index.path(file),
                    fault,
                },
                None => self.steps.unnamed(&self.index, place.number, fault),
            });
        }
        let (bytes, arrays) = self.steps.arrays(&place, request)?;
        Ok(Some(SceneBatch::host((rows, bytes), arrays, place.number)))
    }
}

impl<S> Drop for WorkerRun<S> {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}
