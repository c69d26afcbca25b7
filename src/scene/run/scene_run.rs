//! A run over the images of a scene: batches, step by step.
//!
//! Runs in the consumer.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Result;
use crate::scene::data::Scene;
use crate::scene::image_store::StoreBacking;
use crate::scene::jobs::shared::batch::SceneBatch;
use crate::scene::jobs::shared::kernel_run::KernelRun;
use crate::scene::jobs::shared::ticket_run::TicketRun;
use crate::scene::run::kind::SceneKind;
use crate::scene::run::report::SceneReport;
use crate::scene::run::run_store::RunStore;
use crate::scene::run::state::{SceneState, check_first_step};

/// A run over the images of a scene: [`Rays`](crate::rays::Rays) or [`Views`](crate::views::Views).
/// Each step is a batch.
///
/// The batch of a step is a pure function of scene, options, seed, rank and step. So it does not
/// depend on the number of workers or on crashes, and the step alone is enough to continue a run.
#[derive(Debug)]
pub struct SceneRun<K: SceneKind> {
    pub(super) maker: SceneBatchMaker<K>,
    /// The step of the next batch.
    pub(super) step: u64,
    pub(crate) kind: K,
    pub(super) scene: Scene,
    pub(super) images: Vec<PathBuf>,
    pub(super) store: RunStore,
    /// The state at the start of the run.
    pub(super) start_state: K::State,
    pub(super) startup: Duration,
}

/// Makes the batches.
#[derive(Debug)]
pub(super) enum SceneBatchMaker<K: SceneKind> {
    Workers(Box<TicketRun<K::Workers>>),
    Device(Box<KernelRun<K::Kernel>>),
}

impl<K: SceneKind> SceneRun<K> {
    /// Returns the next batch, or `None` if it is not ready within `limit`.
    ///
    /// # Errors
    /// A request that no step can satisfy; an image that cannot be read; every batch held for too
    /// long; an error that ends the pool.
    pub(crate) fn next_within(
        &mut self,
        request: K::Request,
        limit: Duration,
    ) -> Result<Option<SceneBatch<K::Arrays>>> {
        check_first_step(self.step)?;
        self.kind.check_request(request)?;
        let (step, pictures) = (self.step, &self.store.images);
        let batch = match &mut self.maker {
            SceneBatchMaker::Workers(run) => run.next_within(step, request, limit)?,
            SceneBatchMaker::Device(run) => run.next_within(step, pictures, request, limit)?,
        };
        self.step += u64::from(batch.is_some());
        Ok(batch)
    }

    /// Number of images that the steps use and that are decoded.
    fn decoded(&self) -> usize {
        let (images, pictures) = (self.kind.images(), &self.store.images);
        match &self.maker {
            SceneBatchMaker::Workers(_) => pictures.count_present(&images),
            SceneBatchMaker::Device(run) => run.images.count(&images, pictures),
        }
    }

    /// Whether every image that the steps use is decoded, in the image store or on the device.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.decoded() == self.kind.images().len()
    }

    /// The step of the next batch. A later run can continue from it.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Makes `step` the next step. Cancels batches in progress.
    pub fn go_to(&mut self, step: u64) {
        if step == self.step {
            return;
        }
        self.step = step;
        match &mut self.maker {
            SceneBatchMaker::Workers(run) => run.filler.cancel(),
            SceneBatchMaker::Device(run) => run.go_to(step),
        }
    }

    /// The position of the run, with everything that determines a step's batch.
    #[must_use]
    pub fn state(&self) -> K::State {
        self.start_state.at(self.step)
    }

    /// Continues at the position of `state`.
    ///
    /// # Errors
    /// A state of other batches: of another scene, seed, split or size, or with other options that
    /// change the batches.
    pub fn resume(&mut self, state: &K::State) -> Result<()> {
        state.check_resumable(&self.start_state)?;
        check_first_step(state.step())?;
        self.go_to(state.step());
        Ok(())
    }

    /// Number of batches with shared memory; `None` if each batch has its own memory.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match &self.maker {
            SceneBatchMaker::Workers(run) => run.filler.depth(),
            SceneBatchMaker::Device(run) => Some(run.depth()),
        }
    }

    /// The scene of the run.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// Image files, in the order in which batches number them.
    #[must_use]
    pub fn images(&self) -> &[PathBuf] {
        &self.images
    }

    /// Returns a report of the run so far.
    ///
    /// # Errors
    /// A coordinator or device that does not answer.
    pub fn report(&self) -> Result<SceneReport<K::Work>> {
        let (pool, decoded_on_device, device) = match &self.maker {
            SceneBatchMaker::Workers(run) => (run.filler.report()?, 0, None),
            SceneBatchMaker::Device(run) => {
                let pictures = &run.images;
                (pictures.report()?, pictures.decoded(), Some(run.memory()?))
            }
        };
        Ok(SceneReport {
            images: self.kind.images().len() as u64,
            decoded: self.decoded() as u64,
            decoded_on_device,
            missing: self.scene.missing.clone(),
            store_bytes: self.store.images.layout().bytes(),
            in_file: self.store.images.backing() == StoreBacking::File,
            ring_bytes: pool.processes.ring_bytes,
            worker_deaths: pool.processes.worker_deaths,
            stderr_lost: pool.processes.stderr_lost,
            work: K::work(&pool, self.startup),
            sandboxed: pool.processes.sandboxed,
            wait_s: pool.consumer_wait_s,
            workers: pool.processes.workers,
            coordinator: pool.processes.coordinator,
            device,
        })
    }
}
