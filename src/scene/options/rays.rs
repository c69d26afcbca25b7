//! Rays of a scene, as a caller says it.
//!
//! In the consumer. How the scene itself is read is
//! [`SceneOptions`](crate::scene::SceneOptions). Never in here: defaults; the builder has
//! them.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::Device;
use crate::options::units::read_seconds;
use crate::picture::Background;
use crate::pool::sandbox::Sandbox;
use crate::scene::data::Split;
use crate::scene::draw::RaySampler;
use crate::scene::options::scene_list::scene_options;
use crate::scene::run::rays::RayKind;

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
