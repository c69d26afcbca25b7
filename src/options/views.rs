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
use crate::error::Result;
use crate::loader::views::{SceneSource, Views, ViewsBuilder};
use crate::options::units::read_seconds;
use crate::options::{place, set_given};
use crate::picture::Background;
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
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
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
    ///
    /// # Errors
    /// One of `rank` and `world_size` alone.
    pub fn builder(self, scene: impl Into<SceneSource>) -> Result<ViewsBuilder> {
        let mut b = Views::builder(scene);
        if let Some(rank) = place(self.rank, self.world_size)? {
            b = b.rank(rank);
        }
        set_given!(b, self,
            split undistort float shuffle seed start downscale masks depths alpha background num_workers depth memory_limit store_folder share_store sandbox row_limit hold_timeout device gpu_memory_limit max_pixels max_scratch helper);
        Ok(b)
    }
}
