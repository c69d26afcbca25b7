//! A kind of run over the images of a scene: what rays and views do not share.
//!
//! In the consumer. Never in here: one of the kinds.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use serde::Serialize;

use crate::error::Result;
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::JobRequest;
use crate::pool::pool_report::PoolReport;
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::shared::batch::SceneArrays;
use crate::scene::jobs::shared::kernel_run::{KernelRun, KernelSteps};
use crate::scene::jobs::shared::spec::StoreMemory;
use crate::scene::jobs::shared::ticket_run::StepTickets;
use crate::scene::run::memory::RunSizes;
use crate::scene::run::options::RunOptions;
use crate::scene::run::split_frames::{SceneInputs, SplitFrames};
use crate::scene::run::state::{SceneFacts, SceneState};

/// A kind of run over the images of a scene, and what it keeps for as long as the run is. Only
/// this library has any.
///
/// Its functions are called in their order: `check` and `plan` before anything is allocated, the
/// others after the start of the coordinator.
#[expect(
    private_bounds,
    private_interfaces,
    reason = "all kinds are in this crate"
)]
pub trait SceneKind: Debug + Sized {
    /// Options that other kinds do not have.
    type Options: Debug + Default;
    /// What follows from options and frames.
    type Plan: Debug;
    /// What makes batches, before workers or a device are started.
    type Setup;
    /// The arrays of a batch.
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;
    /// From where a run goes on.
    type State: SceneState;
    /// The part of the report that other kinds do not have.
    type Work: Debug + Clone + Serialize;
    #[doc(hidden)]
    type Workers: StepTickets<Arrays = Self::Arrays, Request = Self::Request>;
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

    /// # Errors
    /// Options that cannot work with these frames; images that no kernel takes.
    fn plan(
        run: &RunOptions,
        options: &Self::Options,
        chosen: &SplitFrames,
    ) -> Result<(Self::Plan, RunSizes)>;

    /// The masks of the frames that have one, in order. `words` are those that were read.
    ///
    /// # Errors
    /// Masks that are none.
    fn masks(_chosen: &mut SplitFrames, words: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>> {
        Ok(words)
    }

    /// Seals what is drawn from. Where the run begins, from `facts` on; what it keeps; and what
    /// makes its batches.
    ///
    /// # Errors
    /// Nothing to make batches of; a system that refuses.
    fn prepare_batches(
        options: &Self::Options,
        plan: Self::Plan,
        read: SceneInputs,
        facts: SceneFacts,
    ) -> Result<(Self::State, Self, Self::Setup)>;

    /// The job of workers that make batches, and the ticket of `step`.
    ///
    /// # Errors
    /// A spec that cannot be written.
    fn order<'a>(
        setup: &'a Self::Setup,
        memory: StoreMemory<'a>,
        step: u64,
    ) -> Result<(JobRequest<'a>, BatchRequest)>;

    /// Batches by workers, which were started.
    fn workers(setup: Self::Setup) -> Self::Workers;

    /// Batches by a device, which is opened. From `step` on.
    ///
    /// # Errors
    /// No such device; what does not fit it, or the limit.
    fn kernel(setup: Self::Setup, run: DeviceRun<'_>, step: u64)
    -> Result<KernelRun<Self::Kernel>>;

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
