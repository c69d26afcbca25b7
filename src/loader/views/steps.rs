//! Views, step by step, and what happened.
//!
//! In the consumer.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::camera::Camera;
use crate::data::scenes::{MissingFiles, Scene};
use crate::device::DeviceMemory;
use crate::error::Result;
use crate::jobs::stages;
use crate::jobs::views::on_device::DeviceViews;
use crate::jobs::views::run::ViewRun;
use crate::jobs::views::spec;
use crate::jobs::views::view::View;
use crate::loader::scene::{HeldStore, check_first_step};
use crate::loader::views::state::ViewsState;
use crate::plan::ViewOrder;
use crate::pool::report::PoolReport;
use crate::pool::sandbox::Sandboxed;
use crate::pool::worker::meter::Stage;
use crate::store::Holding;

/// Whole images of a scene: each step is one of them.
///
/// The image of a step is a pure function of scene, options, seed, rank and step. So it is
/// the same for any number of workers, whoever dies, and a run goes on by its step alone.
#[derive(Debug)]
pub struct Views {
    pub(super) run: Maker,
    pub(super) scene: Scene,
    pub(super) images: Vec<PathBuf>,
    pub(super) cameras: Vec<Camera>,
    pub(super) store: HeldStore,
    pub(super) order: ViewOrder,
    /// Where the run began.
    pub(super) began: ViewsState,
    pub(super) startup: Duration,
}

/// Who makes the views.
#[derive(Debug)]
pub(super) enum Maker {
    Workers(Box<ViewRun>),
    Device(Box<DeviceViews>),
}

impl Maker {
    fn step(&self) -> u64 {
        match self {
            Self::Workers(run) => run.step(),
            Self::Device(views) => views.step(),
        }
    }

    fn go_to(&mut self, step: u64) {
        match self {
            Self::Workers(run) => run.go_to(step),
            Self::Device(views) => views.go_to(step),
        }
    }

    fn report(&self) -> Result<PoolReport> {
        match self {
            Self::Workers(run) => run.report(),
            Self::Device(views) => views.report(),
        }
    }
}

/// What happened so far.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ViewsReport {
    /// Images of the split, and those of them that are in the store.
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
    /// Of the memory that the views lie in.
    pub ring_bytes: u64,
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped, because nobody read stderr.
    pub stderr_lost: u64,
    /// What workers were kept to.
    pub sandboxed: Sandboxed,
    /// Seconds from the beginning of the build to its end.
    pub startup_s: f64,
    /// Seconds of all workers together: decoding images, from the store to the view,
    /// waiting for work.
    pub decode_s: f64,
    pub show_s: f64,
    pub idle_s: f64,
    /// Seconds that this process waited for views.
    pub wait_s: f64,
    /// Processes of the workers that are alive.
    pub workers: Vec<i32>,
    /// None with zero workers.
    pub coordinator: Option<i32>,
    /// Where views are made on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceMemory>,
}

impl Views {
    /// The next view.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`](crate::Error::Sample), with its
    /// path: the next call tries it again); every view held for too long; what ends the
    /// pool.
    pub fn next_view(&mut self) -> Result<View> {
        loop {
            if let Some(view) = self.next_view_within(Duration::MAX)? {
                return Ok(view);
            }
        }
    }

    /// As [`Views::next_view`]; none when it is not there within `limit`.
    ///
    /// # Errors
    /// As [`Views::next_view`].
    pub fn next_view_within(&mut self, limit: Duration) -> Result<Option<View>> {
        check_first_step(self.run.step())?;
        match &mut self.run {
            Maker::Workers(run) => run.next_within(limit),
            Maker::Device(views) => views.next_within(&self.store.pictures, limit),
        }
    }

    /// Steps of an epoch of this rank: step s is of epoch s / this.
    #[must_use]
    pub fn epoch_len(&self) -> u64 {
        self.order.len()
    }

    /// Images that are decoded.
    fn decoded(&self) -> usize {
        let all: Vec<u32> = (0..self.images.len() as u32).collect();
        match &self.run {
            Maker::Workers(_) => self.store.pictures.count(&all),
            Maker::Device(views) => views.count(&all, &self.store.pictures),
        }
    }

    /// Whether every image of the split is decoded: into the store, or on the device.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.decoded() == self.images.len()
    }

    /// The step of the next view: all that a later run needs to go on.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.run.step()
    }

    /// The next view is that of `step`. What is under way is given up.
    pub fn go_to(&mut self, step: u64) {
        self.run.go_to(step);
    }

    /// Where the run stands, with what a step's view depends on.
    #[must_use]
    pub fn state(&self) -> ViewsState {
        ViewsState {
            step: self.run.step(),
            ..self.began.clone()
        }
    }

    /// Goes on where `state` stands.
    ///
    /// # Errors
    /// A state of another scene, seed, split or size: its views would be others.
    pub fn resume(&mut self, state: &ViewsState) -> Result<()> {
        state.check_resumable(&self.began)?;
        check_first_step(state.step)?;
        self.run.go_to(state.step);
        Ok(())
    }

    /// Views that there is memory for; none where each has memory of its own.
    #[must_use]
    pub fn depth(&self) -> Option<u32> {
        match &self.run {
            Maker::Workers(run) => run.depth(),
            Maker::Device(views) => Some(views.depth()),
        }
    }

    /// The scene whose views these are.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// The files of the images, as [`View::index`] numbers them.
    #[must_use]
    pub fn images(&self) -> &[PathBuf] {
        &self.images
    }

    /// The camera of each image as it is shown, as [`View::index`] numbers them.
    #[must_use]
    pub fn cameras(&self) -> &[Camera] {
        &self.cameras
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<ViewsReport> {
        let pool = self.run.report()?;
        let seconds = |stage: Stage| stage.seconds(&pool.stage_ns);
        let decoding = [stages::OPEN, stages::DECODE, stages::RESAMPLE, stages::EMIT];
        Ok(ViewsReport {
            images: self.images.len() as u64,
            decoded: self.decoded() as u64,
            decoded_on_device: match &self.run {
                Maker::Workers(_) => 0,
                Maker::Device(views) => views.decoded(),
            },
            missing: self.scene.missing.clone(),
            store_bytes: self.store.pictures.places().bytes(),
            in_file: self.store.pictures.holding() == Holding::File,
            ring_bytes: pool.ring_bytes,
            worker_deaths: pool.worker_deaths,
            stderr_lost: pool.stderr_lost,
            sandboxed: pool.sandboxed,
            startup_s: self.startup.as_secs_f64(),
            decode_s: decoding.map(seconds).iter().sum(),
            show_s: seconds(spec::SHOW),
            idle_s: seconds(Stage::IDLE),
            wait_s: pool.consumer_wait_s,
            workers: pool.workers,
            coordinator: pool.coordinator,
            device: match &self.run {
                Maker::Workers(_) => None,
                Maker::Device(views) => Some(views.memory()?),
            },
        })
    }
}
