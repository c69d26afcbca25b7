//! A run over the images of a scene: batches, step by step.
//!
//! In the consumer.

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

/// A run over the images of a scene: [`Rays`](crate::rays::Rays) or
/// [`Views`](crate::views::Views). Each step is a batch.
///
/// The batch of a step is a pure function of scene, options, seed, rank and step. So it is the
/// same for any number of workers, whoever dies, and a run goes on by its step alone.
#[derive(Debug)]
pub struct SceneRun<K: SceneKind> {
    pub(super) maker: SceneBatchMaker<K>,
    /// The step of the next batch.
    pub(super) step: u64,
    pub(crate) kind: K,
    pub(super) scene: Scene,
    pub(super) images: Vec<PathBuf>,
    pub(super) store: RunStore,
    /// Where the run began.
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
    /// The next batch; none when it is not there within `limit`.
    ///
    /// # Errors
    /// A request that no step can meet; an image that cannot be read; every batch held for too
    /// long; what ends the pool.
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

    /// Images that steps need and that are decoded.
    fn decoded(&self) -> usize {
        let (images, pictures) = (self.kind.images(), &self.store.images);
        match &self.maker {
            SceneBatchMaker::Workers(_) => pictures.count_present(&images),
            SceneBatchMaker::Device(run) => run.images.count(&images, pictures),
        }
    }

    /// Whether every image that steps need is decoded: into the store, or on the device.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.decoded() == self.kind.images().len()
    }

    /// The step of the next batch: all that a later run needs to go on.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The next batch is that of `step`. What is under way is given up.
    pub fn go_to(&mut self, step: u64) {
        if step == self.step {
            return;
        }
        self.step = step;
        match &mut self.maker {
            SceneBatchMaker::Workers(run) => run.engine.cancel(),
            SceneBatchMaker::Device(run) => run.go_to(step),
        }
    }

    /// Where the run stands, with what a step's batch depends on.
    #[must_use]
    pub fn state(&self) -> K::State {
        self.start_state.at(self.step)
    }

    /// Goes on where `state` stands.
    ///
    /// # Errors
    /// A state of other batches: of another scene, seed, split or size, or with other options
    /// that they depend on.
    pub fn resume(&mut self, state: &K::State) -> Result<()> {
        state.check_resumable(&self.start_state)?;
        check_first_step(state.step())?;
        self.go_to(state.step());
        Ok(())
    }

    /// Batches that there is memory for; none where each has memory of its own.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match &self.maker {
            SceneBatchMaker::Workers(run) => run.engine.depth(),
            SceneBatchMaker::Device(run) => Some(run.depth()),
        }
    }

    /// The scene that the batches are of.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// The files of the images, as batches number them.
    #[must_use]
    pub fn images(&self) -> &[PathBuf] {
        &self.images
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator, or the device, does not answer.
    pub fn report(&self) -> Result<SceneReport<K::Work>> {
        let (pool, decoded_on_device, device) = match &self.maker {
            SceneBatchMaker::Workers(run) => (run.engine.report()?, 0, None),
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
