//! What the user asks for, as options.
//!
//! In the consumer. Never in here: what is done with them (`start`).

use std::time::Duration;

use crate::device::Device;
use crate::loader::scene::{SceneRun, SceneSource, scene_run_options};
use crate::plan::Rank;

/// Builds [`Views`](crate::views::Views).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct ViewsBuilder {
    pub(super) source: SceneSource,
    pub(super) run: SceneRun,
    pub(super) shuffles: bool,
    pub(super) seed: u64,
    pub(super) rank: Rank,
    pub(super) first_step: u64,
    pub(super) float: bool,
    pub(super) undistort: bool,
    pub(super) device: Device,
    pub(super) gpu_memory_limit: Option<u64>,
}

impl ViewsBuilder {
    /// Most time that a view may take, when nobody says another: its image may be
    /// decoded by somebody else, who is waited for.
    pub const DEFAULT_ROW_LIMIT: Duration = SceneRun::DEFAULT_ROW_LIMIT;

    pub(super) fn new(source: SceneSource) -> Self {
        Self {
            source,
            run: SceneRun::new(),
            shuffles: true,
            seed: 0,
            rank: Rank::default(),
            first_step: 0,
            float: false,
            undistort: false,
            device: Device::Cpu,
            gpu_memory_limit: None,
        }
    }

    /// Whether each epoch is a new random order of the images. Default true; otherwise it
    /// is always the scene's.
    pub fn shuffle(mut self, shuffled: bool) -> Self {
        self.shuffles = shuffled;
        self
    }

    /// Seed of the orders. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Place of this process among those that train together, which take turns: position
    /// p of an epoch is that of rank p % world. Default: alone.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }

    /// The first step. Default 0: to go on, that of
    /// [`Views::step`](crate::views::Views::step).
    pub fn start(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    /// Whether images are straightened: shown as a pinhole camera sees them, with the
    /// numbers of [`Views::cameras`](crate::views::Views::cameras), and their masks and
    /// depths with them. Default false.
    pub fn undistort(mut self, straight: bool) -> Self {
        self.undistort = straight;
        self
    }

    /// Whether images are `f32` from 0 to 1. Default false: `u8`.
    pub fn float(mut self, float: bool) -> Self {
        self.float = float;
        self
    }

    scene_run_options!();

    /// Where views are made and end. Default [`Device::Cpu`]. On a device workers only decode
    /// images, each goes up once, and a kernel shows and straightens them: the same numbers, but
    /// for one in a million of straightened images, where a place rounds to the other side. All memory of the device is taken by `build`,
    /// which makes the device's primary context; views are
    /// [`View::on_device`](crate::views::View::on_device), 4 at a time or as many as `depth`.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Most bytes of the device that the run may take for itself, the device's context apart.
    /// Images that do not fit stay in the host's memory, where the kernel reads them over the
    /// bus: those that are shown last. Default: no limit.
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.gpu_memory_limit = Some(bytes);
        self
    }
}

#[cfg(feature = "internals")]
impl crate::pool::crew::Drilled for ViewsBuilder {
    fn crew(&mut self) -> &mut crate::pool::crew::Crew {
        &mut self.run.crew
    }
}
