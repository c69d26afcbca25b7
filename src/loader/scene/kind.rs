//! A kind of run over the images of a scene: what rays and views do not share.
//!
//! In the consumer. Never in here: one of the kinds.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::error::Result;
use crate::jobs::pictures::on_device::DeviceRun;
use crate::jobs::scene::batch::SceneArrays;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::kernel_run::{KernelRun, KernelSteps};
use crate::jobs::scene::spec::{StoreMemory, StoreSpec};
use crate::jobs::scene::worker_run::WorkerSteps;
use crate::loader::scene::chosen::Chosen;
use crate::loader::scene::memory::Beside;
use crate::loader::scene::options::RunOptions;
use crate::loader::scene::state::{SceneFacts, SceneState};
use crate::pool::job::JobOrder;
use crate::pool::report::PoolReport;

/// A kind of run over the images of a scene, and what it keeps for as long as the run is. Only
/// this library has any.
///
/// Its functions are called in their order: `check` and `plan` before anything is allocated, the
/// others behind the start of the coordinator.
#[expect(
    private_bounds,
    private_interfaces,
    reason = "nobody else has a kind of run"
)]
pub trait SceneKind: Debug + Sized {
    /// Options that other kinds do not have.
    type Options: Debug + Default;
    /// What follows from options and frames.
    type Plan: Debug;
    /// What is sealed for workers and kernels.
    type Tables;
    /// What workers are sent.
    type Spec: Copy;
    /// The arrays of a batch.
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;
    /// From where a run goes on.
    type State: SceneState;
    /// The part of the report that other kinds do not have.
    type Work: Debug + Clone + Serialize;
    #[doc(hidden)]
    type Workers: WorkerSteps<Arrays = Self::Arrays, Request = Self::Request>;
    #[doc(hidden)]
    type Kernel: KernelSteps<Arrays = Self::Arrays, Request = Self::Request>;

    /// The options that make batches smaller, as errors name them: where the ring, and where a
    /// device has no room.
    const LOWER: [&'static str; 2];

    /// The most batches that are made ahead, when nobody says another number.
    const MOST_DEPTH: u32;

    /// # Errors
    /// Options that cannot work, whatever the scene.
    fn check(_options: &Self::Options) -> Result<()> {
        Ok(())
    }

    /// What the run takes beside store and ring; `device` is left out.
    ///
    /// # Errors
    /// Options that cannot work with these frames.
    fn plan(
        run: &RunOptions,
        options: &Self::Options,
        chosen: &Chosen,
    ) -> Result<(Self::Plan, Beside)>;

    /// The images that go to a device, in the order in which they are needed, and the bytes of
    /// all else that lies there from the beginning.
    ///
    /// # Errors
    /// Images that no kernel takes.
    fn on_device(
        run: &RunOptions,
        plan: &Self::Plan,
        beside: &Beside,
        chosen: &Chosen,
    ) -> Result<(Vec<u32>, u64)>;

    /// The masks of the frames that have one, in order. `words` are those that were read.
    ///
    /// # Errors
    /// Masks that are none.
    fn masks(_chosen: &mut Chosen, words: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>> {
        Ok(words)
    }

    /// Where the run begins.
    fn state(options: &Self::Options, facts: SceneFacts) -> Self::State;

    /// # Errors
    /// Nothing to make batches of; a system that refuses.
    fn tables(
        options: (&RunOptions, &Self::Options),
        plan: &Self::Plan,
        chosen: &Chosen,
        words: &[Vec<u64>],
    ) -> Result<Self::Tables>;

    fn spec(
        options: &Self::Options,
        plan: &Self::Plan,
        depth_scale: f64,
        store: StoreSpec,
    ) -> Self::Spec;

    /// What the run keeps.
    fn new(
        options: &Self::Options,
        plan: &Self::Plan,
        tables: &Self::Tables,
        chosen: &Chosen,
    ) -> Self;

    /// Orders the job of workers that make batches.
    ///
    /// # Errors
    /// A spec that cannot be written.
    fn order<'a>(
        spec: &Self::Spec,
        memory: StoreMemory<'a>,
        tables: &'a Self::Tables,
    ) -> Result<JobOrder<'a>>;

    /// Batches by workers. `root` is the scene's folder.
    fn workers(
        &self,
        spec: Self::Spec,
        plan: Self::Plan,
        frames: StoredFrames,
        root: PathBuf,
    ) -> Self::Workers;

    /// Batches by a device, which is opened. From `step` on.
    ///
    /// # Errors
    /// No such device; what does not fit it, or the limit.
    fn kernel(
        spec: (Self::Spec, Self::Plan),
        tables: &Self::Tables,
        frames: StoredFrames,
        run: DeviceRun<'_>,
        step: u64,
    ) -> Result<KernelRun<Self::Kernel>>;

    /// # Errors
    /// A request that no step can meet.
    fn check_request(&self, _request: Self::Request) -> Result<()> {
        Ok(())
    }

    /// The images that steps need.
    fn images(&self) -> Cow<'_, [u32]>;

    /// The first image that is needed from `step` on.
    fn first_image(&self, step: u64) -> u32;

    fn work(pool: &PoolReport, startup: Duration) -> Self::Work;
}
