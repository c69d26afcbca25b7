//! The options that every run over the images of a scene has.
//!
//! In the consumer. Never in here: what is done with them; options of one kind of run.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::Device;
use crate::picture::{BackgroundColor, PictureLimits};
use crate::pool::worker_options::WorkerOptions;
use crate::scene::data::SceneSplit;

/// Which images, how they are decoded and held, and by whom; where batches are made.
#[derive(Debug)]
pub struct RunOptions {
    pub(crate) split: SceneSplit,
    pub(crate) downscale: u32,
    pub(crate) masks: bool,
    /// None = those that the scene's file names; true = also those that are found by name.
    pub(crate) depths: Option<bool>,
    pub(crate) alpha: bool,
    pub(crate) background: BackgroundColor,
    pub(crate) seed: u64,
    pub(crate) first_step: u64,
    pub(crate) crew: WorkerOptions,
    /// Slots of the ring, or batches on the device.
    pub(crate) depth: Option<u32>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) store_folder: Option<PathBuf>,
    pub(crate) shares: bool,
    pub(crate) limits: PictureLimits,
    pub(crate) device: Device,
    pub(crate) gpu_memory_limit: Option<u64>,
}

impl RunOptions {
    /// Most time that a step may take, when nobody says another.
    pub(crate) const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            split: SceneSplit::Train,
            downscale: 1,
            masks: true,
            depths: None,
            alpha: false,
            background: BackgroundColor::default(),
            seed: 0,
            first_step: 0,
            crew: WorkerOptions {
                row_limit: Self::DEFAULT_ROW_LIMIT,
                ..WorkerOptions::default()
            },
            depth: None,
            memory_limit: None,
            store_folder: None,
            shares: true,
            limits: PictureLimits::default(),
            device: Device::Cpu,
            gpu_memory_limit: None,
        }
    }
}
