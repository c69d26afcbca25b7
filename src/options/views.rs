//! Views of a scene, as a caller says it.
//!
//! In the consumer. How the scene itself is read is
//! [`SceneOptions`](crate::scenes::SceneOptions). Never in here: defaults; the builder has
//! them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::data::scenes::Split;
use crate::device::Device;
use crate::loader::views::{SceneSource, Views, ViewsBuilder};
use crate::options::units::read_seconds;
use crate::picture::Background;
use crate::plan::Rank;
use crate::pool::sandbox::Sandbox;

/// Options of a run of views. What is left out has
/// [`ViewsBuilder`](crate::views::ViewsBuilder)'s default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewsOptions {
    pub split: Option<Split>,
    pub undistort: Option<bool>,
    /// `f32` and no `u8`.
    pub float: Option<bool>,
    pub shuffle: Option<bool>,
    pub seed: Option<u64>,
    pub rank: Option<Rank>,
    pub start: Option<u64>,
    pub downscale: Option<u32>,
    pub masks: Option<bool>,
    pub depths: Option<bool>,
    pub alpha: Option<bool>,
    pub background: Option<Background>,
    pub num_workers: Option<usize>,
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
    pub device: Option<Device>,
    /// Bytes.
    pub gpu_memory_limit: Option<u64>,
    pub max_pixels: Option<u64>,
    /// Bytes.
    pub max_scratch: Option<u64>,
    pub sandbox: Option<Sandbox>,
    pub helper: Option<PathBuf>,
}

impl ViewsOptions {
    /// The views that they describe.
    pub fn builder(self, scene: impl Into<SceneSource>) -> ViewsBuilder {
        fn with<T>(
            builder: ViewsBuilder,
            said: Option<T>,
            how: impl FnOnce(ViewsBuilder, T) -> ViewsBuilder,
        ) -> ViewsBuilder {
            match said {
                Some(value) => how(builder, value),
                None => builder,
            }
        }
        let mut b = Views::builder(scene);
        b = with(b, self.split, ViewsBuilder::split);
        b = with(b, self.undistort, ViewsBuilder::undistort);
        b = with(b, self.float, ViewsBuilder::float);
        b = with(b, self.shuffle, ViewsBuilder::shuffle);
        b = with(b, self.seed, ViewsBuilder::seed);
        b = with(b, self.rank, ViewsBuilder::rank);
        b = with(b, self.start, ViewsBuilder::start);
        b = with(b, self.downscale, ViewsBuilder::downscale);
        b = with(b, self.masks, ViewsBuilder::masks);
        b = with(b, self.depths, ViewsBuilder::depths);
        b = with(b, self.alpha, ViewsBuilder::alpha);
        b = with(b, self.background, ViewsBuilder::background);
        b = with(b, self.num_workers, ViewsBuilder::num_workers);
        b = with(b, self.depth, ViewsBuilder::depth);
        b = with(b, self.memory_limit, ViewsBuilder::memory_limit);
        b = with(b, self.store_folder, ViewsBuilder::store_folder);
        b = with(b, self.share_store, ViewsBuilder::share_store);
        b = with(b, self.sandbox, ViewsBuilder::sandbox);
        b = with(b, self.row_limit, ViewsBuilder::row_limit);
        b = with(b, self.hold_timeout, ViewsBuilder::hold_timeout);
        b = with(b, self.device, ViewsBuilder::device);
        b = with(b, self.gpu_memory_limit, ViewsBuilder::gpu_memory_limit);
        b = with(b, self.max_pixels, ViewsBuilder::max_pixels);
        b = with(b, self.max_scratch, ViewsBuilder::max_scratch);
        with(b, self.helper, ViewsBuilder::helper)
    }
}
