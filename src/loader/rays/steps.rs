//! Batches of rays, step by step, and what happened.
//!
//! In the consumer.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::data::scenes::{MissingFiles, Scene};
use crate::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::jobs::rays::batch::RayBatch;
use crate::jobs::rays::on_device::DeviceRays;
use crate::jobs::rays::run::RayRun;
use crate::jobs::rays::spec;
use crate::jobs::stages;
use crate::loader::rays::state::RaysState;
use crate::loader::scene::{HeldStore, check_first_step};
use crate::plan::rays::RayTable;
use crate::pool::report::PoolReport;
use crate::pool::sandbox::Sandboxed;
use crate::pool::worker::meter::Stage;
use crate::store::Holding;

/// Rays of a scene: each step is a batch.
///
/// The rays of a step are a pure function of scene, options, seed, rank and step. So they
/// are the same for any number of workers, whoever dies, and a run goes on by its step
/// alone.
#[derive(Debug)]
pub struct Rays {
    pub(super) run: Maker,
    pub(super) scene: Scene,
    pub(super) images: Vec<PathBuf>,
    pub(super) store: HeldStore,
    pub(super) table: RayTable,
    /// Where the run began.
    pub(super) began: RaysState,
    pub(super) rays: u64,
    pub(super) startup: Duration,
}

/// Who makes the batches.
#[derive(Debug)]
pub(super) enum Maker {
    Workers(Box<RayRun>),
    Device(Box<DeviceRays>),
}

impl Maker {
    fn step(&self) -> u64 {
        match self {
            Self::Workers(run) => run.step(),
            Self::Device(rays) => rays.step(),
        }
    }

    fn go_to(&mut self, step: u64) {
        match self {
            Self::Workers(run) => run.go_to(step),
            Self::Device(rays) => rays.go_to(step),
        }
    }

    fn report(&self) -> Result<PoolReport> {
        match self {
            Self::Workers(run) => run.report(),
            Self::Device(rays) => rays.report(),
        }
    }
}

/// What happened so far.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RaysReport {
    /// Images that rays are drawn from, and those of them that are decoded.
    pub images: u64,
    pub decoded: u64,
    /// JPEGs that the device decoded. They are not in the store.
    pub decoded_on_device: u64,
    /// What the scene's files name and is not there.
    #[serde(flatten)]
    pub missing: MissingFiles,
    /// Bytes of all pixels in the store.
    pub store_bytes: u64,
    /// Whether those are in a file, since they do not fit in memory.
    pub in_file: bool,
    /// Of the memory that the batches lie in.
    pub ring_bytes: u64,
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped, because nobody read stderr.
    pub stderr_lost: u64,
    /// What workers were kept to.
    pub sandboxed: Sandboxed,
    /// Steps that each worker made.
    pub rows_by_worker: Vec<u64>,
    /// Seconds from the beginning of the build to its end.
    pub startup_s: f64,
    /// Seconds of all workers together: drawing pixels, decoding images, from pixels to
    /// rays, their colours, waiting for work.
    pub draw_s: f64,
    pub decode_s: f64,
    pub trace_s: f64,
    pub color_s: f64,
    pub idle_s: f64,
    /// Seconds that this process waited for batches.
    pub wait_s: f64,
    /// Processes of the workers that are alive.
    pub workers: Vec<i32>,
    /// None with zero workers.
    pub coordinator: Option<i32>,
    /// Where rays are made on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceMemory>,
}

impl Rays {
    /// The next step, as many rays as the builder was told.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`], with its path: the next call tries
    /// the step again); every batch held for too long; what ends the pool.
    pub fn next_batch(&mut self) -> Result<RayBatch> {
        self.next_rays(self.rays)
    }

    /// The next step with so many rays: the first ones of its sequence, so that a step's
    /// rays do not depend on how many are asked for.
    ///
    /// # Errors
    /// As [`Rays::next_batch`]; more rays than
    /// [`RaysBuilder::most_rays`](crate::rays::RaysBuilder::most_rays).
    pub fn next_rays(&mut self, rays: u64) -> Result<RayBatch> {
        loop {
            if let Some(batch) = self.next_rays_within(rays, Duration::MAX)? {
                return Ok(batch);
            }
        }
    }

    /// As [`Rays::next_rays`]; none when it is not there within `limit`.
    ///
    /// # Errors
    /// As [`Rays::next_rays`].
    pub fn next_rays_within(&mut self, rays: u64, limit: Duration) -> Result<Option<RayBatch>> {
        check_first_step(self.run.step())?;
        let whole = self.table.sampler().whole_rays(rays);
        if rays == 0 || whole != rays {
            let per_unit = u64::from(self.table.sampler().rays_per_unit());
            return Err(Error::config(format!(
                "{rays} rays are not whole units of {per_unit}: ask for {}",
                whole.max(per_unit)
            )));
        }
        match &mut self.run {
            Maker::Workers(run) => run.next_within(rays, limit),
            Maker::Device(device) => {
                device.next_within((&self.table, &self.store.pictures), rays, limit)
            }
        }
    }

    /// Images that rays are drawn from and that are decoded.
    fn decoded(&self) -> usize {
        let (images, pictures) = (self.table.drawn_images(), &self.store.pictures);
        match &self.run {
            Maker::Workers(_) => pictures.count(images),
            Maker::Device(rays) => rays.count(images, pictures),
        }
    }

    /// Whether every image that rays are drawn from is decoded: into the store, or on the device.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.decoded() == self.table.drawn_images().len()
    }

    /// The step of the next batch: all that a later run needs to go on.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.run.step()
    }

    /// The next batch is that of `step`. What is under way is given up.
    pub fn go_to(&mut self, step: u64) {
        self.run.go_to(step);
    }

    /// Where the run stands, with what a step's rays depend on.
    #[must_use]
    pub fn state(&self) -> RaysState {
        RaysState {
            step: self.run.step(),
            ..self.began.clone()
        }
    }

    /// Goes on where `state` stands.
    ///
    /// # Errors
    /// A state of another scene, seed, sampler, split or size: its rays would be others.
    pub fn resume(&mut self, state: &RaysState) -> Result<()> {
        state.check_resumable(&self.began)?;
        check_first_step(state.step)?;
        self.run.go_to(state.step);
        Ok(())
    }

    /// Batches that there is memory for; none where each has memory of its own.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match &self.run {
            Maker::Workers(run) => run.depth(),
            Maker::Device(rays) => Some(rays.depth()),
        }
    }

    /// The scene whose rays these are.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// The files of the images, as they are numbered in the batches.
    #[must_use]
    pub fn images(&self) -> &[PathBuf] {
        &self.images
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<RaysReport> {
        let pool = self.run.report()?;
        let seconds = |stage: Stage| stage.seconds(&pool.stage_ns);
        let decoding = [stages::OPEN, stages::DECODE, stages::RESAMPLE, stages::EMIT];
        Ok(RaysReport {
            images: self.table.drawn_images().len() as u64,
            decoded: self.decoded() as u64,
            decoded_on_device: match &self.run {
                Maker::Workers(_) => 0,
                Maker::Device(rays) => rays.decoded(),
            },
            missing: self.scene.missing.clone(),
            store_bytes: self.store.pictures.places().bytes(),
            in_file: self.store.pictures.holding() == Holding::File,
            ring_bytes: pool.ring_bytes,
            worker_deaths: pool.worker_deaths,
            stderr_lost: pool.stderr_lost,
            sandboxed: pool.sandboxed,
            rows_by_worker: pool.rows_by_worker,
            startup_s: self.startup.as_secs_f64(),
            draw_s: seconds(spec::DRAW),
            decode_s: decoding.map(seconds).iter().sum(),
            trace_s: seconds(spec::TRACE),
            color_s: seconds(spec::COLOR),
            idle_s: seconds(Stage::IDLE),
            wait_s: pool.consumer_wait_s,
            workers: pool.workers,
            coordinator: pool.coordinator,
            device: match &self.run {
                Maker::Workers(_) => None,
                Maker::Device(rays) => Some(rays.memory()?),
            },
        })
    }
}
