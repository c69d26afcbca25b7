//! Views of a scene, as a caller says it.
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
use crate::scene::options::scene_list::scene_options;
use crate::scene::run::views::ViewKind;

scene_options! {
    /// Options of a run of views. What is left out has
    /// [`ViewsBuilder`](crate::views::ViewsBuilder)'s default.
    ViewsOptions: ViewKind {
        split: Split,
        undistort: bool,
        /// `f32` and no `u8`.
        float: bool,
        shuffle: bool,
        seed: u64,
        start: u64,
        downscale: u32,
        masks: bool,
        depths: bool,
        alpha: bool,
        background: Background,
        num_workers: usize,
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
        device: Device,
        /// Bytes.
        gpu_memory_limit: u64,
        max_pixels: u64,
        /// Bytes.
        max_scratch: u64,
        sandbox: Sandbox,
        helper: PathBuf,
    }
}
