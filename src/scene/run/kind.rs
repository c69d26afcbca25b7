//! The trait of a kind of run over a scene: what differs between rays and views.
//!
//! Runs in the consumer. Not here: the kinds themselves.

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

/// A kind of run over the images of a scene. A value of the type holds the run's data of this kind.
/// Only this library implements it.
///
/// A run calls the functions in order: `check` and `plan` before it allocates anything, the others
/// after the coordinator has started.
#[expect(
    private_bounds,
    private_interfaces,
    reason = "all kinds are in this crate"
)]
pub trait SceneKind: Debug + Sized {
    /// Options that only this kind has.
    type Options: Debug + Default;
    /// Values computed from options and frames.
    type Plan: Debug;
    /// Inputs for making batches, before workers or a device start.
    type Setup;
    /// The arrays of a batch.
    type Arrays: SceneArrays;
    /// The caller's parameter of a step, such as the number of rays.
    type Request: Copy;
    /// The position from which a run resumes.
    type State: SceneState;
    /// The part of the report that only this kind has.
    type Work: Debug + Clone + Serialize;
    #[doc(hidden)]
    type Workers: StepTickets<Arrays = Self::Arrays, Request = Self::Request>;
    #[doc(hidden)]
    type Kernel: KernelSteps<Arrays = Self::Arrays, Request = Self::Request>;

    /// Options that make batches smaller, as errors name them: those for the ring, and those for a
    /// device.
    const LOWER: [&'static str; 2];

    /// Default limit of batches made ahead.
    const MOST_DEPTH: u32;

    /// # Errors
    /// Options that are invalid for any scene.
    fn check(_options: &Self::Options) -> Result<()> {
        Ok(())
    }

    /// # Errors
    /// Options that are invalid for these frames; images that the kernel does not support.
    fn plan(
        run: &RunOptions,
        options: &Self::Options,
        chosen: &SplitFrames,
    ) -> Result<(Self::Plan, RunSizes)>;

    /// Returns the masks of the frames that have one, in frame order. `words` are the masks read
    /// from files.
    ///
    /// # Errors
    /// Words that are not a mask of the frame.
    fn masks(_chosen: &mut SplitFrames, words: Vec<Vec<u64>>) -> Result<Vec<Vec<u64>>> {
        Ok(words)
    }

    /// Seals the sampling data. Returns the first state, the data that the run keeps, and the
    /// inputs for making batches. `facts` are the fields that states of all kinds have.
    ///
    /// # Errors
    /// No data to make batches of; a system call that fails.
    fn prepare_batches(
        options: &Self::Options,
        plan: Self::Plan,
        read: SceneInputs,
        facts: SceneFacts,
    ) -> Result<(Self::State, Self, Self::Setup)>;

    /// Returns the workers' job, and the ticket of `step`.
    ///
    /// # Errors
    /// A spec that cannot be serialised.
    fn order<'a>(
        setup: &'a Self::Setup,
        memory: StoreMemory<'a>,
        step: u64,
    ) -> Result<(JobRequest<'a>, BatchRequest)>;

    /// Tickets of batches that workers make. The workers are already running.
    fn workers(setup: Self::Setup) -> Self::Workers;

    /// Opens the device. It makes batches from `step` on.
    ///
    /// # Errors
    /// No such device; memory beyond the device's or the limit.
    fn kernel(setup: Self::Setup, run: DeviceRun<'_>, step: u64)
    -> Result<KernelRun<Self::Kernel>>;

    /// # Errors
    /// A request that no step can satisfy.
    fn check_request(&self, _request: Self::Request) -> Result<()> {
        Ok(())
    }

    /// The images that the steps use.
    fn images(&self) -> Cow<'_, [u32]>;

    /// The first image that is used from `step` on.
    fn first_image(&self, step: u64) -> u32;

    fn work(pool: &PoolReport, startup: Duration) -> Self::Work;
}
