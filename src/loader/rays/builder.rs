//! What the user asks for, as options.
//!
//! In the consumer. Never in here: what is done with them (`prepared`, `start`).

use std::time::Duration;

use crate::device::Device;
use crate::loader::scene::{SceneRun, SceneSource, scene_run_options};
use crate::plan::{Rank, RaySampler};

/// Builds [`Rays`](crate::rays::Rays).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct RaysBuilder {
    pub(super) source: SceneSource,
    pub(super) run: SceneRun,
    pub(super) sampler: RaySampler,
    pub(super) seed: u64,
    pub(super) rank: Rank,
    pub(super) joining: u32,
    pub(super) rays: u64,
    pub(super) most_rays: Option<u64>,
    pub(super) first_step: u64,
    pub(super) device: Device,
    pub(super) gpu_memory_limit: Option<u64>,
}

impl RaysBuilder {
    /// Rays of a step, when nobody says another number.
    pub const DEFAULT_RAYS: u64 = 4096;

    /// Most time that a step may take, when nobody says another: a step in the middle of a
    /// training may find no image decoded, and waits for all that it needs.
    pub const DEFAULT_ROW_LIMIT: Duration = SceneRun::DEFAULT_ROW_LIMIT;

    /// Images that join at each step, when nobody says another number.
    pub const DEFAULT_JOINING: u32 = 4;

    pub(super) fn new(source: SceneSource) -> Self {
        Self {
            source,
            run: SceneRun::new(),
            sampler: RaySampler::default(),
            seed: 0,
            rank: Rank::default(),
            joining: Self::DEFAULT_JOINING,
            rays: Self::DEFAULT_RAYS,
            most_rays: None,
            first_step: 0,
            device: Device::Cpu,
            gpu_memory_limit: None,
        }
    }

    /// How rays are spread over the images. Default [`RaySampler::Uniform`].
    pub fn sampler(mut self, sampler: RaySampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// Seed of the draws. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Number of this process among those that train together: each draws rays of its
    /// own. Default 0 of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }

    /// Images that join at each step: step s draws from the first `images * (s + 1)` of a
    /// random order, so that training begins when a few are decoded. 0 draws from all at
    /// once, and the first step waits for every image that it draws from. Default
    /// [`RaysBuilder::DEFAULT_JOINING`].
    pub fn joining(mut self, images: u32) -> Self {
        self.joining = images;
        self
    }

    /// Rays of a step. Default [`RaysBuilder::DEFAULT_RAYS`].
    pub fn rays(mut self, rays: u64) -> Self {
        self.rays = rays;
        self
    }

    /// The most rays that [`Rays::next_rays`](crate::rays::Rays::next_rays) may ask for.
    /// Default: those of a step.
    pub fn most_rays(mut self, rays: u64) -> Self {
        self.most_rays = Some(rays);
        self
    }

    /// The first step. Default 0: to go on, that of
    /// [`Rays::step`](crate::rays::Rays::step).
    pub fn start(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    scene_run_options!();

    /// Where rays are made and end. Default [`Device::Cpu`]. On a device workers only decode
    /// images, each goes up once, and a kernel makes the rays: the same pixels and colours,
    /// directions and origins within 1e-6. All memory of the device is taken by `build`, which
    /// makes the device's primary context; batches are
    /// [`RayBatch::on_device`](crate::rays::RayBatch::on_device), 4 at a time or as many as
    /// `depth`.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Most bytes of the device that the run may take for itself, the device's context apart.
    /// Images that do not fit stay in the host's memory, where the kernel reads them over the
    /// bus: those that join last. Default: no limit.
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.gpu_memory_limit = Some(bytes);
        self
    }
}

#[cfg(feature = "internals")]
impl crate::pool::crew::Drilled for RaysBuilder {
    fn crew(&mut self) -> &mut crate::pool::crew::Crew {
        &mut self.run.crew
    }
}
