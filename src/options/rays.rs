//! Rays of a scene, as a caller says it.
//!
//! In the consumer. How the scene itself is read is
//! [`SceneOptions`](crate::scenes::SceneOptions). Never in here: defaults; the builder has
//! them.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::scenes::Split;
use crate::device::Device;
use crate::loader::rays::RayKind;
use crate::options::scene::scene_options;
use crate::options::units::read_seconds;
use crate::picture::Background;
use crate::plan::RaySampler;
use crate::pool::sandbox::Sandbox;

scene_options! {
    /// Options of a run of rays. What is left out has
    /// [`RaysBuilder`](crate::rays::RaysBuilder)'s default.
    RaysOptions: RayKind {
        rays: u64,
        most_rays: u64,
        split: Split,
        sampler: RaySampler,
        seed: u64,
        start: u64,
        joining: u32,
        downscale: u32,
        masks: bool,
        depths: bool,
        alpha: bool,
        background: Background,
        num_workers: usize,
        device: Device,
        /// Bytes.
        gpu_memory_limit: u64,
        depth: u32,
        /// Bytes.
        memory_limit: u64,
        store_folder: PathBuf,
        share_store: bool,
        /// Seconds, where it is read as text.
        #[serde(deserialize_with = "read_seconds")]
        row_limit: Duration,
        /// Seconds, where it is read as text.
        #[serde(deserialize_with = "read_seconds")]
        hold_timeout: Duration,
        max_pixels: u64,
        /// Bytes.
        max_scratch: u64,
        sandbox: Sandbox,
        helper: PathBuf,
    }
}
