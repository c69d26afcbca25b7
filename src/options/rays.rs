//! Rays of a scene, as a caller says it.
//!
//! In the consumer. How the scene itself is read is
//! [`SceneOptions`](crate::scenes::SceneOptions). Never in here: defaults; the builder has
//! them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::data::scenes::Split;
use crate::device::Device;
use crate::loader::rays::{Rays, RaysBuilder, SceneSource};
use crate::options::units::read_seconds;
use crate::picture::Background;
use crate::plan::{Rank, RaySampler};
use crate::pool::sandbox::Sandbox;

/// Options of a run of rays. What is left out has
/// [`RaysBuilder`](crate::rays::RaysBuilder)'s default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaysOptions {
    pub rays: Option<u64>,
    pub most_rays: Option<u64>,
    pub split: Option<Split>,
    pub sampler: Option<RaySampler>,
    pub seed: Option<u64>,
    pub rank: Option<Rank>,
    pub start: Option<u64>,
    pub joining: Option<u32>,
    pub downscale: Option<u32>,
    pub masks: Option<bool>,
    pub depths: Option<bool>,
    pub alpha: Option<bool>,
    pub background: Option<Background>,
    pub num_workers: Option<usize>,
    pub device: Option<Device>,
    /// Bytes.
    pub gpu_memory_limit: Option<u64>,
    pub depth: Option<u32>,
    /// Bytes.
    pub memory_limit: Option<u64>,
    pub store_folder: Option<PathBuf>,
    pub share_store: Option<bool>,
    /// Seconds, where it is read as text.
    #[serde(deserialize_with = "read_seconds")]
    pub row_limit: Option<Duration>,
    /// Seconds, where it is read as text.
    #[serde(deserialize_with = "read_seconds")]
    pub hold_timeout: Option<Duration>,
    pub max_pixels: Option<u64>,
    /// Bytes.
    pub max_scratch: Option<u64>,
    pub sandbox: Option<Sandbox>,
    pub helper: Option<PathBuf>,
}

impl RaysOptions {
    /// The rays that they describe.
    pub fn builder(self, scene: impl Into<SceneSource>) -> RaysBuilder {
        fn with<T>(
            builder: RaysBuilder,
            said: Option<T>,
            how: impl FnOnce(RaysBuilder, T) -> RaysBuilder,
        ) -> RaysBuilder {
            match said {
                Some(value) => how(builder, value),
                None => builder,
            }
        }
        let mut b = Rays::builder(scene);
        b = with(b, self.rays, RaysBuilder::rays);
        b = with(b, self.most_rays, RaysBuilder::most_rays);
        b = with(b, self.split, RaysBuilder::split);
        b = with(b, self.sampler, RaysBuilder::sampler);
        b = with(b, self.seed, RaysBuilder::seed);
        b = with(b, self.rank, RaysBuilder::rank);
        b = with(b, self.start, RaysBuilder::start);
        b = with(b, self.joining, RaysBuilder::joining);
        b = with(b, self.downscale, RaysBuilder::downscale);
        b = with(b, self.masks, RaysBuilder::masks);
        b = with(b, self.depths, RaysBuilder::depths);
        b = with(b, self.alpha, RaysBuilder::alpha);
        b = with(b, self.background, RaysBuilder::background);
        b = with(b, self.num_workers, RaysBuilder::num_workers);
        b = with(b, self.device, RaysBuilder::device);
        b = with(b, self.gpu_memory_limit, RaysBuilder::gpu_memory_limit);
        b = with(b, self.depth, RaysBuilder::depth);
        b = with(b, self.memory_limit, RaysBuilder::memory_limit);
        b = with(b, self.store_folder, RaysBuilder::store_folder);
        b = with(b, self.share_store, RaysBuilder::share_store);
        b = with(b, self.sandbox, RaysBuilder::sandbox);
        b = with(b, self.row_limit, RaysBuilder::row_limit);
        b = with(b, self.hold_timeout, RaysBuilder::hold_timeout);
        b = with(b, self.max_pixels, RaysBuilder::max_pixels);
        b = with(b, self.max_scratch, RaysBuilder::max_scratch);
        with(b, self.helper, RaysBuilder::helper)
    }
}
